/** @file Restoring from one checkpoint directory: all is checked before the first value changes. */
import type { FlatArray } from '../compiler/index.js';
import type { MapFile } from '../files/index.js';
import { openWholeState, readBeside, readMetadata, type StatesBeside } from './checkedFiles.js';
import { ioError } from './checkpointErrors.js';
import { planRestore, type RestorePlan, type WantedParts } from './compatibility.js';
import { type CheckpointMetadata, slotsOf } from './metadata.js';
import { stateTensors, type TrainState, tensorName } from './trainState.js';

/** Results of restoring, beside the state. */
export interface CheckpointContents extends StatesBeside, RestorePlan {
  readonly metadata: CheckpointMetadata;
  /** Parameters in the mapped file, by path, in the place of those of the state. */
  readonly mapped: Readonly<Record<string, FlatArray>>;
}

export interface ReadOptions extends WantedParts {
  /** The experiment that must have written the checkpoint; undefined accepts any. */
  readonly experiment?: string | undefined;
  /** With `paramsOnly`: maps the file where that is possible, so that parameters are `mapped` and not read into the state. */
  readonly map?: MapFile | undefined;
}

/** Reads the state file of a checkpoint that fits, with other processes; each has checked what it has read. */
export type ReadTogether = (directory: string) => Promise<void>;

/**
 * As `readCheckpoint`, for a state that several processes hold in parts.
 *
 * @param read the tensors, into the parts.
 * @throws CheckpointError, and as `read`
 */
export async function readTogether(
  directory: string,
  state: TrainState,
  options: ReadOptions,
  read: ReadTogether,
): Promise<CheckpointContents> {
  const metadata = readMetadata(directory);
  const plan = planRestore(directory, metadata, state, options);
  const beside = readBeside(directory, metadata);
  openWholeState(directory, metadata, true).close();
  await read(directory);
  state.step = metadata.step;
  return { metadata, ...beside, mapped: {}, ...plan };
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
  const { paramsOnly = false } = options;
  const metadata = readMetadata(directory);
  const plan = planRestore(directory, metadata, state, options);
  const wanted = paramsOnly === false ? state : { ...state, slots: {}, slotLayouts: {} };
  const slot = typeof paramsOnly === 'string' ? paramsOnly : null;
  const { inputState, progress } = readBeside(directory, metadata);
  const file = openWholeState(directory, metadata);
  const mapped: Record<string, FlatArray> = {};
  try {
    const views = options.map && paramsOnly !== false ? file.map(options.map) : undefined;
    for (const tensor of stateTensors(wanted)) {
      const { variable, data } = tensor;
      const slots = slotsOf(metadata, metadata.variables[variable]!);
      if (tensor.slot !== null && slots[tensor.slot] === undefined) continue;
      // The average of a frozen variable is the variable.
      const source = tensor.slot ?? (slot !== null && slots[slot] !== undefined ? slot : null);
      const name = tensorName(source, variable);
      const view = views?.get(name);
      if (view === undefined) file.readInto(name, data);
      else mapped[variable] = view as FlatArray;
    }
  } catch (cause) {
    throw ioError(file.path, 'cannot be read', cause);
  } finally {
    file.close();
  }
  state.step = metadata.step;
  return { metadata, inputState, progress, mapped, ...plan };
}
