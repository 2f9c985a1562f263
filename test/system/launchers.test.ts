/** @file Which processes above one started it for a person, by their command lines. */
import { expect, test } from 'vitest';
import { isOrphaned, launchersAbove } from '../../src/system/launchers.js';

/** What is above a process with these command lines of its ancestors, nearest first; a last one of `init` is process 1. */
function above(commands: readonly string[], env = {}, underTsx = false) {
  const pidOf = (i: number) => (commands[i] === 'init' ? 1 : 100 + i);
  const read = (pid: number) => {
    const i = pid === 1 ? commands.indexOf('init') : pid - 100;
    const command = commands[i];
    return command === undefined ? undefined : { pid, parent: pidOf(i + 1), words: command.split(' ') };
  };
  return launchersAbove(pidOf(0), env, underTsx, read);
}

test.each<[number, string[]]>([
  [0, ['-bash']],
  [0, ['bash -c ./train.sh', 'sshd: me@pts/1']],
  [2, ["sh -c 'luthier' train", 'npm exec luthier train', '-zsh']],
  [1, ['npm exec luthier train', 'bash -c nightly']],
  [
    3,
    ['node /p/node_modules/.bin/tsx src/main.ts', 'sh -c tsx src/main.ts', 'node /usr/bin/npx tsx', 'bash'],
  ],
  [1, ['node --no-warnings /p/node_modules/tsx/dist/cli.mjs src/main.ts', 'fish']],
  [2, ['sh -c node src/tools/luthier.js train', 'npm start', 'bash']],
  // In a shell that npm started, a person works.
  [0, ['bash', 'sh -c bash', 'npm exec bash']],
  [0, ['node /p/node_modules/vitest/dist/workers/forks.js', 'npm test']],
])('%i launchers above: %j', (count, commands) => {
  expect(above(commands)).toEqual({
    launchers: Array.from({ length: count }, (_, i) => 100 + i),
    ended: false,
  });
});

test.each<[boolean, string[]]>([
  [true, ['init']],
  [true, ["sh -c 'luthier' train", 'init']],
  [true, ['sh -c tsx', '/usr/lib/systemd/systemd --user']],
  // tsx's wrapper lives on where npx was killed.
  [true, ['node /p/node_modules/.bin/tsx src/main.ts', 'sh -c tsx src/main.ts', 'init']],
  [false, ['node /p/node_modules/.bin/tsx src/main.ts', 'sh -c tsx', 'npm exec tsx', 'init']],
  // In a shell or a terminal of an npm script that has ended, a person works.
  [false, ['bash', 'tmux new', 'init']],
  [false, ["sh -c 'luthier' train", 'npm exec luthier', 'init']],
])('a launcher had ended before anybody looked: %s for %j', (ended, commands) => {
  expect(above(commands, { npm_lifecycle_event: 'npx' }).ended).toBe(ended);
  expect(above(commands).ended).toBe(false);
});

test("tsx's wrapper had ended before anybody looked", () => {
  expect(above(['init'], {}, true).ended).toBe(true);
  expect(above(['node /p/node_modules/tsx/dist/cli.mjs a.ts', 'init'], {}, true).ended).toBe(false);
  expect(above(['bash', 'init'], {}, true).ended).toBe(false);
});

test('a process is orphaned where its parent is another one than before', () => {
  expect(isOrphaned([])).toBe(false);
  expect(isOrphaned([process.ppid])).toBe(false);
  expect(isOrphaned([1 + process.ppid])).toBe(true);
});
