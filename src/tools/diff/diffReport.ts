/** @file Types of a diff report, which are the JSON form of `luthier diff`. */
import type { Failure, FingerprintedPart } from './protocol.js';

/** A value in one of the two versions. */
export interface Side {
  /** The value as text. */
  readonly text: string;
  /** Whether nobody set it: it is what the class declares. */
  readonly isDefault?: true;
  /** `file:line` relative to the project, or the flag, that set or declares it. */
  readonly place?: string;
  /** The class that declares the default. */
  readonly declaredBy?: string;
}

/** What became of a constant of the experiment. A side is absent where there is no such constant, or no value. */
export interface ConstantChange {
  readonly name: string;
  readonly old?: Side & { readonly setBy: string };
  readonly new?: Side & { readonly setBy: string };
}

/** What became of a field, an item of a list, or a whole sub-config. */
export interface FieldChange {
  /**
   * `changed` has both sides, `added` the new and `removed` the old one; `moved` says in `new.text` where it is now;
   * `class` is another class, and `kind` a partial, say, where a config was.
   */
  readonly what: 'changed' | 'added' | 'removed' | 'moved' | 'class' | 'kind';
  /** Where it stands in the old version; in the new one, for what is new. `[0…11]` are items that changed alike. */
  readonly path: string;
  /** Where it stands in the new version, if elsewhere. */
  readonly newPath?: string;
  readonly old?: Side;
  readonly new?: Side;
  /** How many paths were alike; absent for one. */
  readonly count?: number;
}

/** A figure before and after; one that could not be told is absent. */
export interface Figure {
  readonly old?: number;
  readonly new?: number;
}

/** Variables that are alike but for numbers in their names. */
export interface VariableGroup {
  /** With `*` for the numbers: `lm/transformer/x_layers_*\/w`. */
  readonly name: string;
  readonly count: number;
  /** Shape and type: `[64, 128] float32`. Absent in the version that lacks it. */
  readonly old?: string;
  readonly new?: string;
}

/** Whether checkpoints of the old version fit the new one. */
export interface CheckpointEffect {
  readonly loads: boolean;
  readonly appeared: readonly VariableGroup[];
  readonly vanished: readonly VariableGroup[];
  readonly reshaped: readonly VariableGroup[];
}

/** What follows for the model and its training. */
export interface Effects {
  readonly parameters: Figure;
  /** FLOPs of the forward pass for a token. */
  readonly flopsPerToken: Figure;
  readonly tokensPerStep: Figure;
  /** The most bytes that a training step holds at once. */
  readonly peakMemory: Figure;
  /** Absent where only one version has the experiment, or one could not be analysed. */
  readonly checkpoints?: CheckpointEffect;
}

/** A part of what an experiment computes and reads that could not be compared, or not all of it. */
export interface Uncompared {
  readonly part: FingerprintedPart;
  readonly reason: string;
}

/** What became of the programs and the data of an experiment whose config is the same in both versions. */
export interface Computed {
  /** The parts that are not as they were. */
  readonly differs: readonly FingerprintedPart[];
  readonly uncompared: readonly Uncompared[];
  /** The changed files that the experiment loads. */
  readonly files: readonly string[];
}

/** What changed of one experiment. */
export interface ExperimentReport {
  readonly name: string;
  readonly status: Status;
  /** Of an added experiment, those that it sets itself. */
  readonly constants: readonly ConstantChange[];
  readonly fields: readonly FieldChange[];
  /** Absent where the models were not compared: nothing that they depend on changed. */
  readonly effects?: Effects;
  /** Absent where the configs differ, and where there are not two. */
  readonly computed?: Computed;
  /** Why the old version, or the new one, has no configs; or why its model could not be analysed. */
  readonly oldError?: Failure;
  readonly newError?: Failure;
}

/**
 * `broken` had configs that could be made, and a model that could be traced, before; `mended` has now; `failing` fails
 * in both versions. `renamed`: nothing changed but names of classes, fields and constants, and aliases say which.
 * `redeclared`: classes have fields more or less, which nobody sets; all values are as they were. `uncompared`: nothing is
 * known to have changed, and not all could be compared.
 */
export const statuses = [
  'broken',
  'removed',
  'added',
  'changed',
  'mended',
  'renamed',
  'redeclared',
  'uncompared',
  'failing',
  'unchanged',
] as const;
export type Status = (typeof statuses)[number];

/** A class, a field of a class or a constant that an alias gives another name, or that only one version has. */
export interface DeclarationChange {
  readonly what: 'class' | 'field' | 'constant';
  /** The classes that have the field, or set the constant; for a class, none. */
  readonly of: readonly string[];
  /** Absent for what is new. */
  readonly old?: string;
  /** Absent for what is gone. */
  readonly new?: string;
  /** Whether no alias says that `old` is called `new` now: it went, and the other came with the same content. */
  readonly isGuess?: true;
  /** What a field shows that only one version has, wherever it stands. */
  readonly value?: string;
  /** The experiments in which it was seen. */
  readonly experiments: readonly string[];
}

/** One of the two versions. */
export interface VersionName {
  /** `main (3f9c2d1)`, `the working tree`, or an experiment's name. */
  readonly label: string;
  /** The commit; absent for the working tree. */
  readonly commit?: string;
}

/** What `luthier diff --format=json` prints. */
export interface DiffReport {
  readonly format: 'luthier-config-diff';
  readonly version: 1;
  readonly old: VersionName;
  readonly new: VersionName;
  /** In the order of `statuses`, then by name; unchanged ones are only counted. */
  readonly experiments: readonly ExperimentReport[];
  readonly declarations: readonly DeclarationChange[];
  readonly unchanged: number;
  /** How many experiments there are in the working tree that the change cannot reach, and that were not looked at. */
  readonly untouched: number;
  /** What a reader should know of how the comparison was made. */
  readonly notes: readonly string[];
}
