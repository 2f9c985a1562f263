/** @file Reading and writing by path, as command-line flags do. */

import { z } from 'zod';
import { didYouMean } from '../../system/text/index.js';
import { ConfigError } from '../errors.js';
import { coerce } from '../fields/coerce.js';
import { showValue } from '../fields/describe.js';
import { namesFitting } from '../fields/fittingClasses.js';
import { presentNameHint } from '../fields/renamed.js';
import { holderOf, partSchema } from '../fields/schema.js';
import { isContainer, partsOf } from '../nodes/containers.js';
import { handlerOf } from '../nodes/containerTypes.js';
import { hasValue, nodeOf, type Origin, originText } from '../nodes/node.js';
import { origin as currentWriter, withOrigin } from '../nodes/record.js';
import { formatPath, formatSegment, isSameStep, parsePath, type Segment } from '../walking/paths.js';

/** The value at `path` in a config, or in arrays and records of configs. @throws ConfigError with a suggestion. */
export function getPath(root: unknown, path: string | readonly Segment[]): unknown {
  const segments = typeof path === 'string' ? parsePath(path) : path;
  let value = root;
  for (let i = 0; i < segments.length; i += 1) value = stepInto(value, segments, i, undefined);
  return value;
}

/**
 * Sets the value at `path`. A string is parsed by the field's schema (see `coerce`), any other value is used as it is.
 * `origin` names the writer, such as the text of a flag, in the history and in errors; the default is the caller's
 * line.
 *
 * @throws ConfigError for a path that does not exist, with a suggestion, and for an invalid value.
 */
export function setPath(
  root: unknown,
  path: string | readonly Segment[],
  value: unknown,
  origin?: string,
): void {
  const writer = origin ?? currentWriter();
  const segments = typeof path === 'string' ? parsePath(path) : [...path];
  writePath(root, segments, writer, () => {
    return typeof value === 'string' ? read(schemaAt(root, segments), value, segments, writer) : value;
  });
}

/** Sets the value at `segments` to the result of `make`, which is called once the path is known to exist. */
export function writePath(
  root: unknown,
  segments: readonly Segment[],
  writer: Origin,
  make: () => unknown,
): void {
  withOrigin(writer, () => {
    const { owner, last } = ownerAt(root, [...segments], writer, true);
    const value = make();
    namingPath(root, segments, writer, () => {
      (owner as Record<string | number, unknown>)[last] = value;
    });
  });
}

/** Runs a write; its errors name the path instead of the class, as those of unparsable texts do. */
function namingPath(root: unknown, segments: readonly Segment[], writer: Origin, write: () => void): void {
  try {
    write();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const path = formatPath(segments);
    const { cause, place = originText(writer) } = error;
    throw new ConfigError(sayingPath(root, segments, error) ?? `${path}: ${error.problem}`, {
      path,
      place,
      cause,
    });
  }
}

/** The problem with the path of the config in the place of its class, undefined where it does not begin with that. */
function sayingPath(root: unknown, segments: readonly Segment[], error: ConfigError): string | undefined {
  for (let i = segments.length - 1; i >= 0; i -= 1) {
    const node = nodeOf(getPath(root, segments.slice(0, i)));
    if (node === undefined) continue;
    const { name } = node.info;
    if (!error.problem.startsWith(`${name}.${error.path}`)) return undefined;
    return i === 0
      ? error.problem.slice(name.length + 1)
      : formatPath(segments.slice(0, i)) + error.problem.slice(name.length);
  }
  return undefined;
}

/**
 * Restores the default at `path`, or removes the entry of an array or a record. `origin` is as in `setPath`.
 *
 * @throws ConfigError for a missing path, a field without default, or an invalid remainder.
 */
export function unsetPath(root: unknown, path: string | readonly Segment[], origin?: string): void {
  const writer = origin ?? currentWriter();
  const segments = typeof path === 'string' ? parsePath(path) : [...path];
  withOrigin(writer, () => {
    const { owner, last } = ownerAt(root, segments, writer, false);
    const node = nodeOf(owner);
    if (node?.info.fields.get(String(last))?.default.kind === 'none') {
      const problem = `${formatPath(segments)}: ${node.info.name}.${last} has no default to go back to`;
      throw new ConfigError(problem, { path: formatPath(segments), place: originText(writer) });
    }
    namingPath(root, segments, writer, () => {
      if (Array.isArray(owner)) owner.splice(Number(last), 1);
      else delete (owner as Record<string | number, unknown>)[last];
    });
  });
}

function read(schema: z.ZodType, text: string, segments: Segment[], writer: Origin): unknown {
  try {
    return coerce(schema, text, formatPath(segments));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(error.problem, { path: formatPath(segments), place: originText(writer) });
  }
}

