/** @file Messages between `luthier diff` and its evaluating processes. */

import type { Analysis, Failure as Finding, LearningRates } from '../../analysis/index.js';
import type { Override } from '../../cli/index.js';
import type { Declared, JsonDocument } from '../../hparams/index.js';
import type { Resumption, SavedRun } from '../../programs/index.js';
import type { Fingerprint, TrainingFingerprint } from '../fingerprints/fingerprintedParts.js';

/** Version of the questions and answers below, fingerprints included; evaluators of other versions are not used. */
export const protocolVersion = 10;

/** A value as JSON, as in config documents: `{$config: 3}` is the config with that number. */
export type JsonValue = JsonDocument['root'];

/** One config with all of its values, defaults included. */
export interface ConfigEntry {
  readonly class: string;
  /** `partial`, `argFactory`; absent for a plain config. */
  readonly kind?: 'config' | 'partial' | 'argFactory';
  /** Every field that has a value, in the order of declaration. */
  readonly values: Readonly<Record<string, JsonValue>>;
  /** The fields among them that are not set. */
  readonly defaults: readonly string[];
  /** Where the others were set: `file:line` relative to the project, or the flag. */
  readonly places: Readonly<Record<string, string>>;
}

/** A class as its version declares it. Fields that an early version of the library cannot give are empty. */
export interface ClassDocument {
  /** The class and those that it extends, the nearest first. */
  readonly lineage: readonly Declared[];
  /** Its former names (`registerAlias`). */
  readonly formerNames: readonly string[];
  /** Present names of its fields by those that they had before (`renamed`). */
  readonly formerFields: Readonly<Record<string, string>>;
}

/** A graph of configs: an entry refers to earlier ones, and to a shared one from several places. */
export interface ConfigDocument {
  readonly root: JsonValue;
  readonly configs: readonly ConfigEntry[];
  /** The classes of the configs, by the names that those give them. */
  readonly classes: Readonly<Record<string, ClassDocument>>;
}

/** One constant of an experiment. */
export interface ConstantEntry {
  readonly name: string;
  /** Absent where nothing sets it and it has no default. */
  readonly value?: JsonValue;
  /** The class, or the flag, that set it. */
  readonly setBy: string;
  /** The file that declares that class. */
  readonly file?: string;
}

/** Why an experiment has no configs, or a model no analysis. */
export type Failure = Pick<Finding, 'message' | 'place'>;

/** An experiment of one version. */
export interface MadeExperiment {
  readonly name: string;
  /** Its class; absent if the library does not know it. */
  readonly declared?: Declared;
  readonly constants: readonly ConstantEntry[];
  /** Present names of constants by those that they had before (`renamed`). */
  readonly formerConstants: Readonly<Record<string, string>>;
  readonly config: ConfigDocument;
  /** Absent if the version, or the learner, does not know them. */
  readonly learningRates?: LearningRates;
}

/** An experiment of one version, or the error that prevents its configs. */
export type ExperimentDocument = MadeExperiment | { readonly name: string; readonly error: Failure };

/** The experiment, if its configs could be made. */
export function made(document: ExperimentDocument | undefined): MadeExperiment | undefined {
  return document !== undefined && 'config' in document ? document : undefined;
}

/** Both versions of an experiment that has configs in both. */
export interface ExperimentPair {
  readonly old: MadeExperiment;
  readonly now: MadeExperiment;
}

/** Analysis of an experiment's model, or the reason for its absence. */
export type AnalysisDocument =
  | { readonly name: string; readonly analysis: Analysis }
  | { readonly name: string; readonly notAnalysed: Failure };

/** The analysis, if there could be one. */
export function analysed(document: AnalysisDocument | undefined): Analysis | undefined {
  return document !== undefined && 'analysis' in document ? document.analysis : undefined;
}

/** Fingerprints of an experiment, or the reason for their absence. */
export type FingerprintDocument =
  | { readonly name: string; readonly fingerprint: Fingerprint }
  | { readonly name: string; readonly notFingerprinted: string };

/** The configs of an experiment as a document that another version can build, or the reason for its absence. */
export type WrittenConfigs =
  | { readonly name: string; readonly document: string }
  | { readonly name: string; readonly notWritten: string };

