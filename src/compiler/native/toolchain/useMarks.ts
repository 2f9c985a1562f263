/** @file Marks of the processes that use an entry of the cache, which keep it from being dropped. */
import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';

const PREFIX = 'use-';
const host = hostname().replace(/[^\w.]/g, '_');

/** A process on another machine that shares the folder can't be asked whether it lives. */
const foreignMarkLasts = 7 * 24 * 3600 * 1000;

const made = new Set<string>();

/** Says that this thread of this process uses what is in the folder, until it ends. */
export function markUse(folder: string): void {
  const mark = join(folder, `${PREFIX}${host}-${process.pid}-${threadId}`);
  writeFileSync(mark, '');
  if (made.size === 0) process.once('exit', removeMarks);
  made.add(mark);
}

function removeMarks(): void {
  for (const mark of made) rmSync(mark, { force: true });
}

/** Whether a process that lives has marked the folder; marks of others are removed. */
export function inUse(folder: string): boolean {
  const marks = readdirSync(folder).filter((name) => name.startsWith(PREFIX));
  return marks.filter((mark) => holds(join(folder, mark), mark)).length > 0;
}

function holds(path: string, mark: string): boolean {
  const [, owner, pid] = /^use-(.*)-(\d+)-\d+$/.exec(mark) ?? [];
  const info = statSync(path, { throwIfNoEntry: false });
  if (info === undefined) return false;
  const live = owner === host ? isAlive(Number(pid)) : Date.now() - info.mtimeMs < foreignMarkLasts;
  if (!live) rmSync(path, { force: true });
  return live;
}

/** Whether there is a process of this number. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
