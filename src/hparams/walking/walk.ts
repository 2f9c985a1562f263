/** @file Iterative depth-first traversal, and walks over configs on top of it. */
import { ConfigError } from '../errors.js';
import type { FieldInfo } from '../fields/fields.js';
import { isCarrier } from '../nodes/carriers.js';
import { ConfigNode, nodeOf } from '../nodes/configNode.js';
import { deeper, partsOf } from '../nodes/containers.js';
import { explicitValue } from '../nodes/held.js';
import { formatLink, type PathLink, shorten } from './paths.js';

/** Callbacks of a traversal; a step is one way to reach an object. */
export interface Steps<S> {
  /** The object that the step reaches: an object in two places is the target of two steps. */
  target(step: S): unknown;
  path(step: S): PathLink | undefined;
  children(step: S): readonly S[];
  /** Called before the children of an object that is met for the first time. */
  enter?(step: S): void;
  /** Called after all children of an object; returns the object's result. */
  leave?(step: S): unknown;
  /** Called where an object is met again. */
  again?(step: S): void;
  /** Visits a shared object once, the default, or once for each path to it. */
  memoized?: boolean;
  /** Results of visited objects. */
  met?: Map<unknown, unknown>;
}

// Marks of an object in progress, and of one without a result.
const inside = Symbol('luthier.inside');
const left = Symbol('luthier.left');

/**
 * Traverses all objects reachable from `root`, depth first, without recursion. Only visited objects are remembered, so
 * steps and paths are short-lived however large the graph is.
 *
 * @throws ConfigError with both paths for an object that contains itself.
 */
export function depthFirst<S>(root: S, steps: Steps<S>): void {
  const met = steps.met ?? new Map<unknown, unknown>();
  const open: { readonly step: S; readonly children: readonly S[]; next: number }[] = [];
  const leave = (step: S): void => {
    const result = steps.leave?.(step);
    met.set(steps.target(step), steps.memoized === false ? undefined : (result ?? left));
  };
  const visit = (step: S): void => {
    const target = steps.target(step);
    const known = met.get(target);
    if (known === inside) {
      const outer = open.find((each) => steps.target(each.step) === target)!;
      throw cycleError(target, steps.path(step), steps.path(outer.step));
    }
    if (known !== undefined) {
      steps.again?.(step);
      return;
    }
    steps.enter?.(step);
    const children = steps.children(step);
    // Most objects hold nothing: they are left at once.
    if (children.length === 0) leave(step);
    else {
      met.set(target, inside);
      open.push({ step, children, next: 0 });
    }
  };
  visit(root);
  for (let at = open.at(-1); at !== undefined; at = open.at(-1)) {
    const child = at.children[at.next++];
    if (child !== undefined) {
      visit(child);
      continue;
    }
    open.pop();
    leave(at.step);
  }
}

/** Error for an object that contains itself, at `path` and at `outer`. */
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

/** A place of a config inside another, or inside the containers at the root. */
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
  /** Called after all children of a config; returns the config's result. */
  leave?: (node: ConfigNode, path: PathLink | undefined) => unknown;
  /** Called where a config is met again. */
  again?: (node: ConfigNode, path: PathLink | undefined) => void;
  /** Visits a shared config once, the default, or once for each path to it. */
  memoized?: boolean | undefined;
  /** Path of the root: paths continue from here. */
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
  const { children = explicitEdges, enter, leave, again } = options;
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

/** The configs that `node` holds in explicit values and edited defaults. */
function explicitEdges(node: ConfigNode, path: PathLink | undefined): Edge[] {
  return fieldEdges(node, path, explicitValue);
}

/**
 * The configs in the values that `read` gives for the fields of `node`. A carrier's value takes the carrier's place,
 * unless `carrierSteps` makes it a step of its own.
 */
export function fieldEdges(
  node: ConfigNode,
  path: PathLink | undefined,
  read: (node: ConfigNode, field: FieldInfo) => unknown,
  carrierSteps = false,
): Edge[] {
  const edges: Edge[] = [];
  const isStep = carrierSteps || !isCarrier(node);
  for (const field of node.info.partedFields) {
    const value = read(node, field);
    if (typeof value !== 'object' || value === null) continue;
    edgesIn(value, isStep ? { parent: path, segment: field.name } : path, edges);
  }
  return edges;
}

/** The configs in a value, including those in containers that a config owns: each has one place only. */
export function edgesIn(value: unknown, path: PathLink | undefined, into: Edge[] = [], depth = 0): Edge[] {
  if (typeof value !== 'object' || value === null) return into;
  const node = nodeOf(value);
  if (node !== undefined) into.push({ node, path });
  else {
    const next = deeper(depth);
    for (const [segment, part] of partsOf(value) ?? []) {
      if (typeof part === 'object') edgesIn(part, { parent: path, segment }, into, next);
    }
  }
  return into;
}
