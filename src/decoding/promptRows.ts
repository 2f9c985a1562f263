/** @file Rows of prompts and decoded tensors: checked, repeated, reordered, split by sample. */
import type { PrngKey } from '../compiler/index.js';
import type { Float32Tensor, Int32Tensor, Prompts } from './decodingModel.js';

/** The 53 high bits of a key as a number in [0, 1). */
export const unitDouble = ([high, low]: PrngKey): number => ((high >>> 5) * 2 ** 26 + (low >>> 6)) * 2 ** -53;

/** Every row `times` times, one after the other: [B, …] to [B * times, …]. */
export function repeatRows(tensor: Int32Tensor, times: number): Int32Tensor {
  const [rows = 0] = tensor.shape;
  return takeRows(
    tensor,
    Array.from({ length: rows * times }, (_, i) => Math.trunc(i / times)),
  );
}

/** Rows 0, n, 2 n … of `ids` [rows, count]: of `repeatRows`, its argument. */
export function everyNth(ids: Int32Array, count: number, n: number): Int32Array {
  return ids.filter((_, i) => Math.floor(i / count) % n === 0);
}

/** The first `count` columns of ids [rows, columns], row by row. */
export function takeColumns({ shape, data }: Int32Tensor, count: number): Int32Array {
  const [, columns] = shape as [number, number];
  return data.filter((_, i) => i % columns < count);
}

/** The rows of `tensor` with these indices, in this order. */
export function takeRows<T extends Int32Tensor | Float32Tensor>(tensor: T, rows: readonly number[]): T {
  const width = tensor.shape.slice(1).reduce((product, dim) => product * dim, 1);
  const data =
    tensor.dtype === 'int32' ? new Int32Array(rows.length * width) : new Float32Array(rows.length * width);
  for (const [to, from] of rows.entries())
    data.set(tensor.data.subarray(from * width, (from + 1) * width), to * width);
  return { ...tensor, shape: [rows.length, ...tensor.shape.slice(1)], data };
}

/** [B * numSamples, …] to [B, numSamples, …]. */
export function splitRows<T extends Int32Tensor | Float32Tensor>(tensor: T, numSamples: number): T {
  const [rows = 0, ...rest] = tensor.shape;
  return { ...tensor, shape: [rows / numSamples, numSamples, ...rest] };
}

/** Indices of rows, the samples of each prompt by the sum of their log-probabilities, best first. */
export function bestFirst(logprobs: Float32Tensor, numSamples: number): number[] {
  const [rows = 0, length = 0] = logprobs.shape;
  const scores = Array.from({ length: rows }, (_, row) =>
    logprobs.data
      .subarray(row * length, (row + 1) * length)
      // 1 marks positions that were not drawn.
      .reduce((sum, logprob) => (logprob >= 1 ? sum : sum + logprob), 0),
  );
  const best = (a: number, b: number) => scores[b]! - scores[a]! || a - b;
  return Array.from({ length: rows / numSamples }, (_, prompt) =>
    Array.from({ length: numSamples }, (_, sample) => prompt * numSamples + sample).sort(best),
  ).flat();
}

/** @throws RangeError where prompts have no tokens, lengths do not fit them, or they are longer than `seqlen`. */
export function checkPrompts({ prefixIds, prefixLengths }: Prompts, seqlen: number): void {
  const [rows, size] = prefixIds.shape;
  if (prefixIds.shape.length !== 2 || !size || rows !== prefixLengths.data.length) {
    throw new RangeError(
      `decode: prefixIds must be [B, P] with P > 0 and prefixLengths [B], ` +
        `got [${prefixIds.shape.join(', ')}] and [${prefixLengths.shape.join(', ')}].`,
    );
  }
  for (const [row, length] of prefixLengths.data.entries()) {
    if (length >= 0 && length <= Math.min(size, seqlen)) continue;
    throw new RangeError(
      `decode: prompt ${row} has ${length} tokens; prefixIds has room for ${size} and the output (seqlen) for ${seqlen}.`,
    );
  }
}
