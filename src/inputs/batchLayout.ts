/** @file Batches in shared memory: where each array of a batch lies in a slot, and the copies in and out. */

import type { HostTensor } from '../compiler/types.js';
import { type Batch, isHostTensor } from './batch.js';

/** One array of a batch: the names that lead to it, what it is, and its first byte within a slot. */
interface LayoutEntry {
  readonly path: readonly string[];
  readonly shape: readonly number[];
  readonly dtype: HostTensor['dtype'];
  readonly offset: number;
}

/** Where everything of a batch lies in a slot of `size` bytes. */
export interface BatchLayout {
  readonly entries: readonly LayoutEntry[];
  readonly size: number;
}

/** Typed arrays begin at whole cache lines. */
const ALIGNMENT = 64;

function leaves(batch: Batch, path: readonly string[] = []): { path: string[]; tensor: HostTensor }[] {
  return Object.entries(batch).flatMap(([name, value]) =>
    isHostTensor(value) ? [{ path: [...path, name], tensor: value }] : leaves(value, [...path, name]),
  );
}

/** The layout of every batch that has the names, shapes and dtypes of this one. */
export function layoutOf(batch: Batch): BatchLayout {
  let size = 0;
  const entries = leaves(batch).map(({ path, tensor }) => {
    const offset = size;
    size += Math.ceil(tensor.data.byteLength / ALIGNMENT) * ALIGNMENT;
    return { path, shape: [...tensor.shape], dtype: tensor.dtype, offset };
  });
  return { entries, size: Math.max(size, ALIGNMENT) };
}

function view(entry: LayoutEntry, memory: SharedArrayBuffer, start: number): HostTensor['data'] {
  const Type = { float32: Float32Array, int32: Int32Array, bool: Uint8Array }[entry.dtype];
  return new Type(
    memory as unknown as ArrayBuffer,
    start + entry.offset,
    entry.shape.reduce((a, b) => a * b, 1),
  );
}

/** Copies a batch to the slot at byte `start`; false, and nothing copied, where its layout is another. */
export function writeBatch(
  batch: Batch,
  layout: BatchLayout,
  memory: SharedArrayBuffer,
  start: number,
): boolean {
  if (JSON.stringify(layoutOf(batch)) !== JSON.stringify(layout)) return false;
  const found = leaves(batch);
  layout.entries.forEach((entry, index) => {
    view(entry, memory, start).set(found[index]!.tensor.data);
  });
  return true;
}

/** A batch copied from the slot at byte `start`, in memory of its own. */
export function readBatch(layout: BatchLayout, memory: SharedArrayBuffer, start: number): Batch {
  const batch: { [name: string]: any } = {};
  for (const entry of layout.entries) {
    const parent = entry.path.slice(0, -1).reduce((node, name) => (node[name] ??= {}), batch);
    const { shape, dtype } = entry;
    parent[entry.path.at(-1)!] = { shape, dtype, data: view(entry, memory, start).slice() };
  }
  return batch;
}
