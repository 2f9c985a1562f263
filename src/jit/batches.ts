/** @file Batches of layers models: arrays on the host, their rows, and means over them. */
import { type HostArray, type HostTensor, type Tensor, tf } from '../compiler/index.js';

/** Arrays, one for each input, target and sample weight; null where a target has no weights. */
export type Batch = readonly (HostTensor | null | undefined)[];
export type Losses = Promise<readonly HostTensor[]>;

const hostOf = async (tensor: Tensor): Promise<HostTensor> => ({
  shape: tensor.shape,
  dtype: tensor.dtype as HostTensor['dtype'],
  data: (await tensor.data()) as HostArray,
});

export const hostsOf = (tensors: readonly (Tensor | null | undefined)[]): Promise<Batch> =>
  Promise.all(tensors.map((tensor) => (tensor ? hostOf(tensor) : tensor)) as Promise<HostTensor>[]);

/** The rows of arrays at `indices`. */
export function rowsOf(arrays: Batch, indices: ArrayLike<number>): Batch {
  return arrays.map((array) => {
    if (!array) return array;
    const size = array.data.length / array.shape[0]!;
    const data = array.data.slice(0, indices.length * size);
    for (let i = 0; i < indices.length; i++)
      data.set(array.data.subarray(indices[i]! * size, (indices[i]! + 1) * size), i * size);
    return { ...array, shape: [indices.length, ...array.shape.slice(1)], data };
  });
}

export const range = (begin: number, end: number): number[] =>
  Array.from({ length: end - begin }, (_, i) => begin + i);

/** Begin and end of each batch. */
export const batchesOf = (count: number, size: number): [number, number][] =>
  Array.from({ length: Math.ceil(count / size) }, (_, i) => [i * size, Math.min(count, (i + 1) * size)]);

export const single = <T>(items: readonly T[]): T | T[] => (items.length === 1 ? items[0]! : [...items]);

export const listOf = <T>(items: T | readonly T[]): readonly T[] =>
  Array.isArray(items) ? items : [items as T];

/** Losses and metrics of all batches: means over the rows. */
export async function testAll(
  test: (batch: Batch) => Losses,
  arrays: Batch,
  batchSize: number,
): Promise<number[]> {
  const count = arrays[0]!.shape[0]!;
  const sums: number[] = [];
  for (const [begin, end] of batchesOf(count, batchSize)) {
    const losses = await test(rowsOf(arrays, range(begin, end)));
    losses.forEach(({ data }, i) => {
      sums[i] = (sums[i] ?? 0) + (end - begin) * data[0]!;
    });
  }
  return sums.map((sum) => sum / count);
}

/** The rows of all parts, which are disposed of. */
export function joined(parts: Tensor[]): Tensor {
  const whole = tf.concat(parts, 0);
  tf.dispose(parts);
  return whole;
}

/** Disposes of tensors that standardizing made: those that were not given. */
export function disposeMade(tensors: readonly Tensor[], given: unknown): void {
  const own = tf.tensor_util.getTensorsInContainer(given as never);
  for (const tensor of tensors) if (!own.some(({ id }) => id === tensor.id)) tensor.dispose();
}
