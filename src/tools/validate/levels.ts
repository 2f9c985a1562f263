/** @file Check levels, and messages between `luthier validate` and its checking processes. */

import type { Failure } from '../../analysis/index.js';
import type { Override } from '../../cli/index.js';
import { UsageError } from '../../system/text/index.js';

/** Check levels; each includes all before it (Pax's check_level, by name). */
export const levels = ['resolve', 'task', 'datasets', 'trace', 'step'] as const;
export type Level = (typeof levels)[number];

/** Parses a level by name or number. @throws UsageError for other texts. */
export function parseLevel(text: string, flag: string): Level {
  const level = levels.find((name, i) => text === name || text === String(i));
  if (level !== undefined) return level;
  const list = levels.map((name, i) => `${i} ${name}`).join(', ');
  throw new UsageError(`${flag}: expected one of the levels ${list}; got '${text}'.`);
}

/** Request to check an experiment. */
export interface Question {
  readonly name: string;
  readonly level: Level;
  readonly changes: readonly Override[];
  /** Whether to ignore settings of constants that the experiment lacks. */
  readonly lenient: boolean;
  /** Directory for the step's output. */
  readonly directory: string;
}

/** A problem of an experiment. */
export interface Problem extends Failure {
  /** The level that fails. */
  readonly level: Level;
  /**
   * Missing input that would let the check continue: `--set dataPath=PATH`, or a larger machine. The experiment itself
   * may be fine.
   */
  readonly needs?: string;
}

/** Findings about one experiment. */
export interface Findings {
  readonly problems: readonly Problem[];
  readonly warnings: readonly string[];
  /** Constants that the class or an ancestor sets and nothing reads. */
  readonly unread: readonly string[];
  /** Ignored settings, as written. */
  readonly ignored: readonly string[];
  /** Number of parameters, once the task is built. */
  readonly parameters?: number;
}

/** Messages from the checking process: ready, a level reached, all findings. */
export type Answer =
  | { readonly kind: 'ready' }
  | { readonly kind: 'reached'; readonly level: Level }
  | { readonly kind: 'done'; readonly findings: Findings };
