/** @file Limits of constraints, which bound their time and memory whatever they say. */
import { ConfigError } from '../../hparams/index.js';

/** Largest sizes of a constraint and of the work on it. */
export const LIMITS = {
  /** Characters of a pattern, a grammar, or a schema as JSON. */
  characters: 1 << 17,
  /** Nesting of groups, or of schemas. */
  depth: 128,
  /** Characters of a property's name beside which others are allowed. */
  name: 1 << 9,
  /** States of the automaton. */
  states: 1 << 15,
  /** Places of the automaton that a text may be at, at once. */
  places: 1 << 11,
  /** Places that are visited to find the tokens that may come next. */
  visits: 1 << 18,
  /** Those where texts are at new places one after the other, on average. */
  meanVisits: 1 << 16,
} as const;

/** An error of a constraint. */
export const constraintError = (message: string): ConfigError => new ConfigError(`constraint: ${message}`);

/** @throws ConfigError for a text of more characters than a constraint may have */
export function checkSize(text: string, of: string): void {
  if (text.length <= LIMITS.characters) return;
  throw constraintError(`the ${of} has ${text.length} characters, of at most ${LIMITS.characters}.`);
}

/** @throws ConfigError where parts are nested deeper than they may be */
export function checkDepth(depth: number, of: string): void {
  if (depth > LIMITS.depth)
    throw constraintError(`the ${of} is nested more than ${LIMITS.depth} levels deep.`);
}
