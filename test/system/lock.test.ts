/** @file Locks among processes: one holds, the others are told who; a killed process leaves none. */
import { spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { acquireLock, LockedError, loadFlock } from '../../src/system/lock.js';
import { temporaryDirectory } from '../command.js';
import { typescript } from '../typescriptEnvironment.js';

const program = fileURLToPath(new URL('lockProgram.ts', import.meta.url));

/** A process that takes the lock; `said` is its first line. */
async function locker(path: string, kind: string) {
  const child = spawn(process.execPath, ['--import', typescript, program, path, kind], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const said = await new Promise<string>((resolve) => child.stdout.setEncoding('utf8').once('data', resolve));
  const ended = new Promise((resolve) => child.once('exit', resolve));
  return { child, said, ended };
}

test.each([
  ['flock', loadFlock()],
  ['an address', Promise.resolve(undefined)],
])('by %s: the second is told who holds it, until the first is killed', async (kind, flock) => {
  const path = join(temporaryDirectory(), 'lock');
  const first = await locker(path, kind);
  expect(first.said).toBe('held\n');
  const refused = await acquireLock(path, flock).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(LockedError);
  const { holder, message } = refused as LockedError;
  expect(holder).toEqual({
    pid: first.child.pid,
    host: hostname(),
    since: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    command: `lockProgram.ts ${path} ${kind}`,
  });
  expect(message).toBe(
    `${path} is locked by process ${first.child.pid} on ${hostname()} since ${holder?.since} (${holder?.command}).`,
  );
  first.child.kill('SIGKILL');
  await first.ended;
  const lock = await acquireLock(path, flock);
  expect(JSON.parse(readFileSync(path, 'utf8')).pid).toBe(process.pid);
  await expect(acquireLock(path, flock)).rejects.toThrow(`process ${process.pid} on`);
  lock.release();
  (await acquireLock(path, flock)).release();
});

test('a lock file that was removed locks nobody out', async () => {
  const path = join(temporaryDirectory(), 'lock');
  const lock = await acquireLock(path);
  rmSync(path);
  const second = await acquireLock(path);
  await expect(acquireLock(path)).rejects.toThrow(LockedError);
  lock.release();
  second.release();
});
