/** @file Pairs of random graphs for the tests of diffs: independent ones, and one with a few edits. */
import fc from 'fast-check';
import { type AnyConfig, deepCopy, iterate } from '../../../src/hparams/index.js';
import { type AnyNode, Holder, Inner, Leaf, makeGraph, recipes } from '../randomGraphs.js';

const edit = fc.record({
  kind: fc.constantFrom(
    'value',
    'unset',
    'insert',
    'remove',
    'move',
    'swap',
    'share',
    'unshare',
    'class',
    'key',
    'dropKey',
    'label',
    'default',
    'choice',
  ),
  node: fc.nat(),
  other: fc.nat(),
  at: fc.nat(),
});

/** How to edit a graph. */
type Edit = typeof edit extends fc.Arbitrary<infer E> ? E : never;

const edits: fc.Arbitrary<Edit[]> = fc.array(edit, { minLength: 1, maxLength: 6 });

/** Two graphs: the second is independent of the first, or a copy of it that was edited. */
export const pairs: fc.Arbitrary<[AnyNode, AnyNode]> = fc
  .tuple(recipes, recipes, edits, fc.constantFrom('independent', 'edited', 'edited', 'derived'))
  .map(([some, others, list, how]) => {
    const old = makeGraph(some);
    if (how === 'independent') return [old, makeGraph(others)];
    return [old, editGraph(how === 'edited' ? deepCopy(old) : makeGraph(some), list)];
  });

/** `root` with the edits that can be made in it. */
function editGraph(root: AnyNode, list: readonly Edit[]): AnyNode {
  let at = root;
  for (const each of list) {
    const nodes = iterate(at).map((visit) => visit.config as unknown as AnyNode);
    const node = nodes[each.node % nodes.length]!;
    // Only inner configs are put elsewhere, and only outside of themselves.
    const inner = nodes.filter(
      (other) => !isPartial(other) && !iterate(other).some((visit) => same(visit.config, node)),
    );
    const other = inner[each.other % Math.max(1, inner.length)];
    if (each.kind === 'class' && node === at) at = otherClass(at);
    else editNode(node, other, each);
  }
  return at;
}

function isPartial(config: unknown): boolean {
  return Object.prototype.toString.call(config).endsWith('partial]');
}

function same(a: unknown, b: unknown): boolean {
  return a === b;
}

function otherClass(node: AnyNode): AnyNode {
  const cls = 'left' in node ? Leaf : 'byName' in node ? Inner : Holder;
  return cls.config({ value: node.value }) as AnyNode;
}

function editNode(node: AnyNode, other: AnyNode | undefined, { kind, at }: Edit): void {
  if (kind === 'value') node.value = at % 7;
  else if (kind === 'unset') delete (node as { value?: number }).value;
  else if ('left' in node) editInner(node as any, other, kind, at);
  else if ('byName' in node) editHolder(node as any, other, kind, at);
  else if (kind === 'label') (node as any).label = `label ${at % 3}`;
  else if (kind === 'default') (node as any).tpl.value = at % 5;
  else if (kind === 'share' && other !== undefined) (node as any).tpl = other;
  else if (kind === 'unshare') (node as any).tpl = deepCopy((node as any).tpl);
}

function editInner(node: any, other: AnyConfig | undefined, kind: Edit['kind'], at: number): void {
  const size = node.list.length as number;
  const place = at % Math.max(1, size);
  if (kind === 'insert') node.list.splice(place, 0, other ?? Leaf.config({ value: at % 4, label: 'new' }));
  else if (kind === 'remove') node.list.splice(place, 1);
  else if (kind === 'move' && size > 1) node.list.push(node.list.splice(place, 1)[0]);
  else if (kind === 'swap') [node.left, node.right] = [node.right, node.left];
  else if (kind === 'share' && other !== undefined) node[at % 2 === 0 ? 'left' : 'right'] = other;
  else if (kind === 'unshare' && node.left !== null) node.left = deepCopy(node.left);
  else if (kind === 'class' && node.right !== null) node.right = otherClass(node.right);
  else if (kind === 'key') node.table[`k${at % 3}`] = at % 5;
  else if (kind === 'dropKey') delete node.table[Object.keys(node.table)[0] ?? 'none'];
}

function editHolder(node: any, other: AnyConfig | undefined, kind: Edit['kind'], at: number): void {
  const keys = Object.keys(node.byName);
  const key = keys[at % Math.max(1, keys.length)];
  if (kind === 'key' || kind === 'insert') node.byName[`new ${at % 2}`] = other ?? Inner.config();
  else if ((kind === 'dropKey' || kind === 'remove') && key !== undefined) delete node.byName[key];
  else if (kind === 'unshare' && key !== undefined) node.byName[key] = deepCopy(node.byName[key]);
  else if (kind === 'class' && key !== undefined) node.byName[key] = otherClass(node.byName[key]);
  else if (kind === 'choice') node.choice = [['a', 'b', 'c'].slice(0, at % 4), at, 'none'][at % 3];
  else if (kind === 'move' && Array.isArray(node.choice)) node.choice.reverse();
  else if (kind === 'swap') node.range = [at % 3, node.range[1]];
}
