/** @file The one traversal under every tool: iterative, each config once, cycles found. */
import { isContainer } from './containers.js';
import { showValue } from './describe.js';
import { ConfigError } from './errors.js';
import type { FieldInfo } from './fields.js';
import { type ConfigNode, isExplicit, nodeOf, rawValue } from './node.js';
import { formatLink, type PathLink, type Segment, segmentsOf } from './paths.js';
import type { AnyConfig } from './types.js';

/** One place where a config stands inside another, or inside the containers that the walk began with. */
export interface Edge {
  readonly node: ConfigNode;
  readonly path: PathLink | undefined;
}

/** Which configs a walk follows. */
export interface WalkOptions {
  /** Configs directly held by `node`; the default is every explicit and edited one. */
  children?: (node: ConfigNode, path: PathLink | undefined) => Edge[];
  /** Called before the children of a config that is met for the first time. */
  enter?: (node: ConfigNode, path: PathLink | undefined) => void;
  /** Called after all children of a config. */
  leave?: (node: ConfigNode, path: PathLink | undefined) => void;
  /** Called where a config is met again. */
  again?: (node: ConfigNode, path: PathLink | undefined, first: PathLink | undefined) => void;
}

/**
 * Walks the configs in `root` in depth-first order, fields in the order of declaration, each config once.
 *
 * @throws ConfigError where a config contains itself.
 */
export function walk(root: unknown, options: WalkOptions): void {
  const children = options.children ?? ((node, path) => edgesOf(node, path));
  const firstPaths = new Map<ConfigNode, PathLink | undefined>();
  const inside = new Set<ConfigNode>();
  const open: { edges: Edge[]; next: number; owner: Edge | undefined }[] = [];
  open.push({ edges: edgesIn(root, undefined), next: 0, owner: undefined });
  for (let level = open.at(-1); level !== undefined; level = open.at(-1)) {
    const edge = level.edges[level.next++];
    if (edge === undefined) {
      open.pop();
      if (level.owner !== undefined) {
        inside.delete(level.owner.node);
        options.leave?.(level.owner.node, level.owner.path);
      }
    } else if (firstPaths.has(edge.node)) {
      const first = firstPaths.get(edge.node);
      if (inside.has(edge.node)) throw cycleError(edge.node, edge.path, first);
      options.again?.(edge.node, edge.path, first);
    } else {
      firstPaths.set(edge.node, edge.path);
      inside.add(edge.node);
      options.enter?.(edge.node, edge.path);
      open.push({ edges: children(edge.node, edge.path), next: 0, owner: edge });
    }
  }
}

function cycleError(node: ConfigNode, path: PathLink | undefined, first: PathLink | undefined): ConfigError {
  const outer = formatLink(first);
  return new ConfigError(
    `A config must not contain itself: ${shorten(formatLink(path))} is the same ${node.info.name} config as ${
      outer === '' ? 'the root' : shorten(outer)
    }.`,
    { path: formatLink(path) },
  );
}

function shorten(path: string): string {
  return path.length <= 200 ? path : `${path.slice(0, 100)}…${path.slice(-99)}`;
}

/** The configs that `node` holds, with their paths. */
export function edgesOf(node: ConfigNode, path: PathLink | undefined, withDefaults = false): Edge[] {
  const edges: Edge[] = [];
  for (const field of node.info.fields.values()) {
    if (holdsConfigs(node, field, withDefaults)) {
      edgesIn(rawValue(node, field), { parent: path, segment: field.name }, edges);
    }
  }
  return edges;
}

function holdsConfigs(node: ConfigNode, field: FieldInfo, withDefaults: boolean): boolean {
  if (field.name in node.values) return typeof node.values[field.name] === 'object';
  if (withDefaults) return field.default.kind !== 'none';
  return isExplicit(node, field.name);
}

/** The configs in a value, seen through arrays and records. */
export function edgesIn(value: unknown, path: PathLink | undefined, into: Edge[] = []): Edge[] {
  const node = nodeOf(value);
  if (node !== undefined) into.push({ node, path });
  else if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) edgesIn(item, { parent: path, segment: i }, into);
  } else if (isContainer(value)) {
    for (const [key, item] of Object.entries(value)) edgesIn(item, { parent: path, segment: { key } }, into);
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
 * path to it. `defaults` takes in sub-configs that are defaults.
 */
export function iterate(root: unknown, options: { defaults?: boolean } = {}): Visit[] {
  const visits: Visit[] = [];
  walk(root, {
    children: (node, path) => edgesOf(node, path, options.defaults === true),
    enter: (node, path) => visits.push(new Visit(node.proxy, path)),
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
