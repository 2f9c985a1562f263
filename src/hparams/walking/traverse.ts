/** @file The one traversal under every tool: iterative, each object once, cycles found. */

import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import type { FieldInfo } from '../fields/fields.js';
import { isCarrier } from '../nodes/carriers.js';
import { deeper, partsOf } from '../nodes/containers.js';
import { ConfigNode, isExplicit, nodeOf, rawValue } from '../nodes/node.js';
import type { AnyConfig } from '../types.js';
import { formatLink, type PathLink, type Segment, segmentsOf, shorten } from './paths.js';

/** What a traversal does at each step; a step is one way to reach an object. */
export interface Steps<S> {
  /** What the step reaches: two steps that reach the same are one object in two places. */
  target(step: S): unknown;
  path(step: S): PathLink | undefined;
  children(step: S): readonly S[] | Source<S>;
  /** Called before the children of an object that is met for the first time. */
  enter?(step: S): void;
  /** Called after all children of an object; what it returns is the object's result. */
  leave?(step: S): unknown;
  /** Called where an object is met again. */
  again?(step: S): void;
  /** Visits a shared object once, the default, or once for each path to it. */
  memoized?: boolean;
  /** Where it is kept which objects were met, and what their results are. */
  met?: Map<unknown, unknown>;
}

// What a traversal knows of an object that it is inside of, and of one that was left without a result.
const inside = Symbol('luthier.inside');
const left = Symbol('luthier.left');

/** Gives steps one by one, so that a long list of them need never be made; undefined is the end. */
export interface Source<S> {
  next(): S | undefined;
}

/** Steps that were made already. */
class Listed<S> implements Source<S> {
  private at = 0;

  constructor(private readonly steps: readonly S[]) {}

  next(): S | undefined {
    return this.steps[this.at++];
  }
}

/**
 * Goes through what can be reached from `root`, depth first, without recursion. Remembers of an object only that it was
 * met, so that steps and paths which nobody keeps are short-lived however large the graph is.
 *
 * @throws ConfigError that names both paths where an object contains itself.
 */
export function depthFirst<S>(root: S, steps: Steps<S>): void {
  const met = steps.met ?? new Map<unknown, unknown>();
  // The steps to the objects that are being visited, and what gives their next children.
  const open: S[] = [];
  const sources: Source<S>[] = [];
  for (let step: S | undefined = root; ; ) {
    if (step === undefined) {
      const owner = open.pop();
      if (owner === undefined) return;
      sources.pop();
      leave(owner, steps, met);
    } else if (isNew(step, steps, met, open)) {
      steps.enter?.(step);
      const given = steps.children(step);
      const children = Array.isArray(given) ? new Listed<S>(given) : (given as Source<S>);
      const first = children.next();
      if (first !== undefined) {
        met.set(steps.target(step), inside);
        open.push(step);
        sources.push(children);
        step = first;
        continue;
      }
      // Most objects hold nothing: they are left at once.
      leave(step, steps, met);
    }
    step = sources.at(-1)?.next();
  }
}

/** Whether the object is met for the first time. @throws ConfigError where it is one of those that are `open`. */
function isNew<S>(step: S, steps: Steps<S>, met: Map<unknown, unknown>, open: readonly S[]): boolean {
  const target = steps.target(step);
  const known = met.get(target);
  if (known === undefined) return true;
  if (known === inside) {
    const outer = open.find((each) => steps.target(each) === target)!;
    throw cycleError(target, steps.path(step), steps.path(outer));
  }
  steps.again?.(step);
  return false;
}

