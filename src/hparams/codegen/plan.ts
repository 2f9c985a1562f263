/** @file Plan of generated code: the configs to name, and the functions that make them. */
import type { FieldInfo } from '../fields/fields.js';
import { isCarrier } from '../nodes/carriers.js';
import { append, partsOf } from '../nodes/containers.js';
import { heldNames, heldValue, isPristine, nodesIn } from '../nodes/held.js';
import { type ConfigNode, nodeOf, rawValue } from '../nodes/node.js';
import type { PathLink } from '../walking/paths.js';
import { type Edge, edgesIn, fieldEdges, walk } from '../walking/walk.js';

/** A config to write out. */
interface Item {
  readonly node: ConfigNode;
  readonly path: PathLink | undefined;
  /** The fields whose values are stated; the others show their defaults. */
  readonly fields: readonly FieldInfo[];
  /** Number of its places. */
  uses: number;
}

/**
 * The configs in `root` at `at`, inner before outer, each once.
 *
 * @throws ConfigError for a config that contains itself.
 */
export function itemsIn(root: unknown, at?: PathLink): Map<ConfigNode, Item> {
  const isStated = statedIn(root);
  const items = new Map<ConfigNode, Item>();
  const uses = new Map<ConfigNode, number>();
  const count = (edges: Edge[]): Edge[] => {
    for (const { node } of edges) uses.set(node, (uses.get(node) ?? 0) + 1);
    return edges;
  };
  count(edgesIn(root, at));
  const statedValue = (node: ConfigNode, field: FieldInfo): unknown =>
    isStated(node, field) ? rawValue(node, field) : undefined;
  walk(root, {
    at,
    children: (node, path) => count(fieldEdges(node, path, statedValue, true)),
    leave: (node, path) => {
      const fields = node.info.allFields.filter((field) => isStated(node, field));
      items.set(node, { node, path, fields, uses: 0 });
    },
  });
  for (const item of items.values()) item.uses = uses.get(item.node)!;
  return items;
}

function heldNodes(node: ConfigNode): ConfigNode[] {
  return heldNames(node).flatMap((name) => nodesIn(heldValue(node, name)));
}

/**
 * Which fields to state: those that were set, whose default was edited, or whose default is used elsewhere as well, for
 * a default made again would not be shared.
 */
function statedIn(root: unknown): (node: ConfigNode, field: FieldInfo) => boolean {
  const incoming = new Map<ConfigNode, number>();
  const count = (nodes: readonly ConfigNode[]): void => {
    for (const node of nodes) incoming.set(node, (incoming.get(node) ?? 0) + 1);
  };
  count(edgesIn(root, undefined).map(({ node }) => node));
  walk(root, {
    children: (node) => {
      const held = heldNodes(node);
      count(held);
      return held.map((each) => ({ node: each, path: undefined }));
    },
  });
  return (node, { name }) => {
    if (name in node.values) return true;
    const held = nodesIn(heldValue(node, name));
    if (held.length === 0) return false;
    return held.some(({ proxy }) => !isPristine(proxy)) || !isPrivate(held, incoming);
  };
}

/** Whether all that `roots` lead to is reached through them alone. */
function isPrivate(roots: ConfigNode[], incoming: ReadonlyMap<ConfigNode, number>): boolean {
  const reached = new Map<ConfigNode, number>();
  const open = [...roots];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const times = reached.get(node) ?? 0;
    reached.set(node, times + 1);
    if (times === 0) append(open, heldNodes(node));
  }
  return [...reached].every(([node, times]) => incoming.get(node) === times);
}

/** A function of the generated module. */
export class Body {
  readonly statements: string[] = [];
  /** Configs that the function uses and another makes: its parameters. */
  readonly parameters = new Set<Plan>();

  constructor(readonly name: string) {}
}

/** How an item is written. */
export interface Plan extends Item {
  /** Whether the config gets a name. */
  isVariable: boolean;
  variable?: string;
  /** The function that is there to make this config. */
  fixture?: Body;
  /** The function that contains its name or expression. */
  home: Body;
}

