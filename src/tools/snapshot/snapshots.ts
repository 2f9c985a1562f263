/** @file Snapshot files: reading, writing, and comparison with the experiment. */

import { existsSync, lstatSync, readdirSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { describeError } from '../../cli/commandLine/index.js';
import { type ConfiguredExperiment, configure } from '../../cli/index.js';
import { classVarsText } from '../../experiment/index.js';
import { explain, makeDirectory, readRegularFile, writeWhole } from '../../files/index.js';
import { print } from '../../hparams/index.js';
import { resolveExperiment } from '../../registry/index.js';
import { shellWord, UsageError } from '../../system/text/index.js';
import { type DiffLine, lineDiff } from '../lineDiff.js';

const folder = join('experiments', '__snapshots__');
const extension = '.txt';

/** Path of an experiment's snapshot, relative to the working directory. */
export function snapshotFile(name: string): string {
  return join(folder, name + extension);
}

/** @throws UsageError for a link, through which a project would have files read, written or removed that are not its own. */
function refuseLink(path: string): void {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return;
  throw new UsageError(`${path} is a symbolic link. Snapshots are files of the project: remove the link.`);
}

/** Experiments with a snapshot, sorted. */
export function snapshotNames(): string[] {
  for (const path of [dirname(folder), folder]) refuseLink(path);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => file.endsWith(extension) && !file.startsWith('.'))
    .map((file) => basename(file, extension))
    .sort();
}

/** Content of the file, undefined if missing; normalises line ends. */
function readSnapshot(name: string): string | undefined {
  const file = snapshotFile(name);
  refuseLink(file);
  if (!existsSync(file)) return undefined;
  try {
    return readRegularFile(file).toString().replaceAll('\r\n', '\n');
  } catch (error) {
    throw new UsageError(`The snapshot ${file} cannot be read: ${explain(error)}.`);
  }
}

/** @throws UsageError if the working directory has no experiments. */
function writeSnapshot(name: string, text: string): void {
  if (!statSync('experiments', { throwIfNoEntry: false })?.isDirectory()) {
    throw new UsageError(
      `${resolve('.')} has no directory experiments: snapshots are made at a project's root.`,
    );
  }
  makeDirectory(resolve(folder));
  writeWhole(snapshotFile(name), text);
}

/** Removes an experiment's snapshot, and the folder with the last one. */
function removeSnapshot(name: string): void {
  refuseLink(snapshotFile(name));
  rmSync(snapshotFile(name));
  if (readdirSync(folder).length === 0) rmSync(folder, { recursive: true });
}

/** Snapshot of an experiment: its constants and all fields of its configs, without the places that set them. */
function snapshotText({ name, experiment, configs }: ConfiguredExperiment): string {
  const constants = classVarsText(experiment);
  const text = [
    `What ${name} is. Written by: npx luthier snapshot ${shellWord(name)}`,
    `Constants\n${constants === '' ? 'none' : constants.trimEnd()}`,
    `Configs\n${print(configs, { tags: true })}`,
  ].join('\n\n');
  // Makes file names independent of the machine.
  return `${text.replaceAll(process.cwd() + sep, './')}\n`;
}

/**
 * `current`: matches the experiment; `new` and `updated`: just written; `removed`; `stale`: differs from the
 * experiment; `missing`: no snapshot exists; `orphaned`: the experiment is gone; `failed`: its configs can't be made.
 */
export type State = 'current' | 'new' | 'updated' | 'removed' | 'stale' | 'missing' | 'orphaned' | 'failed';

/** A snapshot and its state. */
export interface Entry {
  readonly name: string;
  readonly state: State;
  /** Diff from the snapshot to the experiment. */
  readonly diff: readonly DiffLine[];
  /** Reason for being orphaned or failed. */
  readonly problem?: string;
}

/** States that must not be committed. */
export const badStates: readonly State[] = ['stale', 'missing', 'orphaned', 'failed'];

type Evaluated =
  | { readonly text: string }
  | { readonly state: 'orphaned' | 'failed'; readonly problem: string };

/** The text for an experiment's snapshot, or the reason for its absence. */
async function evaluate(name: string): Promise<Evaluated> {
  let isThere = false;
  try {
    const resolved = await resolveExperiment(name);
    isThere = true;
    return { text: snapshotText(configure(resolved)) };
  } catch (error) {
    const problem = describeError(error).text;
    // The error lists the available experiments.
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

/** Compares each snapshot with its experiment. */
export const checkSnapshots = (names: readonly string[]): Promise<Entry[]> => eachOf(names, compared);

/** Writes snapshots that differ from their experiments; those of failing experiments stay as they are. */
export async function refreshSnapshots(names: readonly string[]): Promise<Entry[]> {
  return eachOf(names, (name, text) => {
    const entry = compared(name, text);
    if (entry.state === 'current') return entry;
    writeSnapshot(name, text);
    return { ...entry, state: entry.state === 'missing' ? 'new' : 'updated' };
  });
}

async function eachOf(
  names: readonly string[],
  entryOf: (name: string, text: string) => Entry,
): Promise<Entry[]> {
  const entries: Entry[] = [];
  for (const name of names) {
    const found = await evaluate(name);
    entries.push('text' in found ? entryOf(name, found.text) : { name, diff: [], ...found });
  }
  return entries;
}

/** Removes existing snapshots. */
export function removeSnapshots(names: readonly string[]): Entry[] {
  return names.map((name) => {
    removeSnapshot(name);
    return { name, state: 'removed', diff: [] };
  });
}
