/** @file What stands at the paths of a diff in some structure. */
import { getPath } from '../editing/access.js';
import { ConfigError } from '../errors.js';
import { showValue } from '../fields/describe.js';
import { isContainer, partsOf } from '../nodes/containers.js';
import { type ConfigNode, hasValue, isExplicit, nodeOf, rawValue } from '../nodes/node.js';
import { formatSegment, type PathLink, type Segment, segmentsOf } from '../walking/paths.js';
import type { Path } from './types.js';

const missing: unique symbol = Symbol('missing');

/** Follows paths, each step once however many paths begin with it. */
export class Resolver {
  private readonly known = new Map<PathLink, unknown>();
  /** Defaults that a path led to: they stand in more places than their fields, so they are to be written down. */
  readonly defaultsMet = new Map<ConfigNode, Set<string>>();

  constructor(private readonly root: unknown) {}

  /** The config at `path`, or undefined where there is none. */
  node(path: Path): ConfigNode | undefined {
    return nodeOf(this.value(path));
  }

  /** Why there is no config at `path`. */
  problem(path: Path): string {
    const segments = segmentsOf(path);
    try {
      return `${showValue(getPath(this.root, segments))} stands where the diff has a config.`;
    } catch (error) {
      if (error instanceof ConfigError) return error.problem;
      throw error;
    }
  }

  private value(path: Path): unknown {
    const open: PathLink[] = [];
    let at = path;
    while (at !== undefined && !this.known.has(at)) {
      open.push(at);
      at = at.parent;
    }
    let value = at === undefined ? this.root : this.known.get(at);
    for (let link = open.pop(); link !== undefined; link = open.pop()) {
      value = this.step(value, link.segment);
      this.known.set(link, value);
    }
    return value;
  }

  private step(value: unknown, segment: Segment): unknown {
    const node = nodeOf(value);
    if (node === undefined) {
      if (isContainer(value)) {
        const key = typeof segment === 'object' ? segment.key : segment;
        return Object.hasOwn(value, key) ? (value as Record<string | number, unknown>)[key] : missing;
      }
      const wanted = formatSegment(segment, true);
      const part = partsOf(value)?.find(([own]) => formatSegment(own, true) === wanted);
      return part === undefined ? missing : part[1];
    }
    const field = typeof segment === 'string' ? node.info.fields.get(segment) : undefined;
    if (field === undefined || !hasValue(node, field)) return missing;
    if (!isExplicit(node, field.name)) {
      const met = this.defaultsMet.get(node);
      if (met === undefined) this.defaultsMet.set(node, new Set([field.name]));
      else met.add(field.name);
    }
    return rawValue(node, field);
  }
}
