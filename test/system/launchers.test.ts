/** @file Which processes above one started it for a person, by their command lines. */
import { expect, test } from 'vitest';
import { isOrphaned, launchers } from '../../src/system/launchers.js';

/** Command lines of a process's ancestors, nearest first. */
function found(...commands: string[]): number {
  const read = (pid: number) => {
    const command = commands[pid - 100];
    return command === undefined ? undefined : { pid, parent: pid + 1, words: command.split(' ') };
  };
  return launchers(100, read).length;
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
  expect(found(...commands)).toBe(count);
});

test('a process is orphaned where its parent is another one than before', () => {
  expect(isOrphaned([])).toBe(false);
  expect(isOrphaned([process.ppid])).toBe(false);
  expect(isOrphaned([1 + process.ppid])).toBe(true);
});
