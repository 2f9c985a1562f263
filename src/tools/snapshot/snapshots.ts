/** @file Snapshot files: reading, writing, and comparison with the experiment. */

import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { basename, join, resolve, sep } from 'node:path';
import { type ConfiguredExperiment, configure } from '../../cli/index.js';
import { describeError } from '../../cli/runCommand.js';
import { classVarsText } from '../../experiment/index.js';
import { makeDirectory, writeWhole } from '../../files/index.js';
import { print } from '../../hparams/index.js';
import { resolveExperiment } from '../../registry/index.js';
import { UsageError } from '../../registry/usageError.js';
import { type DiffLine, lineDiff } from '../lineDiff.js';

const folder = join('experiments', '__snapshots__');
const extension = '.txt';

/** Where the snapshot of an experiment is, from the working directory. */
export function snapshotFile(name: string): string {
  return join(folder, name + extension);
}

/** The experiments that have a snapshot, sorted. */
export function snapshotNames(): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => file.endsWith(extension))
    .map((file) => basename(file, extension))
    .sort();
}

/** What the file says; undefined where there is none. Line ends are those of this system's checkout. */
function readSnapshot(name: string): string | undefined {
  const file = snapshotFile(name);
  return existsSync(file) ? readFileSync(file, 'utf8').replaceAll('\r\n', '\n') : undefined;
}

/** @throws UsageError where the working directory is no project with experiments. */
function writeSnapshot(name: string, text: string): void {
  if (!statSync('experiments', { throwIfNoEntry: false })?.isDirectory()) {
    throw new UsageError(
      `${resolve('.')} has no directory experiments: snapshots are made at a project's root.`,
    );
  }
  makeDirectory(resolve(folder));
  writeWhole(snapshotFile(name), text);
}

/** Takes the experiment's snapshot away, and the folder with the last of them. */
function removeSnapshot(name: string): void {
  rmSync(snapshotFile(name));
  if (readdirSync(folder).length === 0) rmSync(folder, { recursive: true });
}

/** The snapshot of an experiment: its constants and every field of its configs, but nothing of where they were set. */
function snapshotText({ name, experiment, configs }: ConfiguredExperiment): string {
  const constants = classVarsText(experiment);
  const text = [
    `What ${name} is. Written by: npx luthier snapshot ${name}`,
    `Constants\n${constants === '' ? 'none' : constants.trimEnd()}`,
    `Configs\n${print(configs, { tags: true })}`,
  ].join('\n\n');
  // Files of the project are in the same place on no other machine.
  return `${text.replaceAll(process.cwd() + sep, './')}\n`;
}

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
