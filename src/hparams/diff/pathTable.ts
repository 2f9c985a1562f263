/** @file Paths that are one object where they are equal, so that they can be compared, counted and used as keys. */
import { formatSegment, type PathLink, type Segment } from '../walking/paths.js';
import type { Path } from './types.js';

/** Keeps one chain for each path that it was asked for. */
export class PathTable {
  private readonly known = new Map<PathLink, PathLink>();
  private readonly steps = new Map<Path, Map<string, PathLink>>();

  /** The path one step on. `parent` is a path of this table. */
  step(parent: Path, segment: Segment): PathLink {
    let steps = this.steps.get(parent);
    if (steps === undefined) this.steps.set(parent, (steps = new Map()));
    const text = formatSegment(segment, true);
    // A field and a record's key of the same name are different steps.
    const name = typeof segment === 'object' ? `key ${text}` : text;
    let link = steps.get(name);
    if (link === undefined) steps.set(name, (link = { parent, segment }));
    return link;
  }

  /** The table's own chain for a path. */
  intern(path: Path): Path {
    const open: PathLink[] = [];
    let at = path;
    let own: Path;
    for (; at !== undefined; at = at.parent) {
      own = this.known.get(at);
      if (own !== undefined) break;
      open.push(at);
    }
    for (let link = open.pop(); link !== undefined; link = open.pop()) {
      own = this.step(own, link.segment);
      this.known.set(link, own);
    }
    return own;
  }
}

/** The path of the config that a path ends in, and the steps from there on: a field, and what is inside of it. */
export function splitPath(path: Path): { config: Path; field: string | undefined; inner: Segment[] } {
  const inner: Segment[] = [];
  for (let at = path; at !== undefined; at = at.parent) {
    if (typeof at.segment === 'string')
      return { config: at.parent, field: at.segment, inner: inner.reverse() };
    inner.push(at.segment);
  }
  return { config: undefined, field: undefined, inner: inner.reverse() };
}
