/** @file All the paths to a config that stands in several places, as many as one wants to read. */
import { append } from '../nodes/containers.js';
import type { ConfigNode } from '../nodes/node.js';
import type { Line } from './lines.js';

/** One place of a config: the config around it, if there is one, and the steps from there. */
interface Reference {
  readonly around: ConfigNode | undefined;
  readonly steps: string;
}

/** The beginning of a path on the way up from a config. */
interface Climb {
  /** The config that the steps lead from; undefined at the root. */
  readonly node: ConfigNode | undefined;
  readonly steps: string;
  readonly length: number;
  readonly below: Climb | undefined;
}

/** The paths to a config. */
export interface Paths {
  readonly paths: readonly string[];
  /** Whether there are others. */
  readonly more: boolean;
}

// A diamond of sixty levels has more paths than can be written.
const mostPaths = 16;
// From so far up on, only the first path is followed.
const mostSteps = 64;

/** The places of the configs in a graph, whose lines it is told in their order. */
export class Places {
  private readonly references = new Map<ConfigNode, Reference[]>();
  private readonly first = new Map<ConfigNode, string>();
  /** The root, and configs with a label: one name is enough. */
  private readonly named = new Set<ConfigNode>();
  private readonly known = new Map<ConfigNode, Paths>();

  add(line: Line): void {
    if (line.kind === 'label') this.named.add(line.node);
    if (line.kind !== 'config' && line.kind !== 'again') return;
    if (line.kind === 'config') this.first.set(line.node, line.path);
    if (line.path === '') this.named.add(line.node);
    if (this.named.has(line.node)) return;
    const around = line.item.owner;
    const steps = line.path.slice(around === undefined ? 0 : this.first.get(around)!.length);
    const references = this.references.get(line.node);
    if (references === undefined) this.references.set(line.node, [{ around, steps }]);
    else references.push({ around, steps });
  }

  /** The path of the lines of `node`. */
  firstPathTo(node: ConfigNode): string {
    return this.first.get(node)!;
  }

  /** Paths to `node`, in the order of the graph, at most 16. All lines must have been added. */
  pathsTo(node: ConfigNode): Paths {
    let paths = this.known.get(node);
    if (paths === undefined) this.known.set(node, (paths = this.climb(node)));
    return paths;
  }

  private climb(start: ConfigNode): Paths {
    const paths = new Set<string>();
    const open: Climb[] = [{ node: start, steps: '', length: 0, below: undefined }];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (paths.size > mostPaths) break;
      const { node } = at;
      if (node === undefined) paths.add(at.steps);
      else if (this.named.has(node) || at.length >= mostSteps) paths.add(this.first.get(node)! + at.steps);
      else append(open, this.above(node, at));
    }
    return { paths: [...paths].slice(0, mostPaths), more: paths.size > mostPaths };
  }

  /** One step up, last place first. */
  private above(node: ConfigNode, below: Climb): Climb[] {
    return this.references
      .get(node)!
      .filter(({ around }) => around === undefined || !isBelow(around, below))
      .map(({ around, steps }) => ({
        node: around,
        steps: steps + below.steps,
        length: below.length + 1,
        below,
      }))
      .reverse();
  }
}

function isBelow(node: ConfigNode, climb: Climb): boolean {
  for (let at: Climb | undefined = climb; at !== undefined; at = at.below) if (at.node === node) return true;
  return false;
}
