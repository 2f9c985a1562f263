/**
 * @file Blocks: rows or columns that a thread takes at once. They follow from shapes alone, and so do the partial sums of
 * blocks, whatever the number of threads.
 */
import type { ProductUnit } from './products.js';
import type { LoopUnit } from './units.js';

/** A unit of rows, alone or in a chain. */
type RowUnit = LoopUnit | ProductUnit;

/** Large enough for products, small enough for the cache. */
const BLOCK_ROWS = 64;

/** Work per unit, in multiply-adds or elements. */
const workOf = (unit: RowUnit): number =>
  unit.kind === 'product' ? unit.m * unit.n * unit.k : unit.rows * unit.columns * unit.nodes.length;

/** Rows, or columns, in blocks. */
export interface Blocks {
  readonly size: number;
  readonly count: number;
  /** Rows that are cut by themselves, so that the last block of them may be shorter: all, or those of an item. */
  readonly span: number;
}

/** The rows of an item that a unit sums over, counted in rows of its stage; `rows` where it sums over no items. */
function periodsOf(unit: RowUnit, rows: number): number[] {
  if (unit.kind === 'product') return [];
  return unit.nodes.flatMap(({ period = unit.rows }) =>
    period < unit.rows ? [period / (unit.rows / rows)] : [],
  );
}

/**
 * The rows of an item, of units that sum over the rows of items; all rows where none does. null where items of different
 * sizes, or within a row, leave no common blocks.
 */
export function periodOf(units: readonly RowUnit[], rows: number): number | null {
  const [period = rows, ...others] = new Set(units.flatMap((unit) => periodsOf(unit, rows)));
  return others.length === 0 && Number.isInteger(period) ? period : null;
}

/** Blocks of at most `size` rows. None has a part of an item and more: either whole items, or rows of one. */
function cut(rows: number, period: number, size: number): Blocks {
  if (period < rows && period <= size) {
    const whole = size - (size % period);
    return { size: whole, count: Math.ceil(rows / whole), span: rows };
  }
  const parts = Math.ceil(period / size);
  const even = period < rows ? Math.ceil(period / parts) : size;
  return { size: even, count: (rows / period) * parts, span: period };
}

/**
 * Blocks of a chain. A unit may have several rows for each row of the chain; the unit with the most work gets
 * BLOCK_ROWS of its own rows.
 */
export function blocksOf({
  rows,
  units,
}: {
  readonly rows: number;
  readonly units: readonly RowUnit[];
}): Blocks {
  const heaviest = units.reduce((a, b) => (workOf(b) > workOf(a) ? b : a));
  const multiple = (heaviest.kind === 'product' ? heaviest.m : heaviest.rows) / rows;
  return cut(rows, periodOf(units, rows)!, Math.max(1, Math.floor(BLOCK_ROWS / multiple)));
}

/** How threads divide a single loop: by rows if a row must be complete first, by columns if there are few rows. */
export function partitionOf({ rows, columns, nodes }: LoopUnit): 'rows' | 'columns' {
  const needsRows = nodes.some(({ role }) => role === 'row');
  return needsRows || rows >= 32 || columns < 256 ? 'rows' : 'columns';
}

/** A loop that sums over its blocks has about so many, for any number of threads to divide. */
const BLOCKS = 64;

/** The fewest elements of a block: of a smaller one, its partial sum would cost as much as its elements. */
const LEAST_ELEMENTS = 4096;

/** The fewest rows, for the same reason. */
const LEAST_ROWS = 8;

/** Columns of a block: whole cache lines, and no more terms than one float32 sum keeps the small ones of. */
const [LEAST_COLUMNS, MOST_COLUMNS] = [256, 4096];

const between = (low: number, x: number, high: number): number => Math.min(Math.max(low, x), high);

/** Blocks of rows, or columns, of a single loop that sums over them. */
export function loopBlocksOf(unit: LoopUnit): Blocks {
  const { rows, columns } = unit;
  if (partitionOf(unit) === 'columns') {
    const size = between(LEAST_COLUMNS, Math.ceil(columns / BLOCKS / 16) * 16, MOST_COLUMNS);
    return cut(columns, columns, size);
  }
  const least = Math.ceil(LEAST_ELEMENTS / Math.max(1, columns));
  const size = Math.max(least, between(LEAST_ROWS, Math.floor(rows / BLOCKS), BLOCK_ROWS));
  return cut(rows, periodOf([unit], rows)!, size);
}
