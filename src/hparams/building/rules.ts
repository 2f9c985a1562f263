/** @file Rules across the fields of one config: refinements, and `validate` hooks. */
import { z } from 'zod';
import { ConfigError, NotSetError, PromiseError, refusePromise } from '../errors.js';
import { type ClassInfo, FIELDS } from '../fields/fields.js';
import { definitionOf, parse } from '../fields/schema.js';
import { mapContainers } from '../nodes/containers.js';
import { type ConfigNode, hasValue, isExplicit, nodeOf, rawValue } from '../nodes/node.js';
import { readField } from '../nodes/reading.js';
import { captureTrace, placeText } from '../source.js';
import type { Report } from '../types.js';
import { type PathLink, parsePath, type Segment } from '../walking/paths.js';
import { messageOf } from './buildErrors.js';
import { type Readings, Violation, writesOf } from './violations.js';

/** Key of the static property that holds a class's rules, those of its bases first. */
export const RULES: unique symbol = Symbol('luthier.rules');

/** One refinement, by itself: it is to be heard even where another one could not run. */
export interface Rule {
  readonly schema: z.ZodType;
  /** Rules behind one that aborts are not run where it fails. */
  readonly aborts: boolean;
}

type Hook = (config: object, report: Report) => unknown;

/** The refinements that `rules` adds. @throws ConfigError where it does anything else to the schema. */
export function rulesFrom(where: string, rules: ((schema: z.ZodType) => z.ZodType) | undefined): Rule[] {
  if (rules === undefined) return [];
  const refined = rules(z.any());
  const checks =
    refined instanceof z.ZodType && definitionOf(refined).type === 'any'
      ? (definitionOf(refined).checks ?? [])
      : undefined;
  if (checks === undefined || checks.some((check) => check._zod.def.check !== 'custom')) {
    throw new ConfigError(
      `${where}: the rules may only add refinements to the schema they are given: (schema) => schema.refine(…).`,
      { place: placeText(captureTrace()) },
    );
  }
  return checks.map((check) => ({
    schema: z.any().check(check as unknown as z.core.$ZodCheck<unknown>),
    aborts: (check._zod.def as { abort?: boolean }).abort === true,
  }));
}

const asyncProblem = 'its problems are collected when it returns';

interface ClassRules {
  readonly rules: readonly Rule[];
  readonly hooks: readonly Hook[];
}

const known = new WeakMap<ClassInfo, ClassRules>();

function rulesOf(info: ClassInfo): ClassRules {
  let found = known.get(info);
  if (found === undefined) {
    const rules = (info.cls as unknown as { [RULES]?: readonly Rule[] })[RULES] ?? [];
    known.set(info, (found = { rules, hooks: hooksOf(info) }));
  }
  return found;
}

/** Whether the class has rules or hooks. */
export function hasRules(info: ClassInfo): boolean {
  const { rules, hooks } = rulesOf(info);
  return rules.length + hooks.length > 0;
}

/** The `validate` hooks of the class and its bases, bases first; a class that is foreign to configs has none. */
function hooksOf(info: ClassInfo): Hook[] {
  const hooks: Hook[] = [];
  for (let cls: object | null = info.cls; cls !== null && FIELDS in cls; cls = Object.getPrototypeOf(cls)) {
    const own: unknown = Object.getOwnPropertyDescriptor(cls, 'validate')?.value;
    const owner = cls;
    if (typeof own === 'function') hooks.unshift((config, report) => own.call(owner, config, report));
  }
  return hooks;
}

/** How a config is looked at. */
interface View {
  /** Set for a template: its owner may still replace defaults, so that only explicit values count. */
  readonly explicitOnly?: boolean;
  /** Values that the call of a factory gave. */
  readonly given?: Record<string, unknown>;
}

