/** @file Block size of chains: rows that a thread takes through all units at once. */
import type { Chain } from './stages.js';

/** Large enough for products, small enough for the cache. */
const BLOCK_ROWS = 64;

/** Work per unit, in multiply-adds or elements. */
const workOf = (unit: Chain['units'][number]): number =>
  unit.kind === 'product' ? unit.m * unit.n * unit.k : unit.rows * unit.columns * unit.nodes.length;

/**
 * Rows per block. A unit may have several rows for each row of the chain; the unit with the most work gets BLOCK_ROWS
 * of its own rows.
 */
export function blockRowsOf({ rows, units }: Chain): number {
  const heaviest = units.reduce((a, b) => (workOf(b) > workOf(a) ? b : a));
  const multiple = (heaviest.kind === 'product' ? heaviest.m : heaviest.rows) / rows;
  return Math.max(1, Math.floor(BLOCK_ROWS / multiple));
}
