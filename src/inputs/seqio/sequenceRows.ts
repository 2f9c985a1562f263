/** @file Arrays of the sequences of a row: ids, labels, paddings, weights, segments. */
import type { HostTensor } from '../../compiler/tensors.js';
import type { Batch, BatchSpecs } from '../batch.js';

/** Arrays of sequences, each [batchSize, length]; those that a batch lacks are not written. */
type SequenceArrays = Readonly<Record<string, HostTensor | Batch | undefined>>;

/** A sequence of a segment. */
export interface Sequence {
  readonly ids: Int32Array;
  readonly labels?: Int32Array;
  readonly weights?: Float32Array;
  /** 1 for tokens of the inputs. */
  readonly inputsIndicator?: Int32Array;
}

const int32 = (shape: readonly number[]) => ({ shape, dtype: 'int32' as const });
const float32 = (shape: readonly number[]) => ({ shape, dtype: 'float32' as const });

/** Specs of sequences that are read, each [batchSize, length]. */
export function encoderSpecs(batchSize: number, length: number): BatchSpecs {
  const shape = [batchSize, length];
  return { ids: int32(shape), paddings: float32(shape), segmentIds: int32(shape), segmentPos: int32(shape) };
}

/** Specs of sequences that are predicted, each [batchSize, length]. */
export function decoderSpecs(batchSize: number, length: number): BatchSpecs {
  const shape = [batchSize, length];
  const { ids, paddings, ...segments } = encoderSpecs(batchSize, length) as Required<BatchSpecs>;
  return { ids: ids!, labels: int32(shape), paddings: paddings!, weights: float32(shape), ...segments };
}

const dataOf = (array: HostTensor | Batch | undefined) =>
  (array as HostTensor | undefined)?.data as Int32Array | Float32Array | undefined;

/** Writes the sequences of a row, `length` positions long, behind one another, as segments from 1 on. */
export function writeSequences(
  arrays: SequenceArrays,
  b: number,
  length: number,
  sequences: readonly Sequence[],
): void {
  let at = b * length;
  for (const [s, sequence] of sequences.entries()) {
    const size = sequence.ids.length;
    for (const [name, values] of Object.entries(sequence)) dataOf(arrays[name])?.set(values, at);
    dataOf(arrays.paddings)!.fill(0, at, at + size);
    dataOf(arrays.segmentIds)!.fill(s + 1, at, at + size);
    const positions = dataOf(arrays.segmentPos)!;
    for (let t = 0; t < size; t++) positions[at + t] = t;
    at += size;
  }
}

/** What a decoder reads to predict `labels`: each token's predecessor, `bosId` first. */
export function autoregressiveInputs(labels: Int32Array, bosId: number): Int32Array {
  const ids = new Int32Array(labels.length);
  ids.set(labels.subarray(0, -1), 1);
  if (ids.length > 0) ids[0] = bosId;
  return ids;
}