/** Adds the problems that the class's rules and hooks report to `into`. */
export function checkRules(
  node: ConfigNode,
  path: PathLink | undefined,
  view: View,
  into: Violation[],
): void {
  if (!hasRules(node.info)) return;
  const { rules, hooks } = rulesOf(node.info);
  const writes = writesOf(node);
  const guard = guarded(node, view);
  const tell = (
    message: string,
    segments: readonly Segment[],
    reads: ReadonlySet<string>,
    cause?: unknown,
  ) => {
    const readings: Readings = { path, reads: [...reads], segments, writes, given: view.given ?? {} };
    into.push(new Violation('rule', node, message, readings, cause));
  };
  const attempt = (what: string, reads: ReadonlySet<string>, action: () => unknown): void => {
    try {
      refusePromise(action(), what, asyncProblem);
    } catch (error) {
      if (error instanceof NotSetError) return;
      const isPromise = error instanceof PromiseError;
      const text = isPromise
        ? `${what} must not be async: ${asyncProblem}`
        : `${what} failed: ${messageOf(error)}`;
      tell(text, [], reads, error);
    }
  };
  for (const rule of rules) {
    const { config, reads } = guard();
    let failed = false;
    attempt('a rule', reads, () => {
      for (const issue of parse(rule.schema, config).error?.issues ?? []) {
        failed = true;
        const message = issue.message === 'Invalid input' ? 'a rule does not hold' : issue.message;
        tell(message, segmentsIn(node, issue.path), reads);
      }
    });
    if (failed && rule.aborts) break;
  }
  for (const hook of hooks) {
    const { config, reads } = guard();
    attempt('validate()', reads, () =>
      hook(config, (message, at = []) => {
        const steps = typeof at === 'string' ? parsePath(at) : at;
        const segments = segmentsIn(
          node,
          steps.map((step) => (typeof step === 'object' ? step.key : step)),
        );
        // The hook may have read values for other reports: the field that it names suffices.
        tell(message, segments, segments.length > 0 ? new Set([String(steps[0])]) : new Set(reads));
      }),
    );
  }
}

/** The steps of an issue's path: a key is a field's name in a config, and a record's key elsewhere. */
function segmentsIn(node: ConfigNode, keys: readonly PropertyKey[]): Segment[] {
  let at: unknown = node.proxy;
  return keys.map((key) => {
    const inConfig = nodeOf(at) !== undefined;
    at = (inConfig && !hasField(at, key) ? undefined : (at as Record<PropertyKey, unknown> | undefined))?.[
      key
    ];
    if (typeof key === 'number') return key;
    return inConfig ? String(key) : { key: String(key) };
  });
}

function hasField(config: unknown, key: PropertyKey): boolean {
  const node = nodeOf(config)!;
  const field = node.info.fields.get(String(key));
  return field !== undefined && hasValue(node, field);
}

/** Makes the argument of rules: a read-only config that records reads and refuses unset fields. */
function guarded(node: ConfigNode, view: View): () => { config: object; reads: Set<string> } {
  const copies = new Map<string, unknown>();
  const read = (name: string): unknown => {
    const field = node.info.fields.get(name)!;
    if (view.given !== undefined && Object.hasOwn(view.given, name)) {
      if (field.holdsBuilt) throw new NotSetError(`${name} is built already.`);
      return view.given[name];
    }
    if (view.explicitOnly === true && !isExplicit(node, name)) throw new NotSetError(`${name} is not set.`);
    if (!hasValue(node, field)) return readField(node, field);
    // One copy for all rules keeps a rule over many elements fast, and protects the config from edits.
    if (!copies.has(name))
      copies.set(
        name,
        mapContainers(rawValue(node, field), (leaf) => leaf),
      );
    return copies.get(name);
  };
  return () => {
    const reads = new Set<string>();
    const config = new Proxy(node.proxy as object, {
      get(target, key) {
        if (typeof key !== 'string' || !node.info.fields.has(key)) return Reflect.get(target, key);
        reads.add(key);
        return read(key);
      },
      set(_, key) {
        throw new ConfigError(`it wrote ${node.info.name}.${String(key)}; rules must not write.`);
      },
    });
    return { config, reads };
  };
}
