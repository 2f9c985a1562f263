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

  /** @param notify is told of each path that has an old name. */
  constructor(private readonly notify: (notice: string) => void) {}

  /**
   * `path`, which begins at `root`, with present names. What leads nowhere stays as it is: that shows when it is used.
   *
   * @param who says the path: `lm.yaml:3` or the text of a flag.
   * @param known how many of its first steps have their present names.
   * @throws ConfigError for a field that was given by another of its names before.
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

/** What stands at `path`, undefined where nothing does: what is wrong with the path shows when it is written to. */
export function partAt(root: unknown, path: readonly Segment[]): unknown {
  try {
    return getPath(root, path);
  } catch (error) {
    if (error instanceof ConfigError) return undefined;
    throw error;
  }
}
