/** @file What went wrong in a build: where in the config, with which values, and where those were set. */

import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { type ConfigNode, isExplicit, originText, rawValue, type Write } from '../nodes/node.js';
import { formatLink, type PathLink } from '../walking/paths.js';
import { isError, messageIn, messageOf, withMessage } from './errorMessages.js';

// The values nearest to hand explain most errors; whoever needs more prints the config.
const mostValues = 12;

/**
 * What a build of `node` that failed with `cause` throws: `cause` itself, whose message now has the path, the values given
 * and their places; a ConfigError in the place of another, and of what is no error. `build` is the outermost build: what
 * was told in it is told once, and an error that is thrown in two builds has the words of the later one alone.
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
  const { message, isTold } = messageIn(cause, build);
  const says = isTold || cause instanceof ConfigError;
  const text = says
    ? `${message}\n  while building ${where}`
    : `Building ${where} failed: ${message}${givenValues(node)}`;
  const isPlain = Object.getPrototypeOf(cause) === ConfigError.prototype;
  return isPlain ? new ConfigError(text, options) : withMessage(cause, text, build);
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
