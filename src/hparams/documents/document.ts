/** @file Form and limits of config documents, and the classes, constants and tags that they name. */

import { countText, didYouMean, linesBelow } from '../../system/text/index.js';
import { ConfigError } from '../errors.js';
import {
  aliasNames,
  classesNamed,
  classOfAlias,
  concreteClasses,
  nameOf,
  qualifiedName,
  severalProblem,
} from '../fields/classNames.js';
import { showValue } from '../fields/describe.js';
import { abstractProblem } from '../fields/fields.js';
import { isContainer } from '../nodes/containers.js';
import {
  type ConfigNode,
  fieldOf,
  fieldTags,
  type NodeKind,
  nodeOf,
  type Origin,
  writeTags,
} from '../nodes/node.js';
import { captureTrace, fileOfTrace, placeText, type Trace } from '../source.js';
import { explicitTags, findTag } from '../tags.js';
import type { AbstractClass } from '../types.js';

/** Format name in a document. */
export const format = 'luthier-config';
/** The version that is written, and the newest that is read. */
export const version = 1;

/**
 * A value in a document: JSON, with marks such as `{"$config": 3}` or `{"$number": "NaN"}` for values outside of JSON.
 */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };

/** One config in a document: its class, its explicit values, and optionally its path for the reader. */
export interface JsonConfig {
  class: string;
  kind?: NodeKind;
  path?: string;
  /** How tags of fields differ from the declared ones: names of those added, `-` before those removed. */
  tags?: { [field: string]: string[] };
  values: { [field: string]: JsonValue };
}

/** Result of `toJSON`. */
export interface JsonDocument {
  format: typeof format;
  version: number;
  root: JsonValue;
  configs: JsonConfig[];
  /** The files that declare the classes, constants and tags which the library lacks, each with their names. */
  modules?: { [specifier: string]: string[] };
}

/** How documents are read. */
export interface ReadOptions {
  /** Classes to find by name, besides those that the program has used. */
  classes?: readonly AbstractClass[];
  /** The longest text or file that is read. The default is 256 MiB for JSON, 4 MiB for YAML and files of overrides. */
  maxBytes?: number;
  /** Receives notices of old names, as by `registerAlias` and `renamed`. The default is a Node warning. */
  notify?: (notice: string) => void;
}

/** The longest JSON that is read by default: node itself cannot hold much longer text. */
export const longestJson = 256 * 2 ** 20;
/** The same for text that is read with the place of each part, which takes some 150 times its space. */
export const longestWritten = 4 * 2 ** 20;
/** Most values that aliases of YAML may expand to, in total. */
export const mostValues = 1_000_000;
/** Deepest nesting of configs and containers. Deeper configs are in the list `configs`. */
export const deepestDocument = 500;

/** One thing that is wrong, where in the config, and where in the text or the code. */
export interface DocumentProblem {
  readonly path: string;
  readonly problem: string;
  readonly place: string | undefined;
  readonly cause?: unknown;
}

/** Throws the problems, if any: a single one as it is, several as a list headed by `what` and its file. */
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

/** Calls `options.notify`, or else emits a Node warning; repeated notices are dropped. */
export function notifier(options: Pick<ReadOptions, 'notify'>): (notice: string) => void {
  const notified = new Set<string>();
  const notify = options.notify ?? ((notice: string) => process.emitWarning(notice, 'ConfigWarning'));
  return (notice) => {
    if (notified.has(notice)) return;
    notified.add(notice);
    notify(notice);
  };
}

/** Keys of a config that is written in place which name no field. */
export const reservedNames: ReadonlySet<string> = new Set(['$class', '$kind', '$tags']);

/** Whether `value` is a parsed record. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The config document that a parsed value is, or that it holds as experiment.json does; undefined where it is neither. */
export function documentIn(value: unknown): unknown {
  if (!isRecord(value)) return undefined;
  if (Object.hasOwn(value, 'format')) return value.format === format ? value : undefined;
  const inner = Object.hasOwn(value, 'config') ? value.config : undefined;
  return isRecord(inner) && Object.hasOwn(inner, 'format') && inner.format === format ? inner : undefined;
}

/** The module that a document has a name from. */
function moduleFor(name: string, document: unknown): string | undefined {
  const inside = documentIn(document);
  const modules = isRecord(inside) && isRecord(inside.modules) ? inside.modules : {};
  return Object.keys(modules).find((specifier) => (modules[specifier] as unknown[]).includes?.(name));
}

/** The experiment whose run wrote a document, an experiment.json; undefined for other documents. */
function experimentOf(document: unknown): string | undefined {
  return isRecord(document) && isRecord(document.config) && typeof document.name === 'string'
    ? document.name
    : undefined;
}

/**
 * The class that `document` calls `name`. Nothing is imported.
 *
 * @throws ConfigError for none, or more than one.
 */
