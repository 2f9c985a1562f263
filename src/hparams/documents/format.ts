/** @file The form of config documents: their parts, how large one may be, and what readers tell. */

import { ConfigError, countText, linesBelow } from '../errors.js';
import type { NodeKind } from '../nodes/node.js';
import type { AbstractClass } from '../types.js';

/** What a document says it is. */
export const format = 'luthier-config';
/** The version that is written, and the newest that is read. */
export const version = 1;

/** A value in a document: JSON, with marks such as `{"$config": 3}` or `{"$number": "NaN"}` for what JSON lacks. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

/** One config in a document: its class, its explicit values, and, if asked for, its path for the reader. */
export interface JsonConfig {
  class: string;
  kind?: NodeKind;
  path?: string;
  /** How tags of fields differ from the declared ones: names of those added, `-` before those removed. */
  tags?: { [field: string]: string[] };
  values: { [field: string]: JsonValue };
}

/** What `toJSON` makes. */
export interface JsonDocument {
  format: typeof format;
  version: number;
  root: JsonValue;
  configs: JsonConfig[];
}

/** How documents are read. */
export interface ReadOptions {
  /** Classes to find by name, besides those that the program has used. */
  classes?: readonly AbstractClass[];
  /** The longest text or file that is read. The default is 256 MiB for JSON, 4 MiB for YAML and files of overrides. */
  maxBytes?: number;
  /** Is told of old names that were read by means of `registerAlias` and `renamed`. The default warns through Node. */
  notify?: (notice: string) => void;
}

/** The longest JSON that is read unless told otherwise: node itself cannot hold much longer text. */
export const longestJson = 256 * 2 ** 20;
/** The same for text that is read with the place of each part, which takes some 150 times its space. */
export const longestWritten = 4 * 2 ** 20;
/** How many values aliases of YAML may stand for, all in all. */
export const mostValues = 1_000_000;
/** Configs and containers written inside one another. Deeper configs stand in the list `configs`. */
export const deepestDocument = 500;

/** One thing that is wrong, where in the config, and where in the text or the code. */
export interface DocumentProblem {
  readonly path: string;
  readonly problem: string;
  readonly place: string | undefined;
  readonly cause?: unknown;
}

/** Throws what is wrong, if anything is: one problem as it is, several as a list below `what` and its file. */
export function throwProblems(problems: readonly DocumentProblem[], what: string, file?: string): void {
  const [first] = problems;
  if (first === undefined) return;
  const { problem, path, place, cause } = first;
  if (problems.length === 1) throw new ConfigError(problem, { path, place, cause });
  const lines = problems.map(
    (each) => `${each.problem}${each.place === undefined ? '' : ` (at ${each.place})`}`,
  );
  const whole = file === undefined ? what : `${what} ${file}`;
  throw new ConfigError(`${whole}: ${countText(problems.length)} problems:${linesBelow(lines)}`, { path });
}

/** `error` as a problem. @throws `error` itself where it is no ConfigError. */
export function problemFrom(error: unknown, path: string, place?: string): DocumentProblem {
  if (!(error instanceof ConfigError)) throw error;
  return { path, problem: error.problem, place: place ?? error.place, cause: error.cause };
}

/** Tells `options.notify`, or else warns through Node; what was told already is not told again. */
export function notifier(options: Pick<ReadOptions, 'notify'>): (notice: string) => void {
  const told = new Set<string>();
  const notify = options.notify ?? ((notice: string) => process.emitWarning(notice, 'ConfigWarning'));
  return (notice) => {
    if (told.has(notice)) return;
    told.add(notice);
    notify(notice);
  };
}