function leave<S>(step: S, steps: Steps<S>, met: Map<unknown, unknown>): void {
  const result = steps.leave?.(step);
  met.set(steps.target(step), steps.memoized === false ? undefined : (result ?? left));
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

/** One place where a config stands inside another, or inside the containers that the walk began with. */
export interface Edge {
  readonly node: ConfigNode;
  readonly path: PathLink | undefined;
}

/** Which configs a walk follows. */
export interface WalkOptions {
  /** Configs directly held by `node`; the default is every explicit and edited one. */
  children?: (node: ConfigNode, path: PathLink | undefined) => readonly Edge[] | Source<Edge>;
  /** Called before the children of a config that is met for the first time. */
  enter?: (node: ConfigNode, path: PathLink | undefined) => void;
  /** Called after all children of a config; what it returns is the config's result. */
  leave?: (node: ConfigNode, path: PathLink | undefined) => unknown;
  /** Called where a config is met again. */
  again?: (node: ConfigNode, path: PathLink | undefined) => void;
  /** Visits a shared config once, the default, or once for each path to it. */
  memoized?: boolean | undefined;
  /** Where the root stands: paths go on from here. */
  at?: PathLink | undefined;
  /** Where the results of the configs are put, as soon as they are left: a table of its own would be as large again. */
  results?: Map<unknown, unknown>;
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
  const children = options.children ?? ((node, path) => new HeldEdges(node, path, holdsConfigs));
  const { enter, leave, again } = options;
  depthFirst<WalkStep>(walkStep(root, options.at), {
    target: (step) => step.node ?? step.container,
    path: (step) => step.path,
    children: (step) => (step.node === undefined ? partSteps(step) : children(step.node, step.path)),
    enter: (step) => step.node && enter?.(step.node, step.path),
    leave: (step) => step.node && leave?.(step.node, step.path),
    again: (step) => step.node && again?.(step.node, step.path),
    ...(options.memoized === false ? { memoized: false } : {}),
    ...(options.results === undefined ? {} : { met: options.results }),
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
  return listed(new HeldEdges(node, path, withDefaults ? mayHoldConfigs : holdsConfigs));
}

function holdsConfigs(node: ConfigNode, field: FieldInfo): boolean {
  if (field.name in node.values) return typeof node.values[field.name] === 'object';
  return isExplicit(node, field.name);
}

function mayHoldConfigs(node: ConfigNode, field: FieldInfo): boolean {
  if (field.name in node.values) return typeof node.values[field.name] === 'object';
  return field.default.kind !== 'none';
}

/** The configs in a value, seen through the containers that a config owns: each stands in one place only. */
export function edgesIn(value: unknown, path: PathLink | undefined, into: Edge[] = []): Edge[] {
  const node = nodeOf(value);
  if (node === undefined) return listed(new PartEdges(value, path), into);
  into.push({ node, path });
  return into;
}

/** The edges of a source, in a list. */
export function listed(edges: Source<Edge>, into: Edge[] = []): Edge[] {
  for (let edge = edges.next(); edge !== undefined; edge = edges.next()) into.push(edge);
  return into;
}

/** The configs that a config holds in the fields that `follows` says; `carrierSteps`: what carriers hold is a step further. */
export class HeldEdges implements Source<Edge> {
  private nextField = 0;
  private inner: PartEdges | undefined;

  constructor(
    private readonly node: ConfigNode,
    private readonly path: PathLink | undefined,
    private readonly follows: (node: ConfigNode, field: FieldInfo) => boolean,
    private readonly carrierSteps = false,
  ) {}

  next(): Edge | undefined {
    for (;;) {
      const edge = this.inner?.next();
      if (edge !== undefined) return edge;
      this.inner = undefined;
      const field = this.node.info.allFields[this.nextField++];
      if (field === undefined) return undefined;
      if (!this.follows(this.node, field)) continue;
      const value = rawValue(this.node, field);
      if (typeof value !== 'object' || value === null) continue;
      const node = nodeOf(value);
      const isStep = this.carrierSteps || !isCarrier(this.node);
      const path = isStep ? { parent: this.path, segment: field.name } : this.path;
      if (node !== undefined) return { node, path };
      this.inner = new PartEdges(value, path);
    }
  }
}

/** A container that is being gone through. */
interface OpenContainer {
  readonly parts: readonly unknown[];
  /** The steps to the parts, where these are not counted. */
  readonly segments: readonly Segment[] | undefined;
  readonly path: PathLink | undefined;
  readonly outer: OpenContainer | undefined;
  readonly depth: number;
  next: number;
}

/** The configs in a container, and in the containers in it. */
class PartEdges implements Source<Edge> {
  private container: OpenContainer | undefined;

  constructor(value: unknown, path: PathLink | undefined) {
    this.open(value, path);
  }

  next(): Edge | undefined {
    for (let at = this.container; at !== undefined; at = this.container) {
      if (at.next === at.parts.length) {
        this.container = at.outer;
        continue;
      }
      const i = at.next++;
      const part = at.parts[i];
      if (typeof part !== 'object' || part === null) continue;
      const path = { parent: at.path, segment: at.segments?.[i] ?? i };
      const node = nodeOf(part);
      if (node !== undefined) return { node, path };
      this.open(part, path);
    }
    return undefined;
  }

  private open(value: unknown, path: PathLink | undefined): void {
    const outer = this.container;
    const depth = deeper(outer?.depth ?? 0);
    if (Array.isArray(value)) {
      this.container = { parts: value, segments: undefined, path, outer, depth, next: 0 };
      return;
    }
    const parts = partsOf(value);
    if (parts === undefined) return;
    const segments = parts.map(([segment]) => segment);
    this.container = { parts: parts.map(([, part]) => part), segments, path, outer, depth, next: 0 };
  }
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
