/** @file Writes one checkpoint directory: aside first, on the disk, then renamed. Runs in the save worker. */

import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isThere, makeDirectory, removeQuietly, syncDirectory } from '../files/index.js';
import { checkpointName, replacedName, temporaryName } from './directory.js';
import { type CheckpointDescription, encodeMetadata, METADATA_FILE, STATE_FILE } from './metadata.js';
import { type FileDigest, writeFileDurably } from './safetensorsFile.js';

/** Everything that a save needs, in a form that crosses to a worker thread without copying the weights. */
export interface WriteRequest {
  readonly directory: string;
  readonly description: CheckpointDescription;
  /** The state file: its header, then its data section. */
  readonly prefix: Uint8Array;
  readonly data: SharedArrayBuffer;
  /** Texts that are saved beside the state, by file name. */
  readonly texts: Readonly<Record<string, string>>;
  /** A checkpoint that stands where this one goes: replaced by it, or set aside under this other name. */
  readonly existing: { readonly name: string; readonly setAside: string | null } | null;
  /** Names of checkpoints to let go once this one is safe. */
  readonly letGo: readonly string[];
  /** Where they are moved, or null to delete them. */
  readonly letGoTo: string | null;
}

/**
 * Writes the files to a temporary directory, waits for the disk, and renames. Whatever goes wrong, the directory's
 * listed checkpoints stay as they were.
 */
export function writeCheckpoint(request: WriteRequest): void {
  const { directory, description, existing } = request;
  const temporary = join(directory, temporaryName(description.step));
  const final = join(directory, checkpointName(description.step));
  try {
    makeDirectory(directory);
    mkdirSync(temporary);
    writeFiles(temporary, request);
    syncDirectory(temporary);
    if (existing === null) renameSync(temporary, final);
    else renameOver(directory, existing, temporary, final);
    syncDirectory(directory);
  } catch (error) {
    removeQuietly(temporary);
    throw error;
  }
}

function writeFiles(temporary: string, request: WriteRequest): void {
  const files: Record<string, FileDigest> = {};
  const data = new Uint8Array(request.data);
  files[STATE_FILE] = writeFileDurably(join(temporary, STATE_FILE), [request.prefix, data]);
  for (const [name, text] of Object.entries(request.texts))
    files[name] = writeText(join(temporary, name), text);
  writeText(join(temporary, METADATA_FILE), encodeMetadata({ ...request.description, files }));
}

function renameOver(
  directory: string,
  existing: NonNullable<WriteRequest['existing']>,
  temporary: string,
  final: string,
): void {
  const old = join(directory, existing.name);
  // No system call swaps two directories portably; a crash between the two renames is mended at the next start.
  const aside = existing.setAside ?? replacedName(checkpointName(Number(/\d+$/.exec(existing.name)![0])));
  renameSync(old, join(directory, aside));
  try {
    renameSync(temporary, final);
  } catch (error) {
    renameSync(join(directory, aside), old);
    throw error;
  }
  // The next start removes what stays.
  if (existing.setAside === null) removeQuietly(join(directory, aside));
}

/** An old checkpoint that could not be let go. */
export interface KeptCheckpoint {
  readonly name: string;
  readonly error: unknown;
}

/** Moves or deletes the checkpoints that are no longer wanted. @returns those for which it failed. */
export function letGo({ directory, letGo, letGoTo }: WriteRequest): KeptCheckpoint[] {
  return letGo.flatMap((name) => {
    try {
      letOneGo(directory, name, letGoTo);
      return [];
    } catch (error) {
      return [{ name, error }];
    }
  });
}

function letOneGo(directory: string, name: string, to: string | null): void {
  const path = join(directory, name);
  if (!isThere(path)) return;
  if (to !== null) {
    makeDirectory(join(directory, to));
    renameSync(path, join(directory, to, name));
    return;
  }
  // Renamed first: a checkpoint that lost only some of its files must not look like a whole one.
  const going = join(directory, temporaryName(Number(/\d+$/.exec(name)![0])));
  renameSync(path, going);
  rmSync(going, { recursive: true });
}

function writeText(path: string, text: string): FileDigest {
  return writeFileDurably(path, [Buffer.from(text)]);
}
