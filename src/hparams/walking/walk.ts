/** @file Walks over the configs in a value, and the edges that they follow. */
import type { FieldInfo } from '../fields/fields.js';
import { isCarrier } from '../nodes/carriers.js';
import { type ConfigNode, nodeOf } from '../nodes/configNode.js';
import { deeper, partsOf } from '../nodes/containers.js';
import { explicitValue } from '../nodes/held.js';
import { depthFirst } from './depthFirst.js';
import type { PathLink } from './paths.js';

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
 * The configs in what `read` gives for the fields of `node`. What a carrier holds stands where the carrier does, unless
 * `carrierSteps` makes it a step further.
 */
export function fieldEdges(
  node: ConfigNode,
  path: PathLink | undefined,
  read: (node: ConfigNode, field: FieldInfo) => unknown,
  carrierSteps = false,
): Edge[] {
  const edges: Edge[] = [];
  const isStep = carrierSteps || !isCarrier(node);
  for (const field of node.info.allFields) {
    const value = read(node, field);
    if (typeof value !== 'object' || value === null) continue;
    edgesIn(value, isStep ? { parent: path, segment: field.name } : path, edges);
  }
  return edges;
}

/** The configs in a value, seen through the containers that a config owns: each stands in one place only. */
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
