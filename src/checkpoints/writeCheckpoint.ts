/** @file Writing one checkpoint directory in the save worker: under a temporary name first, then renamed. */

import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { isThere, makeDirectory, removeQuietly, syncDirectory } from '../files/index.js';
import { checkpointName, stepOfName, temporaryName } from './directory.js';
import { type FileDigest, writeFileDurably } from './durableFile.js';
import type { FilePart } from './filePart.js';
import { unlessLeased } from './leases.js';
import { type CheckpointDescription, encodeMetadata, METADATA_FILE, STATE_FILE } from './metadata.js';

/** A checkpoint to write. */
interface CheckpointFiles {
  readonly directory: string;
  readonly description: CheckpointDescription;
  /** Writes the state file, which is on the disk then. */
  readonly writeState: (path: string) => FileDigest | Promise<FileDigest>;
  /** Texts that are saved beside the state, by file name. */
  readonly texts: Readonly<Record<string, string>>;
  /** A broken checkpoint of the same step, and the name that it is moved to. */
  readonly broken: { readonly name: string; readonly aside: string } | null;
  /** The unfinished checkpoint, where it has been begun. */
  readonly unfinished?: string;
}

/** A state's file: its header and its data section, or the part of it that the first of several processes writes. */
type StateContent = { readonly prefix: Uint8Array; readonly data: SharedArrayBuffer } | FilePart;

/** A save, in a form that crosses to a worker thread without copying the weights. */
export interface WriteRequest extends Omit<CheckpointFiles, 'writeState'> {
  readonly state: StateContent;
  /** Names of checkpoints to delete once this one is safe. */
  readonly toDelete: readonly string[];
  /** Directory that they are moved to instead; null: they are deleted. */
  readonly toDeleteDirectory: string | null;
}

/**
 * Writes the files to a temporary directory, waits for the disk, and renames. Whatever goes wrong, the directory's
 * listed checkpoints stay as they were.
 */
export async function writeCheckpoint(files: CheckpointFiles): Promise<void> {
  const { directory, description, broken, unfinished } = files;
  const temporary = unfinished ?? join(directory, temporaryName(description.step));
  const final = join(directory, checkpointName(description.step));
  try {
    if (unfinished === undefined) beginCheckpoint(directory, temporary);
    await writeFiles(temporary, files);
    syncDirectory(temporary);
    if (broken === null) renameSync(temporary, final);
    else renameOver(join(directory, broken.name), join(directory, broken.aside), temporary, final);
    syncDirectory(directory);
  } catch (error) {
    removeQuietly(temporary);
    throw error;
  }
}

/** Creates the directory of an unfinished checkpoint. */
export function beginCheckpoint(directory: string, temporary: string): void {
  makeDirectory(directory);
  mkdirSync(temporary);
}

async function writeFiles(temporary: string, { writeState, texts, description }: CheckpointFiles) {
  const files: Record<string, FileDigest> = {};
  files[STATE_FILE] = await writeState(join(temporary, STATE_FILE));
  for (const [name, text] of Object.entries(texts)) files[name] = writeText(join(temporary, name), text);
  writeText(join(temporary, METADATA_FILE), encodeMetadata({ ...description, files }));
}

function renameOver(old: string, aside: string, temporary: string, final: string): void {
  renameSync(old, aside);
  try {
    renameSync(temporary, final);
  } catch (error) {
    renameSync(aside, old);
    throw error;
  }
}

/** A checkpoint that could not be deleted. */
export interface KeptCheckpoint {
  readonly name: string;
  readonly error: unknown;
}

/**
 * Deletes the checkpoints that are no longer wanted, or moves them to another directory. One that is being read stays; the
 * next save asks again.
 *
 * @returns those for which it failed.
 */
export function deleteOld({ directory, toDelete, toDeleteDirectory }: WriteRequest): KeptCheckpoint[] {
  return toDelete.flatMap((name) => {
    try {
      const path = join(directory, name);
      const remove = () =>
        toDeleteDirectory === null ? erase(directory, name) : moveAside(path, toDeleteDirectory);
      if (isThere(path)) unlessLeased(path, remove);
      return [];
    } catch (error) {
      return [{ name, error }];
    }
  });
}

function erase(directory: string, name: string): void {
  // Renamed first: a checkpoint that lost only some of its files must not look like a whole one.
  const going = join(directory, temporaryName(stepOfName(name)!));
  renameSync(join(directory, name), going);
  rmSync(going, { recursive: true });
}

function moveAside(path: string, to: string): void {
  makeDirectory(to);
  renameSync(path, freeName(join(to, basename(path))));
}

/** A path, with a number behind where it is taken. */
function freeName(path: string): string {
  let free = path;
  for (let copy = 2; isThere(free); copy++) free = `${path}_${copy}`;
  return free;
}

function writeText(path: string, text: string): FileDigest {
  return writeFileDurably(path, [Buffer.from(text)]);
}
