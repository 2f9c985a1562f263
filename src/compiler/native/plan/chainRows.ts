/** @file Row strides of a chain: how its units access buffers from row to row. */
import type { Access } from './iteration.js';
import type { ProductUnit } from './products.js';
import type { LoopUnit } from './units.js';
import type { Buffer } from './views.js';

/** Elements from one row of the chain to the next, or null where an access reaches beyond its row. */
function rowStride(
  { rows, column, offset }: Access,
  unitRows: number,
  columns: number,
  chainRows: number,
): number | null {
  const [run] = rows;
  if (rows.length !== 1 || run!.size !== unitRows) return null;
  const perRow = unitRows / chainRows;
  const stride = run!.stride * perRow;
  const last = offset + (perRow - 1) * run!.stride + (columns - 1) * column;
  return column >= 0 && offset >= 0 && last < stride ? stride : null;
}

/** A unit's access to a buffer. The stride is per row of the chain, null where an access reaches beyond its row. */
export interface Touch {
  readonly buffer: Buffer;
  readonly stride: number | null;
}

const matrixAccess = ({ buffer, offset, rs, cs }: ProductUnit['a'], rows: number): Access => ({
  buffer,
  offset,
  rows: [{ size: rows, stride: rs }],
  column: cs,
});

/** Reads of a chain's unit, with strides per row of the chain. */
export function touchedReads(unit: LoopUnit | ProductUnit, chainRows: number): Touch[] {
  if (unit.kind === 'product') {
    const [{ stride }] = touchedWrites(unit, chainRows) as [Touch];
    return [
      { buffer: unit.a.buffer, stride: rowStride(matrixAccess(unit.a, unit.m), unit.m, unit.k, chainRows) },
      { buffer: unit.b.buffer, stride: null },
      ...(unit.sum ? [{ buffer: unit.sum, stride }] : []),
    ];
  }
  return unit.nodes.flatMap(({ reads, wide }) =>
    reads.flatMap((read) =>
      typeof read === 'number'
        ? []
        : [{ buffer: read.buffer, stride: rowStride(read, unit.rows, wide ? unit.columns : 1, chainRows) }],
    ),
  );
}

/** Writes of a chain's unit. Sums over rows have no stride. */
export function touchedWrites(unit: LoopUnit | ProductUnit, chainRows: number): Touch[] {
  if (unit.kind === 'product') {
    return [
      { buffer: unit.c.buffer, stride: rowStride(matrixAccess(unit.c, unit.m), unit.m, unit.n, chainRows) },
    ];
  }
  return unit.nodes.map(({ write, wide, role }) => ({
    buffer: write.buffer,
    stride:
      role === 'column' || role === 'all'
        ? null
        : rowStride(write, unit.rows, wide && role === 'map' ? unit.columns : 1, chainRows),
  }));
}

/** Adds a unit's writes, with strides per row of its chain; null where writes to a buffer differ in stride. */
export function addWrites(
  writes: Map<Buffer, number | null>,
  unit: LoopUnit | ProductUnit,
  rows: number,
): void {
  for (const { buffer, stride } of touchedWrites(unit, rows))
    writes.set(buffer, writes.has(buffer) && writes.get(buffer) !== stride ? null : stride);
}

/** Writes of several units, with strides per row of their chain. */
export function writesByRows(
  units: readonly (LoopUnit | ProductUnit)[],
  rows: number,
): Map<Buffer, number | null> {
  const writes = new Map<Buffer, number | null>();
  for (const unit of units) addWrites(writes, unit, rows);
  return writes;
}
