/** @file Trees of tensors: flattened to a list with paths, and back. */
import { CompilerError, type Tree } from './tensors.js';

/** A leaf with its path, keys joined by '.'; array indices are keys too. */
export interface Leaf<T> {
  readonly path: string;
  readonly value: T;
}

/** @throws CompilerError for a value that is neither a leaf nor a structure. */
function checkStructure(tree: unknown, path: string): asserts tree is object {
  const isPromise = tree instanceof Promise;
  if (tree !== null && typeof tree === 'object' && !isPromise) return;
  // Marks the rejection as handled.
  if (isPromise) tree.catch(() => {});
  throw new CompilerError(
    `Expected a tensor or a structure of tensors at '${path || '<root>'}', got ${isPromise ? 'a promise: a function is traced in one call, and can await nothing. Await before it is compiled, and pass the result as an input' : String(tree)}.`,
  );
}

/** The leaves of `tree` in insertion order of keys; `isLeaf` decides where to stop. */
export function flattenTree<T>(tree: Tree<T>, isLeaf: (value: unknown) => value is T, path = ''): Leaf<T>[] {
  if (isLeaf(tree)) return [{ path, value: tree }];
  checkStructure(tree, path);
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
  checkStructure(tree, path);
  return Object.fromEntries(Object.entries(tree).map(([key, value]) => [key, child(key, value)]));
}
