/** @file Messages between `luthier diff` and its evaluating processes. */

import type { Override } from '../../cli/index.js';
import type { JsonDocument } from '../../hparams/index.js';
import type { Analysis } from '../analysis/analyze.js';

/** Of the questions and answers below: an evaluator of another version is not asked. */
export const protocolVersion = 1;

/** A value as JSON, as in config documents: `{$config: 3}` is the config with that number. */
export type JsonValue = JsonDocument['root'];

/** One config with all that it says, defaults included. */
export interface ConfigEntry {
  readonly class: string;
  /** `partial`, `argFactory`; absent for a plain config. */
  readonly kind?: string;
  /** Every field that has a value, in the order of declaration. */
  readonly values: Readonly<Record<string, JsonValue>>;
  /** The fields among them that nobody set. */
  readonly defaults: readonly string[];
  /** Where the others were set: `file:line` relative to the project, or the flag. */
  readonly places: Readonly<Record<string, string>>;
}

/** A graph of configs: an entry refers to earlier ones, and to a shared one from several places. */
export interface ConfigDocument {
  readonly root: JsonValue;
  readonly configs: readonly ConfigEntry[];
}

/** One constant of an experiment. */
export interface ConstantEntry {
  readonly name: string;
  /** Absent where nothing sets it and it has no default. */
  readonly value?: JsonValue;
  /** The class, or the flag, that set it. */
  readonly setBy: string;
}

/** Why an experiment has no configs, or a model no analysis. */
export interface Failure {
  readonly message: string;
  /** `file:line`, where it is known. */
  readonly place?: string;
}

/** An experiment of one version: its constants and configs, or what keeps it from having them. */
export type ExperimentDocument =
  | { readonly name: string; readonly error: Failure }
  | { readonly name: string; readonly constants: readonly ConstantEntry[]; readonly config: ConfigDocument };

/** What an experiment's model is, or why that cannot be told. */
export type AnalysisDocument =
  | { readonly name: string; readonly analysis: Analysis }
  | { readonly name: string; readonly notAnalysed: Failure };

/** To an evaluator: about an experiment that flags change. */
export interface Question {
  readonly ask: 'configs' | 'analysis';
  readonly name: string;
  readonly changes: readonly Override[];
}

/** From an evaluator: first that it is ready, then an answer for each question, in order. */
export type Answer =
  | { readonly ready: number }
  | { readonly experiment: ExperimentDocument }
  | { readonly analysis: AnalysisDocument };
