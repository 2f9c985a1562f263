/** @file Restoring from one checkpoint directory: all is checked before the first value changes. */

import { closeSync, fstatSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { FlatArray } from '../compiler/index.js';
import { isDamage, type MapFile, openRegularFile, readRegularFile } from '../files/index.js';
import { CheckpointError, ioError } from './checkpointErrors.js';
import { decodeMetadata } from './decodeMetadata.js';
import { stepOfName } from './directory.js';
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
import {
  fileSpec,
  formatPlace,
  STATE_FORMAT,
  STEP_TENSOR,
  stateTensors,
  type TrainState,
  tensorName,
} from './trainState.js';

/** Results of restoring, beside the state. */
export interface CheckpointContents {
  readonly metadata: CheckpointMetadata;
  /** State of the training input when the checkpoint was saved; null when none was saved. */
  readonly inputState: unknown;
  /** `progress` of the save; null when none was saved. */
  readonly progress: unknown;
  /** Variables whose slots are not in the checkpoint, since they were not trained; theirs were left as they are. */
  readonly withoutSlots: readonly string[];
  /** Optional slots that only the state has, which were left as they are, or only the checkpoint. */
  readonly slotsAdded: readonly string[];
  readonly slotsDropped: readonly string[];
  /** Parameters in the mapped file, by path, in the place of those of the state. */
  readonly mapped: Readonly<Record<string, FlatArray>>;
}

export interface ReadOptions {
  /** The experiment that must have written the checkpoint; undefined accepts any. */
  readonly experiment?: string | undefined;
  /** Whether to leave optimizer slots out, as evaluation and decoding do; a slot's name: its values become the parameters. */
  readonly paramsOnly?: boolean | string | undefined;
  /** With `paramsOnly`: maps the file where that is possible, so that parameters are `mapped` and not read into the state. */
  readonly map?: MapFile | undefined;
  /** Slots that the state or the checkpoint may lack. */
  readonly optionalSlots?: readonly string[] | undefined;
}

/**
 * Fills `state` from the checkpoint in `directory`: step, parameters and slots, bit for bit. Slots of variables that have
 * none in the state are skipped.
 *
 * @throws CheckpointError; the state is then untouched
 */
export function readCheckpoint(
  directory: string,
  state: TrainState,
  options: ReadOptions = {},
): CheckpointContents {
  const { paramsOnly = false, optionalSlots = [] } = options;
  const metadata = readMetadata(directory);
  checkIdentity(directory, metadata, options.experiment);
  const wanted = paramsOnly === false ? state : { ...state, slots: {}, slotLayouts: {} };
  const slot = typeof paramsOnly === 'string' ? paramsOnly : null;
  const [saved, ours] =
    paramsOnly === false
      ? [savedSlotNames(metadata, state), Object.keys(state.slotLayouts)]
      : [metadata.slots.filter((name) => name === slot), slot === null ? [] : [slot]];
  const slotsAdded = optionalSlots.filter((name) => ours.includes(name) && !saved.includes(name));
  const slotsDropped = optionalSlots.filter((name) => saved.includes(name) && !ours.includes(name));
  const differences = [
    ...compareVariables(metadata, state),
    ...compareSlots([...saved, ...slotsAdded], [...ours, ...slotsDropped]),
  ];
  if (differences.length === 0) differences.push(...compareSlotsOfVariables(metadata, wanted, optionalSlots));
  if (differences.length > 0) throw differencesError(directory, differences, paramsOnly === false);
  const { inputState, progress } = readBeside(directory, metadata);
  const file = openWholeState(directory, metadata);
  const withoutSlots = new Set<string>();
  const mapped: Record<string, FlatArray> = {};
  try {
    const views = options.map && paramsOnly !== false ? file.map(options.map) : undefined;
    for (const tensor of stateTensors(wanted)) {
      const { variable, data } = tensor;
      if (tensor.slot !== null && slotsAdded.includes(tensor.slot)) continue;
      const slots = slotsOf(metadata, metadata.variables[variable]!);
      if (tensor.slot !== null && slots[tensor.slot] === undefined) withoutSlots.add(variable);
      // The average of a frozen variable is the variable.
      else {
        const source = tensor.slot ?? (slot !== null && slots[slot] !== undefined ? slot : null);
        const name = tensorName(source, variable);
        const view = views?.get(name);
        if (view === undefined) file.readInto(name, data);
        else mapped[variable] = view as FlatArray;
      }
    }
  } catch (cause) {
    throw ioError(file.path, 'cannot be read', cause);
  } finally {
    file.close();
  }
  state.step = metadata.step;
  const skipped = { withoutSlots: [...withoutSlots], slotsAdded, slotsDropped };
  return { metadata, inputState, progress, mapped, ...skipped };
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

export function checkIdentity(
  directory: string,
  metadata: CheckpointMetadata,
  experiment: string | undefined,
): void {
  const named = stepOfName(basename(directory));
  if (named !== undefined && named !== metadata.step) {
    throw new CheckpointError(
      'broken',
      directory,
      `the directory names step ${named}, the state in it step ${metadata.step}`,
    );
  }
  if (experiment !== undefined && metadata.experiment !== experiment) {
    throw new CheckpointError(
      'mismatch',
      directory,
      `written by experiment '${metadata.experiment}', not by '${experiment}'; use another --job_log_dir for this one`,
    );
  }
}

/** Every difference between a checkpoint's variables and a model's, a line each. */
function compareVariables(metadata: CheckpointMetadata, state: TrainState): string[] {
  const lines: string[] = [];
  const ours = new Map(state.layout.entries.map((entry) => [entry.name, entry]));
  for (const [name, { shape, storage = 'float32' }] of ours) {
    const { shape: saved, dtype } = metadata.variables[name] ?? {};
    if (saved === undefined) lines.push(`variable '${name}' [${shape.join(', ')}] is only in the model`);
    else if (saved.length !== shape.length || saved.some((size, axis) => size !== shape[axis])) {
      lines.push(
        `variable '${name}' is [${saved.join(', ')}] in the checkpoint, [${shape.join(', ')}] in the model`,
      );
    } else if (dtype !== storage) {
      lines.push(`variable '${name}' is ${dtype} in the checkpoint, ${storage} in the model`);
    }
  }
  for (const [name, { shape }] of Object.entries(metadata.variables)) {
    if (!ours.has(name)) lines.push(`variable '${name}' [${shape.join(', ')}] is only in the checkpoint`);
  }
  return lines;
}

function compareSlots(saved: readonly string[], ours: readonly string[]): string[] {
  const missing = ours.filter((slot) => !saved.includes(slot));
  const foreign = saved.filter((slot) => !ours.includes(slot));
  return [
    ...missing.map((slot) => `optimizer slot '${slot}' is only in the model`),
    ...foreign.map((slot) => `optimizer slot '${slot}' is only in the checkpoint`),
  ];
}

/** Names of the slots that a variable of the checkpoint has; those of the state where the checkpoint has not been trained. */
function savedSlotNames(metadata: CheckpointMetadata, state: TrainState): string[] {
  if (Object.values(metadata.variables).every(({ isFrozen }) => isFrozen))
    return Object.keys(state.slotLayouts);
  const found = new Set(
    Object.values(metadata.variables).flatMap((each) => Object.keys(slotsOf(metadata, each))),
  );
  return metadata.slots.filter((slot) => found.has(slot));
}

/**
 * Every difference between the slots that variables have in a checkpoint and in a model, a line each. Variables that were
 * not trained before, or are not now, may have any.
 */
function compareSlotsOfVariables(
  metadata: CheckpointMetadata,
  state: TrainState,
  optionalSlots: readonly string[],
): string[] {
  const ours = new Map<string, Map<string, string>>();
  for (const tensor of stateTensors(state)) {
    if (tensor.slot === null || optionalSlots.includes(tensor.slot)) continue;
    const slots = ours.get(tensor.variable) ?? new Map<string, string>();
    ours.set(tensor.variable, slots.set(tensor.slot, formatPlace(tensor)));
  }
  const lines: string[] = [];
  for (const [variable, slots] of ours) {
    const saved = new Map(
      Object.entries(slotsOf(metadata, metadata.variables[variable]!))
        .filter(([slot]) => !optionalSlots.includes(slot))
        .map(([slot, spec]) => [slot, formatPlace(fileSpec(spec))]),
    );
    if (saved.size === 0) continue;
    for (const slot of new Set([...slots.keys(), ...saved.keys()])) {
      const [theirs, own] = [saved.get(slot), slots.get(slot)];
      const name = `slot '${slot}' of '${variable}'`;
      if (theirs === undefined) lines.push(`${name} is only in the model`);
      else if (own === undefined) lines.push(`${name} is only in the checkpoint`);
      else if (theirs !== own) lines.push(`${name} is ${theirs} in the checkpoint, ${own} in the model`);
    }
  }
  return lines;
}

function differencesError(
  directory: string,
  differences: readonly string[],
  trains: boolean,
): CheckpointError {
  const count = differences.length === 1 ? '1 difference' : `${differences.length} differences`;
  const list = differences.map((line) => `\n  ${line}`).join('');
  const partly = trains
    ? ' Training restores what fits with --restore_changed; --restore_changed=dry_run shows what that is.'
    : '';
  const advice = `\nUse another --job_log_dir, or the settings that the checkpoint was trained with.${partly}`;
  return new CheckpointError(
    'mismatch',
    directory,
    `not compatible with this model, ${count}:${list}${advice}`,
  );
}

/** States that were saved beside that of training: of the input, and of the run; null for each that was not. */
export function readBeside(
  directory: string,
  metadata: CheckpointMetadata,
): Pick<CheckpointContents, 'inputState' | 'progress'> {
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

/** Opens the state file, which has the digest and the tensors of metadata.json. @throws CheckpointError */
export function openWholeState(directory: string, metadata: CheckpointMetadata): SafetensorsFile {
  const file = openState(directory, metadata);
  try {
    checkState(file.path, metadata, file.digest(), file.layout.metadata.format !== STATE_FORMAT);
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
