/** @file A checkpoint of parameters whose values are made while they are written. */
import { join } from 'node:path';
import type { FlatArray } from '../compiler/index.js';
import { ioError } from './checkpointErrors.js';
import { checkpointName } from './directory.js';
import { describeState } from './metadata.js';
import { encodePrefix, placeTensors } from './safetensors.js';
import { fileSpec, STATE_FORMAT, STEP_TENSOR, type StateLayout, tensorName } from './trainState.js';
import { writeCheckpoint } from './writeCheckpoint.js';

/** Parameters of a checkpoint. */
export interface WrittenParams {
  /** The directory of checkpoints. */
  readonly directory: string;
  readonly experiment: string;
  readonly layout: StateLayout;
  /** A variable's elements in their order, as its storage holds them, in pieces that may be overwritten by the next ones. */
  readonly values: (variable: string) => Iterable<FlatArray>;
}

/**
 * Writes the checkpoint of step 0: no more of the values is in memory than one piece. Variables have no slots, so that training
 * from there begins with the optimizer's state of a first step.
 *
 * @throws CheckpointError where it can't be written, and as `values` does; no checkpoint is then left
 */
export function writeParams({ directory, experiment, layout, values }: WrittenParams): void {
  const none = { entries: [], size: 0 };
  const description = describeState(
    { step: 0, layout, changing: none, slotLayouts: {} },
    experiment,
    new Date(),
    {},
  );
  const variables = new Map(layout.entries.map((entry) => [tensorName(null, entry.name), entry]));
  const specs = [...variables].map(([name, { shape, storage }]) => ({
    name,
    ...fileSpec({ dtype: storage ?? 'float32', shape }),
  }));
  const file = placeTensors([{ name: STEP_TENSOR, dtype: 'I64', shape: [] }, ...specs], {
    format: STATE_FORMAT,
  });
  function* state(): Generator<ArrayBufferView> {
    yield encodePrefix(file);
    for (const { name } of file.tensors)
      if (name === STEP_TENSOR) yield BigInt64Array.of(0n);
      else yield* values(variables.get(name)!.name);
  }
  try {
    writeCheckpoint({ directory, description, state: state(), texts: {}, broken: null });
  } catch (cause) {
    throw ioError(join(directory, checkpointName(0)), 'cannot be written', cause);
  }
}
