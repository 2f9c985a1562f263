/** @file Arrays of the sequences of a row: ids, labels, paddings, weights, segments. */
import { type BatchSpecs, lmBatchSpecs, type PackedLmBatch } from '../batch.js';

/** Specs of sequences that are read, each [batchSize, length]. */
export function encoderSpecs(batchSize: number, length: number): BatchSpecs {
  const { labels: _, weights: __, ...read } = lmBatchSpecs(batchSize, length, true);
  return read;
}

/** Arrays of sequences that are read. */
export type SequenceArrays = Pick<PackedLmBatch, 'ids' | 'paddings' | 'segmentIds' | 'segmentPos'>;

/** 0, 1, 2, … as far as a segment has needed them: arrays are copied many times faster than they are counted up. */
let counting = new Int32Array(0);

function positions(size: number): Int32Array {
  if (counting.length < size) counting = Int32Array.from({ length: 2 * size }, (_, t) => t);
  return counting.subarray(0, size);
}

/** Marks positions `at` … `at + size` − 1 as segment number `segment`, from 1 on. */
export function markSegment(arrays: SequenceArrays, at: number, size: number, segment: number): void {
  arrays.paddings.data.fill(0, at, at + size);
  arrays.segmentIds.data.fill(segment, at, at + size);
  arrays.segmentPos.data.set(positions(size), at);
}

/** Writes labels, and as `ids` the decoder's inputs to predict them: each label's predecessor, `previous` first. */
export function writePredicted(
  { ids, labels }: PackedLmBatch,
  at: number,
  tokens: Int32Array,
  previous: number,
): void {
  if (tokens.length === 0) return;
  labels.data.set(tokens, at);
  ids.data[at] = previous;
  ids.data.set(tokens.subarray(0, -1), at + 1);
}

/** Stands for -0, which int32 lacks. */
const MINUS_ZERO = -(2 ** 31);

/** Marks a target whose label is not to count: the negative of its id. */
export const uncounted = (id: number): number => (id === 0 ? MINUS_ZERO : -id);

/** The id of a target, marked or not. */
export const targetId = (token: number): number => (token === MINUS_ZERO ? 0 : Math.abs(token));

/** Whether a token is below 0. */
export function hasNegative(tokens: Int32Array): boolean {
  let bits = 0;
  for (let t = 0; t < tokens.length; t++) bits |= tokens[t]!;
  return bits < 0;
}
