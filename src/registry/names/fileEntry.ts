/** @file View of a source file: its classes, records, imports and exports. */
import type { ModuleLoads } from './moduleLoads.js';

/** A constant that a class declares by `with` or sets. */
export interface OwnConstant {
  readonly name: string;
  readonly kind: 'declared' | 'set';
  /** Source text of its schema without the description, or of its value. */
  readonly text: string;
  /** Text of `.describe`, for a declared constant. */
  readonly description?: string;
  readonly line: number;
}

/** A record of constants or fields, as `with` takes it. */
export interface RecordEntry {
  readonly constants: readonly OwnConstant[];
  /** Names of the records that are part of it, as in `{ ...splitFields }`. */
  readonly spreads: readonly string[];
}

/** A declared class, or a constant that may hold one. */
export interface ClassEntry extends RecordEntry {
  readonly name: string;
  /** Names of the extends clause: LmExperiment in `extends LmExperiment.with({…})`; empty for other expressions. */
  readonly base: readonly string[];
  /** The calls of the extends clause, or of the value, as of `Heritage`. */
  readonly calls: readonly string[];
  /** Text of the extends clause, or of the value; '' without one. */
  readonly text: string;
  /** Whether it is a constant. */
  readonly isValue: boolean;
  /** Whether it defines task(), as all that can run do. */
  readonly hasTask: boolean;
  readonly abstract: boolean;
  /** First paragraph of its doc comment, or ''. */
  readonly description: string;
  readonly line: number;
  readonly lastLine: number;
}

/** A name in another file: '*' for all, 'default' for the default export. */
export interface Link {
  readonly from: string;
  readonly name: string;
}

/** All that another module exports; undefined for what CommonJS exports, which is not read. */
export interface Star {
  readonly from: string | undefined;
  readonly line: number;
}

/** A syntax error, or why a file cannot be read. */
export interface SourceProblem {
  readonly file: string;
  /** Of a syntax error. */
  readonly line?: number;
  readonly message: string;
}

/** Declarations, imports and exports of a file. */
export interface FileEntry {
  readonly classes: ReadonlyMap<string, ClassEntry>;
  /** Records in constants of the file. */
  readonly records: ReadonlyMap<string, RecordEntry>;
  /** Local names by export name. */
  readonly exports: ReadonlyMap<string, string>;
  /** Imported names by local name. */
  readonly imports: ReadonlyMap<string, Link>;
  /** Re-exports by name. */
  readonly reexports: ReadonlyMap<string, Link>;
  /** Modules re-exported as a whole. */
  readonly stars: readonly Star[];
  /** Functions, and constants that are neither records nor classes. */
  readonly others: readonly string[];
  /** Lines of exports by name. */
  readonly lines: ReadonlyMap<string, number>;
  readonly loads: ModuleLoads;
  /** Whether its code may change state of other modules. */
  readonly changesOthers: boolean;
  /** The first syntax error, or why it cannot be read. */
  readonly problem: SourceProblem | undefined;
}
