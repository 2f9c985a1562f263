/** @file Paths that a config file has set, so that none is set twice. */

import { ConfigError } from '../errors.js';
import { formatPath, type Segment } from '../walking/paths.js';

/** The paths that one file has set. */
export class SetPaths {
  private readonly set = new Map<string, Known>();
  private readonly below = new Map<string, Known>();

  /** The error of setting a path, `written` so in the file, if it was set before, or part of it was. */
  conflict(steps: readonly Segment[], place: string, written = steps): ConfigError | undefined {
    const key = keysOf(steps).at(-1) ?? '[]';
    const path = formatPath(written);
    const same = this.set.get(key);
    if (same !== undefined)
      return new ConfigError(`${path}: set twice, first at ${same.place}`, { path, place });
    const part = this.below.get(key);
    if (part === undefined) return undefined;
    return new ConfigError(
      `${path}: replaces ${part.path}, which is set at ${part.place}; set the whole before its parts`,
      { path, place },
    );
  }

  add(steps: readonly Segment[], place: string): void {
    const keys = keysOf(steps);
    const known: Known = { place, path: formatPath(steps) };
    this.set.set(keys.at(-1) ?? '[]', known);
    for (const outer of keys.slice(0, -1)) if (!this.below.has(outer)) this.below.set(outer, known);
  }
}

/** A path that was set. */
interface Known {
  readonly place: string;
  readonly path: string;
}

/** Keys of a path's prefixes, equal for a field and a record's key of one name. */
function keysOf(steps: readonly Segment[]): string[] {
  const names = steps.map((step) => (typeof step === 'object' ? step.key : step));
  return names.map((_, i) => JSON.stringify(names.slice(0, i + 1)));
}
