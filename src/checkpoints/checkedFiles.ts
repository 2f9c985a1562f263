/** @file Files of a checkpoint, each checked against metadata.json as it is read. */
import { closeSync, fstatSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isDamage, openRegularFile, readRegularFile } from '../files/index.js';
import { CheckpointError, ioError } from './checkpointErrors.js';
import { decodeMetadata } from './decodeMetadata.js';
import type { FileDigest } from './durableFile.js';
import {
  type CheckpointMetadata,
  checkDigest,
  digestOfBytes,
  METADATA_FILE,
  PROGRESS_FILE,
  STATE_FILE,
  slotsOf,
  TRAIN_INPUT_FILE,
} from './metadata.js';
import { SafetensorsFile } from './safetensorsFile.js';
import { fileSpec, formatPlace, STATE_FORMAT, STEP_TENSOR, tensorName } from './trainState.js';

/** States that may be saved beside that of training. */
export interface StatesBeside {
  /** State of the training input when the checkpoint was saved; null when none was saved. */
  readonly inputState: unknown;
  /** `progress` of the save; null when none was saved. */
  readonly progress: unknown;
}

/** Most bytes of metadata.json: more than a million variables take. */
const LONGEST_METADATA = 1 << 28;

/** Contents of metadata.json, checked against its own digest. */
export function readMetadata(directory: string): CheckpointMetadata {
  const status = read(directory, () => statSync(directory));
  if (!status.isDirectory()) throw new CheckpointError('broken', directory, 'it is not a directory');
  const path = join(directory, METADATA_FILE);
  return decodeMetadata(
    path,
    read(path, () => readRegularFile(path, LONGEST_METADATA)),
  );
}

/** States that were saved beside that of training: of the input, and of the run; null for each that was not. */
export function readBeside(directory: string, metadata: CheckpointMetadata): StatesBeside {
  const read = (name: string) => readJson(directory, name, metadata);
  return { inputState: read(TRAIN_INPUT_FILE), progress: read(PROGRESS_FILE) };
}

/** A text that was saved beside the state; null if there is none. */
function readJson(directory: string, name: string, metadata: CheckpointMetadata): unknown {
  const expected = metadata.files[name];
  if (expected === undefined) return null;
  const path = join(directory, name);
  const bytes = read(path, () => readRegularFile(path));
  checkDigest(path, expected, digestOfBytes(bytes));
  try {
    return JSON.parse(bytes.toString());
  } catch (cause) {
    throw new CheckpointError('broken', path, `it is not JSON: ${(cause as Error).message}`, { cause });
  }
}

/** Whether all files of a checkpoint are there, of the lengths in its metadata.json; their contents are not read. */
export function isComplete(directory: string): boolean {
  try {
    const { files } = readMetadata(directory);
    return Object.entries(files).every(
      ([name, { byteLength }]) => statSync(join(directory, name)).size === byteLength,
    );
  } catch {
    return false;
  }
}

/**
 * Opens the state file, which has the digest and the tensors of metadata.json.
 *
 * @param leavesChunks whether digests of chunks are left to whoever reads those. @throws CheckpointError
 */
export function openWholeState(
  directory: string,
  metadata: CheckpointMetadata,
  leavesChunks = false,
): SafetensorsFile {
  const file = openState(directory, metadata);
  try {
    const chunk = metadata.files[STATE_FILE]!.chunks?.byteLength;
    if (!leavesChunks || chunk === undefined)
      checkState(file.path, metadata, file.digest(chunk), file.layout.metadata.format !== STATE_FORMAT);
    checkTensors(file, metadata);
    return file;
  } catch (cause) {
    file.close();
    throw ioError(file.path, 'cannot be read', cause);
  }
}

/** Opens the state file; a wrong length is reported against that in metadata.json. */
function openState(directory: string, metadata: CheckpointMetadata): SafetensorsFile {
  const path = join(directory, STATE_FILE);
  const expected = metadata.files[STATE_FILE];
  return read(path, () => {
    const file = openRegularFile(path);
    try {
      checkState(path, metadata, { byteLength: fstatSync(file).size, sha256: expected?.sha256 ?? '' }, true);
    } finally {
      closeSync(file);
    }
    return new SafetensorsFile(path);
  });
}

/**
 * Checks the state file's digest.
 *
 * @param mayBeForeign whether a file that is whole may be another program's, with an order and padding of its own.
 */
function checkState(
  path: string,
  metadata: CheckpointMetadata,
  found: FileDigest,
  mayBeForeign: boolean,
): void {
  try {
    checkDigest(path, metadata.files[STATE_FILE], found);
  } catch (error) {
    if (!mayBeForeign || !hasTensors(path, metadata)) throw error;
    const problem =
      `another program has rewritten it, so it is not the file described by ${METADATA_FILE}; its values can be ` +
      'loaded by the path of the file itself, in train.initFromCheckpoint';
    throw new CheckpointError('broken', path, problem, { cause: error });
  }
}

function hasTensors(path: string, metadata: CheckpointMetadata): boolean {
  let file: SafetensorsFile | undefined;
  try {
    file = new SafetensorsFile(path);
    checkTensors(file, metadata);
    return true;
  } catch {
    return false;
  } finally {
    file?.close();
  }
}

/** Checks that the state file has the tensors of metadata.json: the step, and each variable as parameter and slots. */
function checkTensors(file: SafetensorsFile, metadata: CheckpointMetadata): void {
  const step = file.place(STEP_TENSOR)?.dtype === 'I64' ? file.read(STEP_TENSOR)[0] : undefined;
  if (step !== BigInt(metadata.step)) {
    throw new CheckpointError('broken', file.path, `expected step ${metadata.step}, found ${step ?? 'none'}`);
  }
  for (const [variable, saved] of Object.entries(metadata.variables)) {
    for (const [slot, spec] of [[null, saved] as const, ...Object.entries(slotsOf(metadata, saved))]) {
      const name = tensorName(slot, variable);
      const place = file.place(name);
      const found = place === undefined ? 'nothing' : formatPlace(place);
      const expected = formatPlace(fileSpec(spec));
      if (found !== expected) {
        throw new CheckpointError(
          'broken',
          file.path,
          `tensor '${name}': expected ${expected}, found ${found}`,
        );
      }
    }
  }
}

/**
 * Reads a file of a checkpoint.
 *
 * @throws CheckpointError: `broken` where the file is missing or no file, `io` where the system refuses it, since the
 *   checkpoint may be whole then.
 */
function read<T>(path: string, reading: () => T): T {
  try {
    return reading();
  } catch (cause) {
    if (cause instanceof CheckpointError || !isDamage(cause)) throw ioError(path, 'cannot be read', cause);
    const isMissing = (cause as NodeJS.ErrnoException).code === 'ENOENT';
    const problem = isMissing ? 'the file is missing' : (cause as Error).message;
    throw new CheckpointError('broken', path, problem, { cause });
  }
}
