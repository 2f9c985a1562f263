/** @file Levels of checks, and the messages between `luthier validate` and its checking processes. */
import type { Override } from '../../cli/index.js';
import { UsageError } from '../../registry/usageError.js';
import type { Failure } from '../failure.js';

/** How far an experiment is checked; each level asks all of those before it (Pax's check_level, in words). */
export const levels = ['resolve', 'task', 'datasets', 'trace', 'step'] as const;
export type Level = (typeof levels)[number];

/** A level by its name or its number. @throws UsageError for any other text. */
export function parseLevel(text: string, flag: string): Level {
  const level = levels.find((name, i) => text === name || text === String(i));
  if (level !== undefined) return level;
  const list = levels.map((name, i) => `${i} ${name}`).join(', ');
  throw new UsageError(`${flag}: expected one of the levels ${list}; got '${text}'.`);
}

/** One experiment to check. */
export interface Question {
  readonly name: string;
  readonly level: Level;
  readonly changes: readonly Override[];
  /** Whether settings of constants that the experiment does not have are passed over. */
  readonly lenient: boolean;
  /** Where the step may write. */
  readonly directory: string;
}

/** Something wrong. */
export interface Problem extends Failure {
  /** The level that does not hold for it. */
  readonly level: Level;
  /** What would let the check go on: `--set dataPath=PATH`, or a larger machine. The experiment itself may be right. */
  readonly needs?: string;
}

/** What was found of one experiment. */
export interface Findings {
  readonly problems: readonly Problem[];
  readonly warnings: readonly string[];
  /** Constants that the class or one of its ancestors sets, and that nothing reads. */
  readonly unread: readonly string[];
  /** The settings that were passed over, as they were written. */
  readonly ignored: readonly string[];
  /** Values in variables, once the task is built. */
  readonly parameters?: number;
}

/** Messages of the process that checks: it is ready; it has come to a level; this is all of an experiment. */
export type Answer =
  | { readonly kind: 'ready' }
  | { readonly kind: 'reached'; readonly level: Level }
  | { readonly kind: 'done'; readonly findings: Findings };
