/** @file Rows of a chain that a thread takes through all of its units at once. */
import type { Chain } from './stages.js';

/** Enough for the products, few enough for the cache. */
const BLOCK_ROWS = 64;

/** What is done for the rows of a unit, in multiply-adds or elements. */
const workOf = (unit: Chain['units'][number]): number =>
  unit.kind === 'product' ? unit.m * unit.n * unit.k : unit.rows * unit.columns * unit.nodes.length;

/**
 * Rows of a block. Units may have several rows for one of the chain's: it is the unit with the most work that gets as many
 * as it wants.
 */
export function blockRowsOf({ rows, units }: Chain): number {
  const heaviest = units.reduce((a, b) => (workOf(b) > workOf(a) ? b : a));
  const multiple = (heaviest.kind === 'product' ? heaviest.m : heaviest.rows) / rows;
  return Math.max(1, Math.floor(BLOCK_ROWS / multiple));
}
