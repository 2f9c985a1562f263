/** @file Exclusive locks that the system holds for a process: one that is killed leaves none behind. */
import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  statSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { loadKoffi } from './koffi.js';
import { isAlive } from './processes.js';
import { listenAlone } from './soleListener.js';

/** flock(2): locks an open file, until it is closed or its process ends, without waiting: `taken` where another one has it, `unsupported` where its file system can't. */
export type Flock = (file: number) => 'held' | 'taken' | 'unsupported';

const LOCK_EX = 2;
const LOCK_NB = 4;

/** flock(2) of the C library; undefined where the system has none, or no C function can be called. */
export async function loadFlock(): Promise<Flock | undefined> {
  if (process.platform === 'win32') return undefined;
  try {
    const koffi = await loadKoffi();
    const flock = koffi.load(null).func('int flock(int file, int operation)');
    const { EINTR, EWOULDBLOCK, EAGAIN } = koffi.os.errno;
    return (file) => {
      for (;;) {
        if (flock(file, LOCK_EX | LOCK_NB) === 0) return 'held';
        const error = koffi.errno();
        if (error === EINTR) continue;
        return error === EWOULDBLOCK || error === EAGAIN ? 'taken' : 'unsupported';
      }
    };
  } catch {
    return undefined;
  }
}

/** The holder of a lock, as its file names it. */
export interface Holder {
  readonly pid: number;
  readonly host: string;
  /** ISO 8601. */
  readonly since: string;
  readonly command: string;
}

/** A lock that this process holds. */
export interface Lock {
  release(): void;
}

/** Another process holds the lock. */
export class LockedError extends Error {
  override readonly name: string = 'LockedError';

  constructor(
    readonly path: string,
    /** Undefined where the file does not name one. */
    readonly holder: Holder | undefined,
  ) {
    super(`${path} is locked by ${describeHolder(holder)}.`);
  }
}

/** `process 123 on host since 2026-01-31T12:00:00.000Z (luthier train --exp=lm.Small)`. */
export function describeHolder(holder: Holder | undefined): string {
  if (holder === undefined) return 'another process';
  const { pid, host, since, command } = holder;
  return `process ${pid} on ${host} since ${since} (${command})`;
}

/**
 * Locks a file, made where it is not there, for this process alone; the file stays when the lock goes. The system holds the
 * lock: by flock(2), across machines where their file system does so; if there is none, by an address that only one
 * process of this machine can listen on.
 *
 * @param flock undefined where the system has none.
 * @throws LockedError where another process, or another part of this one, has the lock; the system's error where the file
 *   can't be written.
 */
export async function acquireLock(path: string, flock = loadFlock()): Promise<Lock> {
  const file = await lockedFile(path, await flock);
  const release = file === 'unsupported' ? await listenAlone(path) : () => closeSync(file);
  if (release === undefined) throw new LockedError(path, await readHolder(path));
  if (file === 'unsupported') {
    const written = openLock(path);
    describeMyself(written);
    closeSync(written);
  } else describeMyself(file);
  return { release };
}

/**
 * The process that holds a lock; undefined where none does. The lock is tried, for an instant, only where its file names a
 * process that may be alive: of a lock that can't be tried, the file is believed.
 */
export async function lockHolder(path: string, flock = loadFlock()): Promise<Holder | undefined> {
  let holder: Holder;
  let file: number;
  try {
    holder = holderIn(path);
    if (holder.host === hostname() && !isAlive(holder.pid)) return undefined;
    file = openSync(path, constants.O_RDONLY);
  } catch {
    return undefined;
  }
  try {
    return (await flock)?.(file) === 'held' ? undefined : holder;
  } finally {
    closeSync(file);
  }
}

/** Opens the lock's file without waiting, as for a pipe in its place. */
function openLock(path: string): number {
  const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK = 0 } = constants;
  return openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK, 0o666);
}

/** The file, open and locked: closing it ends the lock. */
async function lockedFile(path: string, flock: Flock | undefined): Promise<number | 'unsupported'> {
  for (;;) {
    const file = openLock(path);
    const outcome = flock?.(file) ?? 'unsupported';
    // A lock on a file removed in between excludes no one.
    if (outcome === 'held' && isSame(file, path)) return file;
    closeSync(file);
    if (outcome === 'taken') throw new LockedError(path, await readHolder(path));
    if (outcome === 'unsupported') return outcome;
  }
}

function isSame(file: number, path: string): boolean {
  const [open, named] = [fstatSync(file), statSync(path, { throwIfNoEntry: false })];
  return named?.ino === open.ino && named.dev === open.dev;
}

/** Writes the holder, this process, to the lock's file. */
function describeMyself(file: number): void {
  const [, script = '', ...flags] = process.argv;
  const holder: Holder = {
    pid: process.pid,
    host: hostname(),
    since: new Date().toISOString(),
    command: [basename(script), ...flags].join(' '),
  };
  ftruncateSync(file);
  writeSync(file, `${JSON.stringify(holder)}\n`);
}

/** The holder that a lock's file names. @throws where it names none */
function holderIn(path: string): Holder {
  const holder = JSON.parse(readFileSync(path, 'utf8')) as { [Key in keyof Holder]?: unknown } | null;
  const texts = [holder?.host, holder?.since, holder?.command];
  if (Number.isInteger(holder?.pid) && texts.every((text) => typeof text === 'string'))
    return holder as Holder;
  throw new Error(`${path} names no process.`);
}

/** The holder of a lock; waits a little where the file still names the one before, or none. */
async function readHolder(path: string): Promise<Holder | undefined> {
  let holder: Holder | undefined;
  for (let tries = 0; tries < 20; tries++) {
    try {
      holder = holderIn(path);
      if (holder.host !== hostname() || isAlive(holder.pid)) return holder;
    } catch {
      // Being written.
    }
    await sleep(25);
  }
  return undefined;
}
