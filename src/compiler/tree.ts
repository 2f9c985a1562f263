/** @file Trees of tensors: flattening to a list with paths, and back. */
import { CompilerError, type Tree } from './types.js';

/** A leaf with the keys that lead to it, joined by '.'; array positions are keys too. */
export interface Leaf<T> {
  readonly path: string;
  readonly value: T;
}

/** The leaves of `tree` in key order of insertion; `isLeaf` decides where to stop. */
export function flattenTree<T>(tree: Tree<T>, isLeaf: (value: unknown) => value is T, path = ''): Leaf<T>[] {
  if (isLeaf(tree)) return [{ path, value: tree }];
  if (tree === null || typeof tree !== 'object') {
    throw new CompilerError(
      `Expected a tensor or a structure of tensors at '${path || '<root>'}', got ${String(tree)}.`,
    );
  }
  const leaves: Leaf<T>[] = [];
  for (const [key, child] of Object.entries(tree)) {
    leaves.push(...flattenTree(child as Tree<T>, isLeaf, path === '' ? key : `${path}.${key}`));
  }
  return leaves;
}

/** A tree of the same structure as `tree` whose leaves are `map(leaf, path)`. */
export function mapTree<T, U>(
  tree: Tree<T>,
  isLeaf: (value: unknown) => value is T,
  map: (leaf: T, path: string) => U,
  path = '',
): Tree<U> {
  if (isLeaf(tree)) return map(tree, path);
  const child = (key: string, value: unknown): Tree<U> =>
    mapTree(value as Tree<T>, isLeaf, map, path === '' ? key : `${path}.${key}`);
  if (Array.isArray(tree)) return tree.map((value, i) => child(String(i), value));
  if (tree === null || typeof tree !== 'object') {
    throw new CompilerError(
      `Expected a tensor or a structure of tensors at '${path || '<root>'}', got ${String(tree)}.`,
    );
  }
  return Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, child(key, value)]));
}
