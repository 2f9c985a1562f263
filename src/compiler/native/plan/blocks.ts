/**
 * @file Blocks: rows or columns that a thread takes at once. They follow from shapes alone, and so do the partial sums of
 * blocks, whatever the number of threads.
 */
import type { Chain } from './stages.js';
import type { LoopUnit } from './units.js';

/** Large enough for products, small enough for the cache. */
const BLOCK_ROWS = 64;

/** Work per unit, in multiply-adds or elements. */
const workOf = (unit: Chain['units'][number]): number =>
  unit.kind === 'product' ? unit.m * unit.n * unit.k : unit.rows * unit.columns * unit.nodes.length;

/**
 * Rows per block of a chain. A unit may have several rows for each row of the chain; the unit with the most work gets
 * BLOCK_ROWS of its own rows.
 */
export function blockRowsOf({ rows, units }: Chain): number {
  const heaviest = units.reduce((a, b) => (workOf(b) > workOf(a) ? b : a));
  const multiple = (heaviest.kind === 'product' ? heaviest.m : heaviest.rows) / rows;
  return Math.max(1, Math.floor(BLOCK_ROWS / multiple));
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

/** Rows, or columns, per block of a single loop that sums over them, and the number of blocks. */
export function loopBlocksOf(unit: LoopUnit): { readonly size: number; readonly count: number } {
  const { rows, columns } = unit;
  if (partitionOf(unit) === 'columns') {
    const size = between(LEAST_COLUMNS, Math.ceil(columns / BLOCKS / 16) * 16, MOST_COLUMNS);
    return { size, count: Math.ceil(columns / size) };
  }
  const least = Math.ceil(LEAST_ELEMENTS / Math.max(1, columns));
  const size = Math.max(least, between(LEAST_ROWS, Math.floor(rows / BLOCKS), BLOCK_ROWS));
  return { size, count: Math.ceil(rows / size) };
}
