/** @file A batch of host arrays, and the batch that language models read. */

import { type HostTensor, sizeOf, type TensorSpec } from '../compiler/types.js';

/** What `getNext` gives: arrays by name, nested where an input wishes, the batch always the first dimension. */
export interface Batch {
  readonly [name: string]: HostTensor | Batch;
}

/** Shapes and dtypes of a batch, by the names that it has. */
export interface BatchSpecs {
  readonly [name: string]: TensorSpec | BatchSpecs;
}

/** What a batch counts as: its label positions (rows times length), or its rows where it has no token ids. */
export interface BatchCount {
  readonly count: number;
  readonly unit: 'tokens' | 'examples';
}

function isSpec(value: TensorSpec | BatchSpecs): value is TensorSpec {
  return Array.isArray(value.shape) && typeof value.dtype === 'string';
}

/** The shape of the first array of a batch, in its order. */
function firstShape(specs: BatchSpecs): readonly number[] | undefined {
  for (const value of Object.values(specs)) {
    const shape = isSpec(value) ? value.shape : firstShape(value);
    if (shape) return shape;
  }
  return undefined;
}

/** How many tokens, or else examples, a batch with these specs has. */
export function batchCount(specs: BatchSpecs): BatchCount {
  const { ids } = specs;
  if (ids && isSpec(ids)) return { count: sizeOf(ids.shape), unit: 'tokens' };
  const [rows = 1] = firstShape(specs) ?? [];
  return { count: rows, unit: 'examples' };
}

/** Whether an entry of a batch is an array, and not a batch of its own. */
export function isHostTensor(value: HostTensor | Batch): value is HostTensor {
  return ArrayBuffer.isView((value as HostTensor).data);
}

/** Shapes and dtypes of a batch that is there. */
export function specsOf(batch: Batch): BatchSpecs {
  return Object.fromEntries(
    Object.entries(batch).map(([name, value]) => {
      const { shape, dtype } = value as HostTensor;
      return [name, isHostTensor(value) ? { shape: [...shape], dtype } : specsOf(value)];
    }),
  );
}

/** The memory of a batch's arrays. */
export function batchBytes(batch: Batch): number {
  const sizes = Object.values(batch).map((value) =>
    isHostTensor(value) ? value.data.byteLength : batchBytes(value),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
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

const int32 = (shape: readonly number[]) => ({ shape, dtype: 'int32' as const });
const float32 = (shape: readonly number[]) => ({ shape, dtype: 'float32' as const });

/** Specs of an LmBatch, or of a PackedLmBatch. */
export function lmBatchSpecs(batchSize: number, seqLen: number, packed = false): BatchSpecs {
  const shape = [batchSize, seqLen];
  return {
    ids: int32(shape),
    labels: int32(shape),
    paddings: float32(shape),
    weights: float32(shape),
    ...(packed && { segmentIds: int32(shape), segmentPos: int32(shape) }),
  };
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
