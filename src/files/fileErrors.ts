/** @file Errors of files: messages with advice, and whether one means damage or refusal. */

import { constants } from 'node:os';

/** Not a regular file but a directory, a pipe, a device; or one that is far too long. */
export class UnfitFileError extends Error {
  override readonly name = 'UnfitFileError';
}

const ADVICE: Readonly<Record<string, string>> = {
  ENOSPC: 'free some space on that disk',
  EDQUOT: 'free some of your quota on that disk, or have it raised',
  EROFS: 'that file system is mounted read-only: remount it, or use another directory',
  EIO: 'the device or the network file system failed: see the system log',
  EACCES: 'check the permissions of the file and of the directories above it',
  EPERM: 'check the owner, the permissions and the attributes of the file',
  EMFILE: 'raise the limit of open files, ulimit -n',
  ENFILE: 'too many files are open on this machine',
};

/** The system's message for an error, with advice where there is any. */
export function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { errno, code = '', message } = error as NodeJS.ErrnoException;
  const isQuota = errno === -constants.errno.EDQUOT;
  // Node has no name for EDQUOT.
  const words = isQuota ? `EDQUOT: disk quota exceeded (${message})` : message;
  const advice = ADVICE[isQuota ? 'EDQUOT' : code];
  return advice === undefined ? words : `${words} (${advice})`;
}

/** Codes of errors about the contents of the disk; others are about reading it at present. */
const DAMAGE = new Set(['ENOENT', 'ENOTDIR', 'EISDIR', 'ELOOP']);

/** Whether a file is missing, or something else is in its place. */
export function isDamage(error: unknown): boolean {
  return error instanceof UnfitFileError || DAMAGE.has((error as NodeJS.ErrnoException).code ?? '');
}
