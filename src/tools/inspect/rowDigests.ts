/** @file Digests of the rows of a batch, by which rows of different hosts are compared. */
import { createHash } from 'node:crypto';
import type { HostTensor } from '../../compiler/tensors.js';
import { arraysOf, type Batch } from '../../inputs/index.js';

type RowPart = readonly [name: string, values: HostTensor['data']];

/**
 * Whether a row is padding. Where the batch has weights: of no weight, and without a token. Elsewhere: as `emptyBatch`
 * makes rows, of zeros.
 */
function isPadding(parts: readonly RowPart[]): boolean {
  const all = (name: string, value: number) =>
    parts.every(([of, values]) => of !== name || values.every((x: number) => x === value));
  if (parts.some(([name]) => name === 'weights')) return all('weights', 0) && all('paddings', 1);
  return parts.every(([name, values]) => values.every((x: number) => x === (name === 'paddings' ? 1 : 0)));
}

/** A digest for each row of a batch, over all arrays; null for a row of padding. */
export function rowDigests(batch: Batch): (string | null)[] {
  const arrays = [...arraysOf(batch)];
  const rows = arrays[0]?.[1].shape[0] ?? 0;
  return Array.from({ length: rows }, (_, row) => {
    const parts = arrays.map(([path, { data }]): RowPart => {
      const size = data.length / rows;
      return [path.split('.').at(-1)!, data.subarray(row * size, (row + 1) * size)];
    });
    if (isPadding(parts)) return null;
    const hash = createHash('sha256');
    for (const [, { buffer, byteOffset, byteLength }] of parts)
      hash.update(new Uint8Array(buffer, byteOffset, byteLength));
    return hash.digest('base64');
  });
}