export function findClass(
  name: string,
  document: unknown,
  given: readonly AbstractClass[],
  notify: (notice: string) => void,
): AbstractClass {
  const short = name.slice(name.lastIndexOf('.') + 1);
  const own = given.filter((cls) => cls.name === short && (name === short || qualifiedName(cls) === name));
  const found = own.length > 0 ? own : classesNamed(name);
  const problem = found.length === 1 ? abstractProblem(found[0]!) : undefined;
  if (problem !== undefined) throw new ConfigError(problem);
  if (found.length === 1) return found[0]!;
  if (found.length > 1) throw new ConfigError(severalProblem(name, found));
  const renamed = classOfAlias(name);
  if (renamed !== undefined) {
    notify(`The config document uses the old name '${name}' of ${renamed.name}.`);
    return renamed;
  }
  const known = [...concreteClasses(), ...given].map((cls) => (cls.name === short ? nameOf(cls) : cls.name));
  const experiment = experimentOf(document);
  const module = moduleFor(name, document);
  throw new ConfigError(
    `No class '${name}' is known.${didYouMean(name, [...known, ...aliasNames()])} ` +
      'A document may use only classes that the program has imported and used, or that are listed in the option classes.' +
      (module === undefined ? '' : ` Import ${module}, which declares it, or have loadModules() do so.`) +
      (experiment === undefined ? '' : ` Import the module of ${experiment}, the experiment that wrote it.`),
  );
}

const named = new Map<string, unknown>();
const names = new Map<unknown, string>();
const registrations = new Map<string, Trace>();

/**
 * Lets documents hold `value`, a function, symbol or instance, by `name`. It is found by identity, so a value has one
 * name; register it where it is declared, so that it is there before a document is read.
 *
 * @throws ConfigError where the name stands for something else, or the value has a form, or a name, already.
 */
export function registerConstant(name: string, value: unknown): void {
  const problem = problemWith(name, value);
  if (problem !== undefined) {
    throw new ConfigError(`registerConstant(${showValue(name)}): ${problem}`, {
      place: placeText(captureTrace()),
    });
  }
  named.set(name, value);
  names.set(value, name);
  registrations.set(name, captureTrace());
}

/** Whether a constant is called `name`. */
export function isConstantNamed(name: string): boolean {
  return named.has(name);
}

/** The file that registers the constant called `name`. */
export function fileOfConstant(name: string): string | undefined {
  const trace = registrations.get(name);
  return trace && fileOfTrace(trace);
}

function problemWith(name: string, value: unknown): string | undefined {
  if (typeof name !== 'string' || name === '') return 'a constant needs a name.';
  const hasIdentity = ['function', 'symbol', 'object'].includes(typeof value) && value !== null;
  if (!hasIdentity || isContainer(value)) return `${showValue(value)} has a JSON form, and needs no name.`;
  if (nodeOf(value) !== undefined) return 'configs are kept as configs; share one object instead.';
  if (named.has(name) && named.get(name) !== value) return 'the name belongs to another constant already.';
  const other = names.get(value);
  if (other !== undefined && other !== name) return `the value is called '${other}' already.`;
  return undefined;
}

/** The name that `value` was registered under. */
export function constantNameOf(value: unknown): string | undefined {
  return names.get(value);
}

/** The constant called `name`. @throws ConfigError with the nearest name. */
export function constantNamed(name: unknown): unknown {
  if (typeof name === 'string' && named.has(name)) return named.get(name);
  const hint = typeof name === 'string' ? didYouMean(name, named.keys()) : '';
  throw new ConfigError(
    `No constant ${showValue(name)} is known.${hint} Import the module that registers it with registerConstant().`,
  );
}

/** The tags of a config that are not as its class declares them. */
export function tagNames(node: ConfigNode): Pick<JsonConfig, 'tags'> {
  const changes = [...explicitTags(node)];
  if (changes.length === 0) return {};
  const named = changes.map(([field, { added, removed }]): [string, string[]] => [
    field,
    [...added.map((tag) => tag.name), ...removed.map((tag) => `-${tag.name}`)],
  ]);
  return { tags: Object.fromEntries(named) };
}

/** Adds a document's tags to a config. @throws ConfigError for a malformed list, and unknown tags. */
export function readTags(node: ConfigNode, listed: unknown, origin: Origin): void {
  if (!isRecord(listed)) throw badList(listed);
  for (const [name, names] of Object.entries(listed)) {
    if (!Array.isArray(names) || !names.every((each): each is string => typeof each === 'string')) {
      throw badList(listed);
    }
    const field = fieldOf(node, name, origin);
    const isRemoved = (text: string): boolean => text.startsWith('-');
    const removed = names.filter(isRemoved).map((text) => findTag(text.slice(1)));
    const added = names.filter((text) => !isRemoved(text)).map((text) => findTag(text));
    const kept = fieldTags(node, field).filter((tag) => !removed.includes(tag));
    writeTags(node, field, [...kept, ...added], origin);
  }
}

function badList(listed: unknown): ConfigError {
  return new ConfigError(
    `tags are lists of names by field, such as {size: ['Added', '-Removed']}, got ${showValue(listed)}.`,
  );
}