function ownerAt(
  root: unknown,
  segments: Segment[],
  writer: Origin,
  mayBeNew: boolean,
): { owner: object; last: string | number } {
  if (segments.length === 0) throw new ConfigError('The path is empty.', { place: originText(writer) });
  let owner = root;
  for (let i = 0; i < segments.length - 1; i += 1) {
    const node = nodeOf(owner);
    const field = node?.info.fields.get(String(segments[i]));
    const isUnset = field?.holder !== undefined && !hasValue(node!, field);
    owner = isUnset ? undefined : stepInto(owner, segments, i, writer);
    if (owner === null || owner === undefined) refuseUnset(root, segments, i + 1, owner, writer);
  }
  const last = keyIn(owner, segments, segments.length - 1, writer, mayBeNew);
  return { owner: owner as object, last };
}

/** @throws ConfigError if the config at the first `count` steps is unset, with the field to set first. */
function refuseUnset(
  root: unknown,
  segments: readonly Segment[],
  count: number,
  value: null | undefined,
  writer: Origin,
): void {
  const holder = holderOf(schemaAt(root, segments.slice(0, count)));
  if (holder === undefined) return;
  const parent = formatPath(segments.slice(0, count));
  const names = namesFitting(holder);
  const name = names.find((each) => each === holder.cls?.name) ?? names[0] ?? 'NAME';
  const others = names.filter((each) => each !== name);
  const flag = originText(writer) ?? '';
  const first = flag.startsWith('--')
    ? `--set ${parent}=${name} ${flag}`
    : `setPath(root, '${parent}', '${name}')`;
  const choice =
    holder.cls === undefined || others.length === 0
      ? ''
      : ` Instead of ${name}, it may be ${others.join(', ')}.`;
  throw new ConfigError(
    `No '${formatPath(segments)}': '${parent}' is ${value === null ? 'null' : 'not set'}. Set it first: ${first}.${choice}`,
    { path: formatPath(segments), place: flag },
  );
}

function stepInto(
  value: unknown,
  segments: readonly Segment[],
  i: number,
  writer: Origin | undefined,
): unknown {
  if (nodeOf(value) === undefined && handlerOf(value) !== undefined) return partAt(value, segments, i);
  const key = keyIn(value, segments, i, writer, false);
  return (value as Record<string | number, unknown>)[key];
}

/** The part of a Map, a Set or a registered container that a step leads to. */
function partAt(value: unknown, segments: readonly Segment[], i: number): unknown {
  const parts = partsOf(value)!;
  const step = segments[i]!;
  const found = parts.find(([own]) => isSameStep(own, step));
  if (found !== undefined) return found[1];
  const valid = parts.map(([own]) => formatSegment(own, true)).join(', ');
  throw new ConfigError(
    `No '${formatPath(segments)}': ${showValue(value)} has no ${formatSegment(step, true)}.${valid && ` It has ${valid}.`}`,
    { path: formatPath(segments) },
  );
}

/** The property that a step names in `value`; `mayBeNew` lets it be a record's new key. */
function keyIn(
  value: unknown,
  segments: readonly Segment[],
  i: number,
  writer: Origin | undefined,
  mayBeNew: boolean,
): string | number {
  const segment = segments[i]!;
  const name = typeof segment === 'object' ? segment.key : segment;
  const fail = (problem: string): never => {
    const place = writer === undefined ? undefined : originText(writer);
    throw new ConfigError(problem, { path: formatPath(segments), place });
  };
  const whole = formatPath(segments);
  const here = formatPath(segments.slice(0, i));
  const unknown = (names: string[], what: string): never => {
    const valid = names.length === 0 ? '' : ` It has ${names.join(', ')}.`;
    return fail(`No '${whole}': ${what} has no '${name}'.${didYouMean(String(name), names) || valid}`);
  };
  const node = nodeOf(value);
  if (node !== undefined) {
    const what = `${node.info.name}${here === '' ? '' : ` at '${here}'`}`;
    if (!node.info.fields.has(String(name))) {
      const hint = presentNameHint(node.info.oldNames, String(name));
      if (hint !== '') return fail(`No '${whole}': ${what} has no '${name}'.${hint}`);
      return unknown([...node.info.fields.keys()], what);
    }
    return String(name);
  }
  if (Array.isArray(value)) {
    const index = typeof name === 'number' ? name : Number.NaN;
    const at = index < 0 ? value.length + index : index;
    const limit = value.length + Number(mayBeNew);
    if (!(at >= 0 && at < limit))
      fail(`No '${whole}': '${here}' has ${value.length} elements, counted from 0.`);
    return at;
  }
  if (!isContainer(value)) fail(`No '${whole}': '${here}' is ${showValue(value)}, which has no parts.`);
  const record = value as Record<string, unknown>;
  if (!Object.hasOwn(record, name) && !mayBeNew) {
    return unknown(Object.keys(record), here === '' ? 'the root' : `'${here}'`);
  }
  return name;
}

/** Schema of the value at a path; accepts anything if there is none. */
function schemaAt(root: unknown, segments: readonly Segment[]): z.ZodType {
  let value = root;
  let schema: z.ZodType | undefined;
  for (const [i, segment] of segments.entries()) {
    const name = typeof segment === 'object' ? segment.key : segment;
    schema = nodeOf(value)?.info.fields.get(String(name))?.check ?? (schema && partSchema(schema, name));
    if (i < segments.length - 1) value = stepInto(value, segments, i, undefined);
  }
  return schema ?? anything;
}

const anything = z.unknown();
