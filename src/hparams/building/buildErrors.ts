/** @file Messages of failed builds: the config's path, its values, and the lines that set them. */

import { isNativeError } from 'node:util/types';
import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { type ConfigNode, isExplicit, originText, rawValue, type Write } from '../nodes/node.js';
import { formatLink, type PathLink } from '../walking/paths.js';

// The first few values explain most errors; print the config for all of them.
const mostValues = 12;

/**
 * The error to throw for a build of `node` that failed with `cause`: `cause` itself, its message extended by the path,
 * the given values and their places; a new ConfigError for an error that is frozen and for values that are not errors.
 * `build` is the outermost build: each path is added once per build, and an error thrown in two builds keeps the text
 * of the later one only.
 */
export function failedBuild(
  cause: unknown,
  node: ConfigNode,
  path: PathLink | undefined,
  build: object,
): unknown {
  const where = `${node.info.name}${path === undefined ? '' : ` at ${formatLink(path)}`}`;
  const options = { path: formatLink(path), cause };
  if (!isError(cause)) {
    return new ConfigError(`Building ${where} failed: ${messageOf(cause)}${givenValues(node)}`, options);
  }
  const { message, isAnnotated } = messageIn(cause, build);
  const says = isAnnotated || cause instanceof ConfigError;
  const text = says
    ? `${message}\n  while building ${where}`
    : `Building ${where} failed: ${message}${givenValues(node)}`;
  const isPlain = Object.getPrototypeOf(cause) === ConfigError.prototype;
  if (isPlain || !Object.isExtensible(cause)) return new ConfigError(text, options);
  retell(cause, text, build);
  return cause;
}

/** A line for each value that was set, with its place. */
function givenValues(node: ConfigNode): string {
  const names = [...node.info.fields.keys()].filter((name) => isExplicit(node, name));
  const writes = lastWrites(node);
  const lines = names.slice(0, mostValues).map((name) => {
    const place = placeText(writes.get(name));
    const at = place === undefined ? '' : ` (set at ${place})`;
    return `\n  ${name}: ${showValue(rawValue(node, node.info.fields.get(name)!))}${at}`;
  });
  if (names.length > mostValues) lines.push(`\n  and ${names.length - mostValues} more`);
  return lines.join('');
}

/** Where the present value of the field was written, or undefined for a default. */
export function placeOfValue(node: ConfigNode, field: string): string | undefined {
  return placeText(lastWrites(node).get(field));
}

/** Where the field was brought back to having no value, for the message that it has none. */
export function placeOfDelete(node: ConfigNode, field: string): string | undefined {
  const last = lastWrites(node).get(field);
  return last?.kind === 'delete' ? originText(last.origin) : undefined;
}

/** Where a write was made, unless it took the value away. */
export function placeText(write: Write | undefined): string | undefined {
  return write === undefined || write.kind === 'delete' ? undefined : originText(write.origin);
}

/** The last write to the value of each field. */
export function lastWrites(node: ConfigNode): Map<string, Write> {
  const last = new Map<string, Write>();
  for (let write = node.last; write !== undefined; write = write.previous) {
    const isOfValue = write.kind === 'set' || write.kind === 'edit' || write.kind === 'delete';
    if (isOfValue && !last.has(write.field)) last.set(write.field, write);
  }
  return last;
}

/** The original message of an error, and the text that a build added to it. */
interface Annotated {
  readonly own: string;
  readonly text: string;
  readonly build: object;
}

const annotations = new WeakMap<Error, Annotated>();

/** Whether `thrown`, which may be anything, is an error. */
function isError(thrown: unknown): thrown is Error {
  try {
    return isNativeError(thrown) || thrown instanceof Error;
  } catch {
    return false;
  }
}

/** The message of a thrown value of any type. */
export function messageOf(thrown: unknown): string {
  try {
    return String(isError(thrown) ? thrown.message : thrown);
  } catch {
    return 'the thrown value cannot be read';
  }
}

/**
 * The message of `error` without the text of builds other than `build`; `isAnnotated` is set if this build has added its
 * text.
 */
function messageIn(error: Error, build: object): { message: string; isAnnotated: boolean } {
  const message = messageOf(error);
  const before = annotations.get(error);
  if (before === undefined || before.text !== message) return { message, isAnnotated: false };
  return before.build === build
    ? { message, isAnnotated: true }
    : { message: before.own, isAnnotated: false };
}

/** Gives `error` the message `text`, in its stack as well. */
function retell(error: Error, text: string, build: object): void {
  const message = messageOf(error);
  const before = annotations.get(error);
  const stack = stackWith(error, message, text);
  Object.defineProperty(error, 'message', hidden(text));
  if (stack !== undefined) Reflect.defineProperty(error, 'stack', hidden(stack));
  if (error instanceof ConfigError) Object.assign(error, { problem: text });
  annotations.set(error, { own: before?.text === message ? before.own : message, text, build });
}

function hidden(value: string): PropertyDescriptor {
  return { value, writable: true, configurable: true, enumerable: false };
}

/** The stack, computed lazily from the original one. */
function stackOf(error: Error): string | undefined {
  try {
    return error.stack;
  } catch {
    return undefined;
  }
}

/** The stack of `error` with the new message at its head; undefined where it does not begin with the old one. */
function stackWith(error: Error, message: string, text: string): string | undefined {
  const stack = stackOf(error);
  const end = typeof stack === 'string' ? stack.indexOf('\n    at ') : -1;
  if (stack === undefined || end < 0) return undefined;
  const head = stack.slice(0, end);
  if (!head.endsWith(message)) return undefined;
  const start = message === '' ? `${head}: ` : head.slice(0, head.length - message.length);
  return `${start}${text}${stack.slice(end)}`;
}