/** Limits on the length of expressions. */
interface Limits {
  /** Fewer than this many configs and containers are nested in an expression. */
  readonly depth: number;
  /** Most values in an expression. */
  readonly complexity: number;
}

/** A sub-config of an expression, and how many containers there are between the two. */
interface Inner {
  readonly plan: Plan;
  readonly depth: number;
}

/** Plans for `items`, the configs in `root`, in order; `names` selects those that need one at any size. */
export function planFor(
  root: unknown,
  items: ReadonlyMap<ConfigNode, Item>,
  main: Body,
  fixtures: ReadonlyMap<ConfigNode, Body>,
  limits: Limits,
  needsName: (item: Item) => boolean,
): Map<ConfigNode, Plan> {
  const plans = new Map<ConfigNode, Plan>();
  const inners = new Map<Plan, Inner[]>();
  const sizes = new Map<Plan, { height: number; complexity: number }>();
  for (const [node, item] of items) {
    const fixture = fixtures.get(node);
    const plan: Plan = {
      ...item,
      isVariable: (item.uses > 1 && !isCarrier(node)) || needsName(item),
      home: main,
    };
    if (fixture !== undefined) plan.fixture = fixture;
    const found: Inner[] = [];
    let complexity = 1;
    for (const field of item.fields) complexity += collectInner(rawValue(node, field), plans, 1, found);
    inners.set(plan, found);
    sizes.set(plan, hoist(found, complexity, sizes, limits));
    plans.set(node, plan);
  }
  findHomes(plans, inners, main, new Set(edgesIn(root, undefined).map(({ node }) => node)));
  return plans;
}

/** Adds the sub-configs in `value` to `into`. Returns how many values there are besides. */
function collectInner(
  value: unknown,
  plans: ReadonlyMap<ConfigNode, Plan>,
  depth: number,
  into: Inner[],
): number {
  const node = nodeOf(value);
  if (node !== undefined) into.push({ plan: plans.get(node)!, depth });
  if (node !== undefined) return 0;
  let complexity = 1;
  for (const [, part] of partsOf(value) ?? []) complexity += collectInner(part, plans, depth + 1, into);
  return complexity;
}

/** Gives names to those of `found` that would make the expression around them too deep, or too complex. */
function hoist(
  found: readonly Inner[],
  own: number,
  sizes: ReadonlyMap<Plan, { height: number; complexity: number }>,
  limits: Limits,
): { height: number; complexity: number } {
  let height = 1;
  let complexity = own;
  const inline: Plan[] = [];
  for (const { plan, depth } of found) {
    // A tagged value is written where it is.
    if (isCarrier(plan.node)) complexity += sizes.get(plan)!.complexity;
    else if (plan.isVariable || plan.fixture !== undefined) complexity += 1;
    else if (sizes.get(plan)!.height + depth > limits.depth) {
      plan.isVariable = true;
      complexity += 1;
    } else {
      complexity += sizes.get(plan)!.complexity;
      height = Math.max(height, sizes.get(plan)!.height + depth);
      inline.push(plan);
    }
  }
  if (complexity <= limits.complexity) return { height, complexity };
  // The largest first: few names are easier to read than many.
  inline.sort((a, b) => sizes.get(b)!.complexity - sizes.get(a)!.complexity);
  for (const plan of inline) {
    const size = sizes.get(plan)!.complexity;
    if (complexity <= limits.complexity || size <= 1) break;
    plan.isVariable = true;
    complexity -= size - 1;
  }
  return { height, complexity };
}

/** Each config is made where it is used, or, where several functions use it, in the main one. */
function findHomes(
  plans: ReadonlyMap<ConfigNode, Plan>,
  inners: ReadonlyMap<Plan, Inner[]>,
  main: Body,
  outermost: ReadonlySet<ConfigNode>,
): void {
  const users = new Map<Plan, Body>();
  for (const plan of [...plans.values()].reverse()) {
    if (outermost.has(plan.node)) plan.home = main;
    const body = plan.fixture ?? plan.home;
    for (const { plan: inner } of inners.get(plan)!) {
      const known = users.get(inner);
      inner.home = known === undefined || known === body ? body : main;
      users.set(inner, inner.home);
    }
  }
}
