/** @file Paths with former names of fields, translated to present names. */
import { ConfigError } from '../errors.js';
import { givenTwice, oldNameNotice } from '../fields/renamed.js';
import { nodeOf } from '../nodes/node.js';
import { formatPath, type Segment } from '../walking/paths.js';
import { getPath } from './access.js';

/** Brings the paths of one file, or of one command line, up to date. */
export class PresentNames {
  /** The names under which fields were given, by the present paths of those that have old names. */
  private readonly given = new Map<string, string>();

  /** @param notify receives a notice for each path with an old name. */
  constructor(private readonly notify: (notice: string) => void) {}

  /**
   * `path`, relative to `root`, with present names. Unknown steps stay: using the path reports them.
   *
   * @param who source of the path: `lm.yaml:3` or the text of a flag.
   * @param known number of leading steps that use present names.
   * @throws ConfigError for a field that was set before by another of its names.
   */
  path(root: unknown, path: readonly Segment[], who: string, known = 0): Segment[] {
    const present = [...path];
    for (const [i, segment] of path.entries()) {
      if (i < known) continue;
      const owner = partAt(root, present.slice(0, i));
      if (owner === undefined) return present;
      const node = nodeOf(owner);
      const name = typeof segment === 'object' ? segment.key : segment;
      if (node === undefined || typeof name === 'number') continue;
      const { name: cls, oldNames } = node.info;
      const now = oldNames[name];
      if (now !== undefined) {
        present[i] = now;
        this.notify(oldNameNotice(who, cls, name, now));
      }
      if (now === undefined && !Object.values(oldNames).includes(name)) continue;
      this.once(formatPath(present.slice(0, i + 1)), name, (first) =>
        givenTwice(cls, now ?? name, first, name),
      );
    }
    return present;
  }

  private once(path: string, name: string, problem: (first: string) => string): void {
    const first = this.given.get(path) ?? name;
    this.given.set(path, first);
    if (first !== name) throw new ConfigError(problem(first), { path });
  }
}

/** The value at `path`, or undefined: writing to the path reports its problems. */
export function partAt(root: unknown, path: readonly Segment[]): unknown {
  try {
    return getPath(root, path);
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}
