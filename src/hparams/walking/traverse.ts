/** @file The one traversal under every tool: iterative, each object once, cycles found. */

import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import type { FieldInfo } from '../fields/fields.js';
import { isCarrier } from '../nodes/carriers.js';
import { deeper, partsOf } from '../nodes/containers.js';
import { ConfigNode, isExplicit, nodeOf, rawValue } from '../nodes/node.js';
import type { AnyConfig } from '../types.js';
import { formatLink, type PathLink, type Segment, segmentsOf } from './paths.js';

/** What a traversal does at each step; a step is one way to reach an object. */
export interface Steps<S> {
  /** What the step reaches: two steps that reach the same are one object in two places. */
  target(step: S): unknown;
  path(step: S): PathLink | undefined;
  children(step: S): readonly S[];
  /** Called before the children of an object that is met for the first time. */
  enter?(step: S): void;
  /** Called after all children of an object. */
  leave?(step: S): void;
  /** Called where an object is met again. */
  again?(step: S, first: S): void;
  /** Visits a shared object once, the default, or once for each path to it. */
  memoized?: boolean;
}

/**
 * Goes through what can be reached from `root`, depth first, without recursion.
 *
 * @throws ConfigError that names both paths where an object contains itself.
 */
export function depthFirst<S>(root: S, steps: Steps<S>): void {
  const memoized = steps.memoized !== false;
  const first = new Map<unknown, S>();
  const inside = new Map<unknown, S>();
  const open: { children: readonly S[]; next: number; owner: S | undefined }[] = [];
  open.push({ children: [root], next: 0, owner: undefined });
  for (let level = open.at(-1); level !== undefined; level = open.at(-1)) {
    const step = level.children[level.next++];
    if (step === undefined) {
      open.pop();
      if (level.owner !== undefined) {
        inside.delete(steps.target(level.owner));
        steps.leave?.(level.owner);
      }
      continue;
    }
    const target = steps.target(step);
    const known = memoized ? first.get(target) : undefined;
    const outer = memoized && known === undefined ? undefined : inside.get(target);
    if (outer !== undefined) throw cycleError(target, steps.path(step), steps.path(outer));
    if (known !== undefined) steps.again?.(step, known);
    else {
      if (memoized) first.set(target, step);
      steps.enter?.(step);
      const children = steps.children(step);
      // Most objects hold nothing: they are left at once.
      if (children.length === 0) steps.leave?.(step);
      else {
        inside.set(target, step);
        open.push({ children, next: 0, owner: step });
      }
    }
  }
}

/** The error of an object that contains itself: at `path` stands what stands at `outer`, too. */
export function cycleError(
  target: unknown,
  path: PathLink | undefined,
  outer: PathLink | undefined,
): ConfigError {
  const node = nodeOf(target) ?? (target instanceof ConfigNode ? target : undefined);
  const what = node === undefined ? showKind(target) : `${node.info.name} config`;
  const where = outer === undefined ? 'the root' : shorten(formatLink(outer));
  return new ConfigError(
    `A ${node === undefined ? 'container' : 'config'} must not contain itself: ${shorten(formatLink(path))} is the same ${what} as ${where}.`,
    { path: formatLink(path) },
  );
}

function showKind(target: unknown): string {
  if (Array.isArray(target)) return 'array';
  const name = (target as object).constructor?.name;
  return name === undefined || name === 'Object' ? 'record' : name;
}

function shorten(path: string): string {
  return path.length <= 200 ? path : `${path.slice(0, 100)}…${path.slice(-99)}`;
}

/** One place where a config stands inside another, or inside the containers that the walk began with. */
export interface Edge {
  readonly node: ConfigNode;
  readonly path: PathLink | undefined;
}

/** Which configs a walk follows. */
export interface WalkOptions {
  /** Configs directly held by `node`; the default is every explicit and edited one. */
  children?: (node: ConfigNode, path: PathLink | undefined) => readonly Edge[];
  /** Called before the children of a config that is met for the first time. */
  enter?: (node: ConfigNode, path: PathLink | undefined) => void;
  /** Called after all children of a config. */
  leave?: (node: ConfigNode, path: PathLink | undefined) => void;
  /** Called where a config is met again. */
  again?: (node: ConfigNode, path: PathLink | undefined, first: PathLink | undefined) => void;
  /** Visits a shared config once, the default, or once for each path to it. */
  memoized?: boolean | undefined;
  /** Where the root stands: paths go on from here. */
  at?: PathLink | undefined;
}

