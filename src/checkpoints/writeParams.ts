/** @file A checkpoint of parameters whose values are made while they are written. */
import { join } from 'node:path';
import { ioError } from './checkpointErrors.js';
import { checkpointName } from './directory.js';
import { writeFileDurably } from './durableFile.js';
import { loadTransposition } from './elementOrder.js';
import { describeState } from './metadata.js';
import { PIECE_BYTES, type Piece, piecesOf, writePipelined } from './pipelinedFile.js';
import { encodePrefix, placeTensors } from './safetensors.js';
import { fileSpec, STATE_FORMAT, STEP_TENSOR, type StateLayout, tensorName } from './trainState.js';
import { writeCheckpoint } from './writeCheckpoint.js';

/** Bytes below which a file is written before the thread and the machine code for a large one are there. */
const SMALL = 1 << 24;

/** Parameters of a checkpoint. */
export interface WrittenParams {
  /** The directory of checkpoints. */
  readonly directory: string;
  readonly experiment: string;
  readonly layout: StateLayout;
  /** A variable's elements in their order, as its storage holds them; pieces are made one after the other. */
  readonly values: (variable: string) => Iterable<Piece>;
}

/**
 * Writes the checkpoint of step 0: no more of the values is in memory than a few pieces. Variables have no slots, so that training
 * from there begins with the optimizer's state of a first step.
 *
 * @throws CheckpointError where it can't be written, and as `values` does; no checkpoint is then left
 */
export async function writeParams({ directory, experiment, layout, values }: WrittenParams): Promise<void> {
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
  function* state(): Generator<Piece> {
    yield* piecesOf(encodePrefix(file));
    for (const { name } of file.tensors)
      if (name === STEP_TENSOR) yield* piecesOf(new Uint8Array(BigInt64Array.BYTES_PER_ELEMENT));
      else yield* values(variables.get(name)!.name);
  }
  try {
    const isSmall = file.byteLength < SMALL;
    if (!isSmall) await loadTransposition();
    const writeState = (path: string) =>
      isSmall ? writeFileDurably(path, made(state())) : writePipelined(path, state());
    await writeCheckpoint({ directory, description, writeState, texts: {}, broken: null });
  } catch (cause) {
    throw ioError(join(directory, checkpointName(0)), 'cannot be written', cause);
  }
}

/** The bytes of pieces, each of which is made when its turn comes. */
function* made(pieces: Iterable<Piece>): Generator<Uint8Array> {
  const memory = new SharedArrayBuffer(PIECE_BYTES);
  for (const { byteLength, write } of pieces) {
    const bytes = new Uint8Array(memory, 0, byteLength);
    write(bytes);
    yield bytes;
  }
}
