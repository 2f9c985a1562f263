/** @file The one traversal under every tool: iterative, each object once, cycles found. */
import { ConfigError } from '../errors.js';
import { ConfigNode, nodeOf } from '../nodes/configNode.js';
import { formatLink, type PathLink, shorten } from './paths.js';

/** What a traversal does at each step; a step is one way to reach an object. */
export interface Steps<S> {
  /** What the step reaches: two steps that reach the same are one object in two places. */
  target(step: S): unknown;
  path(step: S): PathLink | undefined;
  children(step: S): readonly S[];
  /** Called before the children of an object that is met for the first time. */
  enter?(step: S): void;
  /** Called after all children of an object; what it returns is the object's result. */
  leave?(step: S): unknown;
  /** Called where an object is met again. */
  again?(step: S): void;
  /** Visits a shared object once, the default, or once for each path to it. */
  memoized?: boolean;
  /** Where it is kept which objects were met, and what their results are. */
  met?: Map<unknown, unknown>;
}

// What a traversal knows of an object that it is inside of, and of one that was left without a result.
const inside = Symbol('luthier.inside');
const left = Symbol('luthier.left');

/**
 * Goes through what can be reached from `root`, depth first, without recursion. Remembers of an object only that it was
 * met, so that steps and paths which nobody keeps are short-lived however large the graph is.
 *
 * @throws ConfigError that names both paths where an object contains itself.
 */
export function depthFirst<S>(root: S, steps: Steps<S>): void {
  const met = steps.met ?? new Map<unknown, unknown>();
  const open: { readonly step: S; readonly children: readonly S[]; next: number }[] = [];
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
    met.set(target, inside);
    open.push({ step, children: steps.children(step), next: 0 });
  };
  visit(root);
  for (let at = open.at(-1); at !== undefined; at = open.at(-1)) {
    const child = at.children[at.next++];
    if (child !== undefined) {
      visit(child);
      continue;
    }
    open.pop();
    const result = steps.leave?.(at.step);
    met.set(steps.target(at.step), steps.memoized === false ? undefined : (result ?? left));
  }
}

/** The error of an object that contains itself: at `path` stands what stands at `outer`, too. */
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
