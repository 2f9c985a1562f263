/** @file Use marks: processes that use a cache entry mark it, which prevents its eviction. */
import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';

const PREFIX = 'use-';
const host = hostname().replace(/[^\w.]/g, '_');

/** How long marks of other machines that share the folder last, whose processes cannot be checked; their clocks may be ahead. */
const foreignMarkLasts = 7 * 24 * 3600 * 1000;

const made = new Set<string>();

/** Marks a folder as used by this thread until the process ends. */
export function markUse(folder: string): void {
  const mark = join(folder, `${PREFIX}${host}-${process.pid}-${threadId}`);
  writeFileSync(mark, '');
  if (made.size === 0) process.once('exit', removeMarks);
  made.add(mark);
}

function removeMarks(): void {
  for (const mark of made) rmSync(mark, { force: true });
}

/** Whether a live process has marked the folder; removes marks of dead ones. */
export function inUse(folder: string): boolean {
  const marks = readdirSync(folder).filter((name) => name.startsWith(PREFIX));
  return marks.filter((mark) => holds(join(folder, mark), mark)).length > 0;
}

function holds(path: string, mark: string): boolean {
  const [, owner, pid] = /^use-(.*)-(\d+)-\d+$/.exec(mark) ?? [];
  const info = statSync(path, { throwIfNoEntry: false });
  if (info === undefined) return false;
  const live = owner === host ? isAlive(Number(pid)) : Math.abs(Date.now() - info.mtimeMs) < foreignMarkLasts;
  if (!live) rmSync(path, { force: true });
  return live;
}

/** Whether a process with this id exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
