/** @file A batch of host arrays, and the batch that language models read. */

import type { HostTensor } from '../compiler/types.js';

/** What `getNext` gives: arrays by name, nested where an input wishes, the batch always the first dimension. */
export interface Batch {
  readonly [name: string]: HostTensor | Batch;
}

/** An int32 array of rank 2. */
export interface IntArray extends HostTensor {
  readonly dtype: 'int32';
  readonly data: Int32Array;
}

/** A float32 array of rank 2. */
export interface FloatArray extends HostTensor {
  readonly dtype: 'float32';
  readonly data: Float32Array;
}

/**
 * A batch for a language model; every array is [batchSize, seqLen].
 * `labels[b, t]` is the token that follows `ids[b, t]`. `paddings` is 1 where there is no token, `weights` is 1
 * where the label counts. A packed batch holds several documents in a row: `segmentIds` numbers them from 1 (0 is
 * padding), `segmentPos` is the position within the segment.
 */
export interface LmBatch extends Batch {
  readonly ids: IntArray;
  readonly labels: IntArray;
  readonly paddings: FloatArray;
  readonly weights: FloatArray;
}

/** An LmBatch with the segments of packed documents. */
export interface PackedLmBatch extends LmBatch {
  readonly segmentIds: IntArray;
  readonly segmentPos: IntArray;
}

function ints(shape: readonly number[], size: number): IntArray {
  return { shape, dtype: 'int32', data: new Int32Array(size) };
}

function floats(shape: readonly number[], size: number, value: number): FloatArray {
  return { shape, dtype: 'float32', data: new Float32Array(size).fill(value) };
}

/** A batch of nothing but padding: ids and labels 0, weights 0, paddings 1; rows are then written over it. */
export function emptyLmBatch(batchSize: number, seqLen: number): LmBatch {
  const shape = [batchSize, seqLen];
  const size = batchSize * seqLen;
  return {
    ids: ints(shape, size),
    labels: ints(shape, size),
    paddings: floats(shape, size, 1),
    weights: floats(shape, size, 0),
  };
}

/** As `emptyLmBatch`, with segment arrays of zeros. */
export function emptyPackedLmBatch(batchSize: number, seqLen: number): PackedLmBatch {
  const shape = [batchSize, seqLen];
  const size = batchSize * seqLen;
  return {
    ...emptyLmBatch(batchSize, seqLen),
    segmentIds: ints(shape, size),
    segmentPos: ints(shape, size),
  };
}
