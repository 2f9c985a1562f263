/** @file What became of each snapshot. */

import { configure } from '../../cli/index.js';
import { describeError } from '../../cli/runCommand.js';
import { resolveExperiment } from '../../registry/index.js';
import { UsageError } from '../../registry/usageError.js';
import { type DiffLine, lineDiff } from '../lineDiff.js';
import { readSnapshot, removeSnapshot, snapshotText, writeSnapshot } from './files.js';

/**
 * `current`: as the experiment is; `new` and `updated`: just written; `removed`; `stale`: not as the experiment is;
 * `missing`: there is no snapshot; `orphaned`: there is no such experiment; `failed`: its configs cannot be made.
 */
export type State = 'current' | 'new' | 'updated' | 'removed' | 'stale' | 'missing' | 'orphaned' | 'failed';

/** One snapshot. */
export interface Entry {
  readonly name: string;
  readonly state: State;
  /** From the snapshot to the experiment. */
  readonly diff: readonly DiffLine[];
  /** Why it is orphaned or failed. */
  readonly problem?: string;
}

/** The states in which a snapshot must not be committed. */
export const badStates: readonly State[] = ['stale', 'missing', 'orphaned', 'failed'];

type Evaluated =
  | { readonly text: string }
  | { readonly state: 'orphaned' | 'failed'; readonly problem: string };

/** What the snapshot of the experiment would be, or why there can be none. */
async function evaluate(name: string): Promise<Evaluated> {
  let isThere = false;
  try {
    const resolved = await resolveExperiment(name);
    isThere = true;
    return { text: snapshotText(configure(resolved)) };
  } catch (error) {
    const problem = describeError(error).text;
    // The error lists the experiments that there are.
    if (!isThere && error instanceof UsageError)
      return { state: 'orphaned', problem: problem.split('\n')[0]! };
    return { state: 'failed', problem };
  }
}

function compared(name: string, text: string): Entry {
  const before = readSnapshot(name);
  if (before === undefined) return { name, state: 'missing', diff: [] };
  const diff = lineDiff(before, text);
  return { name, state: diff.length === 0 ? 'current' : 'stale', diff };
}

/** Compares the snapshot of each with the experiment. */
export async function checkSnapshots(names: readonly string[]): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (const name of names) {
    const found = await evaluate(name);
    entries.push('text' in found ? compared(name, found.text) : { name, diff: [], ...found });
  }
  return entries;
}

/** Writes the snapshot of each that is not as the experiment is; files of those that have none stay as they are. */
export async function refreshSnapshots(names: readonly string[]): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (const name of names) {
    const found = await evaluate(name);
    if (!('text' in found)) {
      entries.push({ name, diff: [], ...found });
      continue;
    }
    const { state, diff } = compared(name, found.text);
    if (state !== 'current') writeSnapshot(name, found.text);
    entries.push({ name, diff, state: state === 'missing' ? 'new' : state === 'stale' ? 'updated' : state });
  }
  return entries;
}

/** Takes the snapshots away, which are all there. */
export function removeSnapshots(names: readonly string[]): Entry[] {
  return names.map((name) => {
    removeSnapshot(name);
    return { name, state: 'removed', diff: [] };
  });
}