/** The experiments that a module exports, by its path from the project's folder, or the error that it ends with. */
export type ExportsDocument =
  | {
      readonly name: string;
      readonly exported: readonly {
        readonly exportName: string;
        /** Name of the class that it extends. */
        readonly base: string;
      }[];
    }
  | { readonly name: string; readonly error: Failure };

/** Checkpoints and computations of a version's runs. */
export interface Saved {
  readonly run: SavedRun;
  readonly training: TrainingFingerprint;
  /** The configs as another version can build them; absent where they can't be written. */
  readonly document?: string;
}

/** Shapes and types of variables by path. */
export type VariableForms = Readonly<
  Record<string, { readonly shape: readonly number[]; readonly dtype: string }>
>;

/** How a version goes on from another one's checkpoints. */
export type Resumed = {
  /** Its own variables. */
  readonly variables: VariableForms;
  /** Path of the training dataset: `datasets[0]`. */
  readonly dataset: string;
} & (
  | {
      /** Differences from the saved run, each with the sentence that the job says about it. */
      readonly differences: Resumption['differences'];
      readonly training: TrainingFingerprint;
    }
  | {
      /** The error with which it ends. */
      readonly refused: string;
      /** How many variables `initFromCheckpoint` still loads, and those that keep their initial values. */
      readonly loads: { readonly count: number; readonly keeps: readonly string[] };
      /** Paths of the fields that force it to. */
      readonly forcedBy: readonly string[];
    }
);

export type SavedDocument =
  | { readonly name: string; readonly saved: Saved }
  | { readonly name: string; readonly notSaved: string };

export type ResumedDocument =
  | { readonly name: string; readonly resumed: Resumed }
  | { readonly name: string; readonly notResumed: string };

/** A constant as `--set` sets it, where nothing else does. */
export interface GivenConstant extends Extract<Override, { kind: 'set' }> {
  /** Whether it was given to this experiment by name: then it must have such a constant. */
  readonly isForOne: boolean;
}

/** Constants of experiments by their names. */
export interface GivenConstants {
  readonly kind: 'given';
  readonly of: Readonly<Record<string, readonly GivenConstant[]>>;
}

/** Changes of evaluated experiments: flags, and settings of reviews. */
export type Change = Override | GivenConstants;

/** To an evaluator: about an experiment that flags change. */
export interface Question {
  readonly ask: 'configs' | 'document' | 'fingerprint' | 'analysis' | 'exports' | 'saved' | 'resumed';
  /** The experiment; of the question for exports, the module. */
  readonly name: string;
  readonly changes: readonly Change[];
  /** Whether its nearest base class that has configs is meant. */
  readonly ofBase?: true | undefined;
  /** Directory of a run, whose recorded configs and checkpoints are meant. */
  readonly run?: string | undefined;
  /** Configs of another version, whose programs are fingerprinted in place of its own. */
  readonly document?: string | undefined;
  /** JSON of a `Saved` to go on from: of another version, or of a run. */
  readonly saved?: string | undefined;
  /** Whether another experiment's checkpoints will do. */
  readonly ofAny?: true | undefined;
}

/** Answers by kind of question. */
export type Answer =
  | ExperimentDocument
  | WrittenConfigs
  | FingerprintDocument
  | AnalysisDocument
  | ExportsDocument
  | SavedDocument
  | ResumedDocument;

/** From an evaluator: first that it is ready, then an answer for each question, with the reads since the last one. */
export type Message =
  | { readonly ready: number }
  | {
      readonly answer: Answer;
      readonly reads: readonly string[];
      /** Whether functions of JavaScript itself were replaced, which other experiments would be evaluated by. */
      readonly isSpent?: true;
    };

/** The experiments that both versions could evaluate. */
export function pairsOf(
  names: readonly string[],
  olds: ReadonlyMap<string, ExperimentDocument>,
  news: ReadonlyMap<string, ExperimentDocument>,
): ExperimentPair[] {
  return names.flatMap((name): ExperimentPair[] => {
    const [old, now] = [made(olds.get(name)), made(news.get(name))];
    return old && now ? [{ old, now }] : [];
  });
}
