/** @file A batch of host arrays, and the batch that language models read. */

import { type HostTensor, sizeOf, type TensorSpec, type Tree } from '../compiler/program/index.js';

/** A batch: arrays by name, nested where an input likes, each with the batch as its first dimension. */
export interface Batch {
  readonly [name: string]: HostTensor | Batch;
}

/** Shapes and dtypes of a batch, nested as it is. */
export interface BatchSpecs {
  readonly [name: string]: TensorSpec | BatchSpecs;
}

/** The unit of an input's throughput: its plural, and the leading dimensions of a batch that count it. */
export interface BatchUnit {
  /** As in `images_per_sec`. */
  readonly unit: string;
  /** 1 counts the rows of a batch; 2 the positions of its rows. */
  readonly dims: number;
}

/** Positions of rows [batchSize, seqLen], padding included. */
export const TOKEN_UNIT: BatchUnit = { unit: 'tokens', dims: 2 };

/** Number of units in a batch. */
export interface BatchCount {
  readonly count: number;
  readonly unit: string;
}

/** Whether an entry of a batch's specs is an array's. */
function isSpec(value: TensorSpec | BatchSpecs): value is TensorSpec {
  return Array.isArray(value.shape) && typeof value.dtype === 'string';
}

/** The shape of a batch's first array. */
function firstShape(specs: BatchSpecs): readonly number[] | undefined {
  for (const value of Object.values(specs)) {
    const shape = isSpec(value) ? value.shape : firstShape(value);
    if (shape) return shape;
  }
  return undefined;
}

/** Units in a batch with these specs, by the shape of its first array. */
export function batchCount(specs: BatchSpecs, { unit, dims }: BatchUnit, hosts = 1): BatchCount {
  return { count: hosts * sizeOf((firstShape(specs) ?? []).slice(0, dims)), unit };
}

/** Whether an entry of a batch is an array, not a nested batch. */
function isHostTensor(value: HostTensor | Batch): value is HostTensor {
  return ArrayBuffer.isView((value as HostTensor).data);
}

/** The arrays of a batch with their paths (`outer.inner`), in the batch's order. */
export function* arraysOf(batch: Batch, prefix = ''): Generator<readonly [path: string, array: HostTensor]> {
  for (const [name, value] of Object.entries(batch)) {
    if (isHostTensor(value)) yield [prefix + name, value];
    else yield* arraysOf(value, `${prefix}${name}.`);
  }
}

/** A structure like a batch, with each of its arrays mapped. */
export function mapBatch<T>(batch: Batch, map: (array: HostTensor, path: string) => T, prefix = ''): Tree<T> {
  return Object.fromEntries(
    Object.entries(batch).map(([name, value]) => [
      name,
      isHostTensor(value) ? map(value, prefix + name) : mapBatch(value, map, `${prefix}${name}.`),
    ]),
  );
}

/** A structure like specs, with each array's mapped. @param map gets the array's name, too, without its path */
export function mapSpecs<T>(specs: BatchSpecs, map: (spec: TensorSpec, name: string) => T): Tree<T> {
  return Object.fromEntries(
    Object.entries(specs).map(([name, value]) => [
      name,
      isSpec(value) ? map(value, name) : mapSpecs(value, map),
    ]),
  );
}

/** Shapes and dtypes of a batch. */
export function specsOf(batch: Batch): BatchSpecs {
  return mapBatch(batch, ({ shape, dtype }) => ({ shape: [...shape], dtype })) as BatchSpecs;
}

/** Bytes of a batch's arrays. */
export function batchBytes(batch: Batch): number {
  return [...arraysOf(batch)].reduce((sum, [, { data }]) => sum + data.byteLength, 0);
}

/** An int32 array of rank 2. */
interface IntArray extends HostTensor {
  readonly dtype: 'int32';
  readonly data: Int32Array;
}

/** A float32 array of rank 2. */
interface FloatArray extends HostTensor {
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
