/** @file Commit of an experiment's sources, and uncommitted changes. */
import { runGit } from '../system/index.js';

/** Changes of a working tree that no commit has. */
interface Uncommitted {
  /** As `git status --porcelain` lists them: ` M experiments/lm.ts`, `?? notes.txt`. */
  readonly files: readonly string[];
  /** Output of `git diff HEAD`, of tracked files. */
  readonly diff: string;
  /** Whether there are more files, or more of the diff. */
  readonly isCut: boolean;
}

/** A working tree's state. */
export interface SourceRevision {
  /** The commit that is checked out; null before the first. */
  readonly gitRevision: string | null;
  /** Null for a clean tree. */
  readonly uncommitted: Uncommitted | null;
}

/** Most files that are listed. */
const mostFiles = 200;
/** Most bytes of a diff. */
const mostDiff = 64 << 10;
/** Milliseconds that git may take for each of its answers. */
const timeout = 10_000;

function outputOf(folder: string, ...args: readonly string[]): string | undefined {
  const { error, status, stdout } = runGit(folder, args, { timeout });
  return error === undefined && status === 0 ? stdout : undefined;
}

/** The state of the working tree that `folder` is in; undefined outside of one, and without git. */
export function sourceRevision(folder: string): SourceRevision | undefined {
  const status = outputOf(folder, 'status', '--porcelain');
  if (status === undefined) return undefined;
  const gitRevision = outputOf(folder, 'rev-parse', '--verify', '--quiet', 'HEAD')?.trim() ?? null;
  const files = status.split('\n').filter((line) => line !== '');
  if (files.length === 0) return { gitRevision, uncommitted: null };
  // A longer one ends git; its beginning is there.
  const limits = { timeout, maxBuffer: mostDiff };
  const { stdout, error } = runGit(folder, ['diff', '--no-ext-diff', '--no-textconv', 'HEAD'], limits);
  const isCut = files.length > mostFiles || error !== undefined;
  return {
    gitRevision,
    uncommitted: { files: files.slice(0, mostFiles), diff: (stdout ?? '').slice(0, mostDiff), isCut },
  };
}
