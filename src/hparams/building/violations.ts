/** @file Violations: one by one, and as one error. */

import { countText } from '../../system/text/index.js';
import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import type { FieldInfo } from '../fields/fields.js';
import { carrierTags } from '../nodes/carriers.js';
import { type ConfigNode, nodeOf, originText, rawValue, type Write } from '../nodes/node.js';
import { wantedOf } from '../nodes/reading.js';
import type { AnyConfig } from '../types.js';
import { formatLink, type PathLink, type Segment, shorten } from '../walking/paths.js';
import { lastWrites, placeOfDelete, placeText } from './buildErrors.js';

/** A value that a rule looked at. */
export interface Reading {
  /** From the root that was validated. */
  readonly path: string;
  readonly value: unknown;
  /** Where it was set, `file:line` or a flag's text; undefined for a default. */
  readonly where: string | undefined;
}

/** Lazy source of a violation's values. */
export interface Readings {
  /** The path of the config. */
  readonly path: PathLink | undefined;
  /** The fields that were read. */
  readonly reads: readonly string[];
  /** The place inside the config that the violation names; empty for the config itself. */
  readonly segments: readonly Segment[];
  readonly writes: () => ReadonlyMap<string, Write>;
  readonly given: Record<string, unknown>;
}

/** One thing that is wrong with a config. */
export class Violation {
  /** The config that is wrong. */
  readonly config: AnyConfig;

  constructor(
    /** A value that is not set; a value that its field's schema does not accept; a rule that does not hold. */
    readonly kind: 'missing' | 'value' | 'rule',
    private readonly node: ConfigNode,
    readonly message: string,
    private readonly readings: Readings,
    /** The error that a rule threw. */
    readonly cause?: unknown,
  ) {
    this.config = node.proxy;
  }

  /** The path from the validated root, made on first use. */
  get path(): string {
    return formatLink(linkOf(this.readings.path, this.readings.segments));
  }

  /** The values that the rule looked at, or the value that is wrong. */
  get values(): Reading[] {
    const { path, reads, segments, writes, given } = this.readings;
    return reads.map((name) => {
      const field = this.node.info.fields.get(name)!;
      const write = writes().get(name);
      const isGiven = Object.hasOwn(given, name);
      const value = isGiven ? given[name] : rawValue(this.node, field);
      // Where one element is wrong, it is shown rather than all.
      const steps = segments[0] === name ? segments : [name];
      const where = isGiven ? 'the call of the factory' : placeText(write);
      return { path: formatLink(linkOf(path, steps)), value: partOf(value, steps.slice(1)), where };
    });
  }

  /** The violation on one line. */
  toString(): string {
    const path = shorten(this.path) || '<root>';
    const text = `${path} (${this.node.info.name}): ${this.kind === 'missing' ? 'not set, ' : ''}${this.message}`;
    const prefix = formatLink(this.readings.path).length;
    const shown = this.values.slice(0, mostValues).map(({ path, value, where }) => {
      const name = path.slice(prefix).replace(/^\./, '');
      return `${name} is ${showValue(value)} (${where === undefined ? 'the default' : `at ${where}`})`;
    });
    return shown.length === 0 ? text : `${text}; ${shown.join(', ')}`;
  }
}

const mostValues = 6;

function linkOf(path: PathLink | undefined, segments: readonly Segment[]): PathLink | undefined {
  let link = path;
  for (const segment of segments) link = { parent: link, segment };
  return link;
}

function partOf(value: unknown, segments: readonly Segment[]): unknown {
  let part = value;
  for (const segment of segments) {
    const key = typeof segment === 'object' ? segment.key : segment;
    const node = nodeOf(part);
    const field = node?.info.fields.get(String(key));
    if (node !== undefined) part = field && rawValue(node, field);
    else part = (part as Record<PropertyKey, unknown> | null | undefined)?.[key];
  }
  return part;
}

/** Looks up the last writes to a config's fields on first use, once for many violations. */
export function writesOf(node: ConfigNode): () => ReadonlyMap<string, Write> {
  let found: ReadonlyMap<string, Write> | undefined;
  return () => (found ??= lastWrites(node));
}

/** That a field of a config is not set. */
export function missingValue(node: ConfigNode, path: PathLink | undefined, field: FieldInfo): Violation {
  const deleted = placeOfDelete(node, field.name);
  const hint = deleted === undefined ? '' : ` (deleted at ${deleted})`;
  return fieldViolation('missing', node, path, field, `expected ${wantedOf(node, field)}${hint}`);
}

/** That a part of a field's value, at the steps `segments` from the config, has tags and no value. */
export function missingPart(
  node: ConfigNode,
  path: PathLink | undefined,
  segments: readonly Segment[],
  carrier: ConfigNode,
): Violation {
  const made = carrier.last && originText(carrier.last.origin);
  const message = `expected a value for the part tagged ${carrierTags(carrier).join(', ')}${made === undefined ? '' : ` (made at ${made})`}`;
  return new Violation('missing', node, message, {
    path,
    reads: [],
    segments,
    writes: writesOf(node),
    given: {},
  });
}

/** That the value of one field is wrong, or missing. */
export function fieldViolation(
  kind: 'missing' | 'value',
  node: ConfigNode,
  path: PathLink | undefined,
  field: FieldInfo,
  message: string,
): Violation {
  const reads = kind === 'missing' ? [] : [field.name];
  return new Violation(kind, node, message, {
    path,
    reads,
    segments: [field.name],
    writes: writesOf(node),
    given: {},
  });
}

const mostListed = 50;

/** One error that lists all violations. */
export function violationError(violations: readonly Violation[]): ConfigError {
  const onlyMissing = violations.every(({ kind }) => kind === 'missing');
  const [first] = violations;
  // Texts are made for listed violations only.
  const texts = violations.slice(0, mostListed).map((violation) => {
    if (!onlyMissing) return String(violation);
    return `${shorten(violation.path)} (${nodeOf(violation.config)!.info.name}): ${violation.message}`;
  });
  const options = { path: first!.path, cause: violations.find(({ cause }) => cause !== undefined)?.cause };
  if (violations.length === 1) {
    const what = onlyMissing ? 'A hyperparameter is not set' : 'The config is not valid';
    return new ConfigError(`${what}: ${texts[0]}.`, options);
  }
  const count = violations.length;
  const what = onlyMissing
    ? `${countText(count)} hyperparameters are not set`
    : `The config has ${countText(count)} problems`;
  const rest = count > mostListed ? `\n  … and ${countText(count - mostListed)} more` : '';
  return new ConfigError(`${what}:\n  ${texts.join('\n  ')}${rest}`, options);
}
