/**
 * @file Leases of checkpoints that are being read: none of them is deleted. A reader writes its lease and then looks for a
 * deletion; a deletion is announced before it looks for leases. So one of the two sees the other, whatever their order.
 */
import { closeSync, openSync, readdirSync, statSync, utimesSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { isThere, removeQuietly } from '../files/index.js';
import { isAlive } from '../system/index.js';
import { CheckpointError } from './checkpointErrors.js';

/** Milliseconds between renewals of a lease, and after which a mark of another machine has expired. */
const RENEWED_MS = 60_000;
const EXPIRED_MS = 10 * RENEWED_MS;

type Kind = 'lease' | 'deletion';

/** `.lease_checkpoint_00000100.<host>.<process>.<number>` beside a checkpoint, or `.deletion_…`. */
const MARK = /^\.(?:lease|deletion)_[^.]*\.(.*)\.(\d+)\.\d+$/;

/** Number of marks that this process has made: each has a name of its own. */
let made = 0;

/** A checkpoint that this process reads. */
export interface Lease {
  /** Allows its deletion again; harmless where it does already. */
  release(): void;
}

/**
 * Keeps a checkpoint from being deleted until the lease is released or this process ends. A reader that may not write to
 * the directory has no lease: it has to look for another checkpoint where files are gone.
 *
 * @param checkpoint directory of the checkpoint.
 * @throws CheckpointError of kind `missing` where it is gone, or about to go.
 */
export function leaseCheckpoint(checkpoint: string): Lease {
  const path = mark(checkpoint, 'lease');
  const renewing = path === undefined ? undefined : setInterval(() => renew(path), RENEWED_MS).unref();
  const release = (): void => {
    clearInterval(renewing);
    if (path !== undefined) removeQuietly(path);
  };
  if (isThere(checkpoint) && !isMarked(checkpoint, 'deletion', Date.now())) return { release };
  release();
  throw new CheckpointError('missing', checkpoint, 'it has been deleted');
}

/**
 * Runs `act`, which takes a checkpoint away, unless a process reads it.
 *
 * @returns whether it ran.
 */
export function unlessLeased(checkpoint: string, act: () => void): boolean {
  // A disk that is full has no room for the mark, and needs the deletion most.
  const deletion = mark(checkpoint, 'deletion');
  try {
    const now = deletion === undefined ? Date.now() : statSync(deletion).mtimeMs;
    if (isMarked(checkpoint, 'lease', now)) return false;
    act();
    return true;
  } finally {
    if (deletion !== undefined) removeQuietly(deletion);
  }
}

/** Removes the marks that killed processes have left. */
export function removeMarks(directory: string): void {
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    if (MARK.test(name) && !isHeld(path, Date.now())) removeQuietly(path);
  }
}

/** Makes a mark. @returns its path; undefined where the system refuses it */
function mark(checkpoint: string, kind: Kind): string | undefined {
  const owner = `${hostname()}.${process.pid}.${++made}`;
  const path = join(dirname(checkpoint), `.${kind}_${basename(checkpoint)}.${owner}`);
  try {
    closeSync(openSync(path, 'wx'));
    return path;
  } catch {
    return undefined;
  }
}

/** Whether a checkpoint has a mark of a process that is alive. @param now milliseconds since 1970, by the clock of the disk */
function isMarked(checkpoint: string, kind: Kind, now: number): boolean {
  const directory = dirname(checkpoint);
  const start = `.${kind}_${basename(checkpoint)}.`;
  return readdirSync(directory).some((name) => name.startsWith(start) && isHeld(join(directory, name), now));
}

function isHeld(path: string, now: number): boolean {
  const [, host, pid] = MARK.exec(basename(path)) ?? [];
  if (host === hostname()) return isAlive(Number(pid));
  const renewed = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  return renewed !== undefined && now - renewed < EXPIRED_MS;
}

function renew(path: string): void {
  try {
    const now = new Date();
    utimesSync(path, now, now);
  } catch {
    // Released meanwhile, or renewed the next time.
  }
}
