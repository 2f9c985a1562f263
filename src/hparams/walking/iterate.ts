/** @file The configs below a root with their paths, defaults among them. */
import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { isCarrier } from '../nodes/carriers.js';
import { type ConfigNode, nodeOf } from '../nodes/configNode.js';
import { rawValue } from '../nodes/fieldValues.js';
import { explicitValue } from '../nodes/held.js';
import type { AnyConfig } from '../types.js';
import { formatLink, type PathLink, type Segment, segmentsOf } from './paths.js';
import { type Edge, fieldEdges, walk } from './walk.js';

/** The configs that `node` holds, with their paths; `withDefaults` takes in those that are defaults. */
export function edgesOf(node: ConfigNode, path: PathLink | undefined, withDefaults = false): Edge[] {
  return fieldEdges(node, path, withDefaults ? rawValue : explicitValue);
}

/** The configs that `node` holds, including defaults: the edges that editing tools follow. */
export function allEdges(node: ConfigNode, path: PathLink | undefined): Edge[] {
  return fieldEdges(node, path, rawValue);
}

/** A config and where it was first met. */
class Visit {
  readonly config: AnyConfig;
  private readonly link: PathLink | undefined;

  constructor(config: AnyConfig, link: PathLink | undefined) {
    this.config = config;
    this.link = link;
  }

  /** The steps from the root; made on first use, as a deep chain has many. */
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
    children: (node, path) => edgesOf(node, path, options.defaults),
    enter: (node, path) => isCarrier(node) || visits.push(new Visit(node.proxy, path)),
    memoized: options.memoized,
  });
  return visits;
}

/** The text of the first path from `root` to `config`. @throws ConfigError if there is none. */
export function pathOf(root: unknown, config: AnyConfig): string {
  const wanted = nodeOf(config);
  let found: string | undefined;
  walk(root, {
    children: allEdges,
    enter: (node, path) => {
      if (node === wanted) found = formatLink(path);
    },
  });
  if (found === undefined) throw new ConfigError(`${showValue(config)} is not part of ${showValue(root)}.`);
  return found;
}
