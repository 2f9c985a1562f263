/** @file Rows of the layer table: consecutive equal blocks are one row. */
import type { LayerSummary } from './layerTable.js';

/** A row: a layer, or the first of several that are alike. */
export interface LayerRow {
  readonly layer: LayerSummary;
  /** The layer's name at its parent; the whole path of a layer that is elsewhere; '' for the model. */
  readonly name: string;
  /** The name of the last layer that the row stands for, where it is for several. */
  readonly last?: string;
  /** How many layers the row stands for. */
  readonly count: number;
}

interface TreeNode {
  readonly layer: LayerSummary;
  readonly name: string;
  readonly children: TreeNode[];
}

function nameAt(parent: LayerSummary | undefined, { path }: LayerSummary): string {
  const prefix = parent === undefined || parent.path === '' ? '' : `${parent.path}/`;
  return path.startsWith(prefix) ? path.slice(prefix.length) : path;
}

/** The tree that a list of layers with their depths, parents first, describes. */
function treeOf(layers: readonly LayerSummary[]): TreeNode[] {
  const roots: TreeNode[] = [];
  const open: TreeNode[] = [];
  for (const layer of layers) {
    open.length = Math.min(open.length, layer.depth);
    const parent = open.at(-1);
    const node = { layer, name: nameAt(parent?.layer, layer), children: [] };
    (parent?.children ?? roots).push(node);
    open.push(node);
  }
  return roots;
}

/** Equal for nodes that differ in nothing but their paths. */
function signatures(roots: readonly TreeNode[]): Map<TreeNode, string> {
  const found = new Map<TreeNode, string>();
  // Numbers of equal subtrees: texts of trees would grow with their depth.
  const numbers = new Map<string, number>();
  const visit = (node: TreeNode): number => {
    const { path: _, depth: __, ...figures } = node.layer;
    const below = node.children.map((child) => [child.name, visit(child)]);
    const signature = JSON.stringify([figures, below]);
    found.set(node, signature);
    if (!numbers.has(signature)) numbers.set(signature, numbers.size);
    return numbers.get(signature)!;
  };
  roots.forEach(visit);
  return found;
}

/** `x_layers_7` as its stem and its number. */
function numbered(name: string): { stem: string; number: number } | null {
  const match = /^(.*_)(\d+)$/.exec(name);
  return match ? { stem: match[1]!, number: Number(match[2]) } : null;
}

function follows(name: string, previous: string): boolean {
  const [a, b] = [numbered(previous), numbered(name)];
  return a !== null && b !== null && a.stem === b.stem && b.number === a.number + 1;
}

/** Siblings in groups: those that are alike and numbered in order are one. */
function grouped(siblings: readonly TreeNode[], signature: Map<TreeNode, string>): TreeNode[][] {
  const groups: TreeNode[][] = [];
  for (const node of siblings) {
    const group = groups.at(-1);
    const before = group?.at(-1);
    if (before && follows(node.name, before.name) && signature.get(node) === signature.get(before))
      group!.push(node);
    else groups.push([node]);
  }
  return groups;
}

/**
 * The rows of a table of layers.
 *
 * @param options.all a row for every layer, alike or not.
 * @param options.maxDepth leaves out layers with more layers around them.
 */
export function layerRows(
  layers: readonly LayerSummary[],
  { all = false, maxDepth = Number.POSITIVE_INFINITY }: { all?: boolean; maxDepth?: number } = {},
): LayerRow[] {
  const roots = treeOf(layers.filter(({ depth }) => depth <= maxDepth));
  const signature = signatures(roots);
  const rows: LayerRow[] = [];
  const visit = (siblings: readonly TreeNode[]): void => {
    const groups = all ? siblings.map((node) => [node]) : grouped(siblings, signature);
    for (const group of groups) {
      const [{ layer, name, children }] = group as [TreeNode];
      const last = group.length > 1 ? { last: group.at(-1)!.name } : {};
      rows.push({ layer, name, ...last, count: group.length });
      visit(children);
    }
  };
  visit(roots);
  return rows;
}
