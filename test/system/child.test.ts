/** @file Child processes, and those that they start in turn. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { Child } from '../../src/system/child.js';
import { isAlive } from '../../src/system/processes.js';
import { temporaryDirectory } from '../command.js';

/** Starts a process, a detached one, one that a shell leaves behind, and one without an environment. */
const starter = `import { execSync, spawn } from 'node:child_process';
const sleep = (options) => spawn('sleep', ['300'], { stdio: 'ignore', ...options });
const plain = sleep({});
const detached = sleep({ detached: true });
const bare = sleep({ detached: true, env: {} });
for (const each of [plain, detached, bare]) each.unref();
const left = Number(execSync('setsid sleep 300 >/dev/null 2>&1 & echo $!').toString());
process.send([plain.pid, detached.pid, bare.pid, left]);
process.on('message', () => process.exit(0));
`;

async function started(isForeign: boolean): Promise<[Child<string, number[]>, number[]]> {
  const file = join(temporaryDirectory(), 'starter.mjs');
  writeFileSync(file, starter);
  const child = new Child<string, number[]>(pathToFileURL(file), { isForeign });
  const pids = await child.receive(60_000);
  expect(pids.map(isAlive)).toEqual([true, true, true, true]);
  return [child, pids];
}

const gone = async (pids: readonly number[]): Promise<void> => {
  for (let tries = 0; pids.some(isAlive) && tries < 100; tries += 1)
    await new Promise((resolve) => setTimeout(resolve, 20));
  expect(pids.map(isAlive)).toEqual(pids.map(() => false));
};

test.runIf(process.platform === 'linux')("processes that a project's code starts end with it", async () => {
  const [killed, ofKilled] = await started(true);
  await killed.kill();
  await gone(ofKilled);
  // One that ends by itself leaves only what has its environment to be found.
  const [ended, [plain, detached, bare, left]] = await started(true);
  ended.send('end');
  await expect(ended.receive(60_000)).rejects.toThrow('The process ended with exit code 0.');
  await gone([plain!, detached!, left!]);
  process.kill(bare!, 'SIGKILL');
});

test.runIf(process.platform === 'linux')('processes of other children may outlive them', async () => {
  const [child, pids] = await started(false);
  await child.kill();
  expect(pids.map(isAlive)).toEqual([true, true, true, true]);
  for (const pid of pids) process.kill(pid, 'SIGKILL');
});
