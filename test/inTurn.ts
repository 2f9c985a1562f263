/** @file Suites that take turns: CI's short run has half of them, by its commit. */

/** How many runs it takes to have all suites. */
const TURNS = 2;

/**
 * The suites of one run: every other one by name, so that each room has some in each turn.
 *
 * @param turn a whole number that says which; undefined or empty for all.
 * @throws Error where it is none: all would be left out.
 */
export function inTurn(suites: readonly string[], turn: string | undefined): string[] {
  const sorted = [...new Set(suites)].sort();
  if (turn === undefined || turn === '') return sorted;
  if (!/^\d+$/.test(turn)) throw new Error(`TURN=${turn}: a whole number is needed, such as 0 or 1.`);
  return sorted.filter((_, i) => i % TURNS === Number(turn) % TURNS);
}