/** A config, or one of the containers that the walk began with. */
interface WalkStep {
  readonly node: ConfigNode | undefined;
  readonly container?: unknown;
  readonly path: PathLink | undefined;
}

/**
 * Walks the configs in `root` in depth-first order, fields in the order of declaration, each config once.
 *
 * @throws ConfigError where a config contains itself.
 */
export function walk(root: unknown, options: WalkOptions): void {
  const children = options.children ?? ((node, path) => edgesOf(node, path));
  const { enter, leave, again } = options;
  depthFirst<WalkStep>(walkStep(root, options.at), {
    target: (step) => step.node ?? step.container,
    path: (step) => step.path,
    children: (step) => (step.node === undefined ? partSteps(step) : children(step.node, step.path)),
    enter: (step) => step.node && enter?.(step.node, step.path),
    leave: (step) => step.node && leave?.(step.node, step.path),
    again: (step, first) => step.node && again?.(step.node, step.path, first.path),
    ...(options.memoized === false ? { memoized: false } : {}),
  });
}

function walkStep(value: unknown, path: PathLink | undefined): WalkStep {
  const node = nodeOf(value);
  return node === undefined ? { node, container: value, path } : { node, path };
}

function partSteps(step: WalkStep): WalkStep[] {
  const steps: WalkStep[] = [];
  for (const [segment, part] of partsOf(step.container) ?? []) {
    if (typeof part === 'object' && part !== null) steps.push(walkStep(part, { parent: step.path, segment }));
  }
  return steps;
}

/** The configs that `node` holds, with their paths. A carrier stands where its value does: it adds no step. */
export function edgesOf(node: ConfigNode, path: PathLink | undefined, withDefaults = false): Edge[] {
  const edges: Edge[] = [];
  for (const field of node.info.fields.values()) {
    if (!holdsConfigs(node, field, withDefaults)) continue;
    const value = rawValue(node, field);
    if (typeof value !== 'object' || value === null) continue;
    edgesIn(value, isCarrier(node) ? path : { parent: path, segment: field.name }, edges);
  }
  return edges;
}

function holdsConfigs(node: ConfigNode, field: FieldInfo, withDefaults: boolean): boolean {
  if (field.name in node.values) return typeof node.values[field.name] === 'object';
  if (withDefaults) return field.default.kind !== 'none';
  return isExplicit(node, field.name);
}

/** The configs in a value, seen through the containers that a config owns: each stands in one place only. */
export function edgesIn(value: unknown, path: PathLink | undefined, into: Edge[] = [], depth = 0): Edge[] {
  const node = nodeOf(value);
  if (node !== undefined) into.push({ node, path });
  else if (typeof value === 'object' && value !== null) {
    const next = deeper(depth);
    if (Array.isArray(value)) {
      for (let segment = 0; segment < value.length; segment++) {
        const part: unknown = value[segment];
        if (typeof part === 'object' && part !== null) edgesIn(part, { parent: path, segment }, into, next);
      }
      return into;
    }
    for (const [segment, part] of partsOf(value) ?? []) edgesIn(part, { parent: path, segment }, into, next);
  }
  return into;
}

/** A config and where it was first met. */
export class Visit {
  readonly config: AnyConfig;
  private readonly link: PathLink | undefined;

  constructor(config: AnyConfig, link: PathLink | undefined) {
    this.config = config;
    this.link = link;
  }

  /** The steps from the root; made when asked for, for those of a deep chain are many. */
  get path(): readonly Segment[] {
    return segmentsOf(this.link);
  }
}

/**
 * The configs in `root`, which may be a config or containers of configs: outer before inner, each once, with the first
 * path to it. `defaults` takes in sub-configs that are defaults; without `memoized`, a config that is used twice is there
 * twice, once for each path.
 */
export function iterate(root: unknown, options: { defaults?: boolean; memoized?: boolean } = {}): Visit[] {
  const visits: Visit[] = [];
  walk(root, {
    children: (node, path) => edgesOf(node, path, options.defaults === true),
    enter: (node, path) => isCarrier(node) || visits.push(new Visit(node.proxy, path)),
    memoized: options.memoized,
  });
  return visits;
}

/** The text of the first path from `root` to `config`. @throws ConfigError where there is none. */
export function pathOf(root: unknown, config: AnyConfig): string {
  const wanted = nodeOf(config);
  let found: string | undefined;
  walk(root, {
    children: (node, path) => edgesOf(node, path, true),
    enter: (node, path) => {
      if (node === wanted) found = formatLink(path);
    },
  });
  if (found === undefined) throw new ConfigError(`${showValue(config)} is not part of ${showValue(root)}.`);
  return found;
}
