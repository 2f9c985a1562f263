/** @file Entries of a commit that are no plain source files: links, submodules, packages. */
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Repository } from './gitQueries.js';

/** Entries of a commit, by their paths from the root. */
export interface GitEntries {
  /** Targets of symbolic links. */
  readonly links: ReadonlyMap<string, string>;
  readonly submodules: ReadonlySet<string>;
  /** Each package.json outside of node_modules. */
  readonly manifests: readonly string[];
  /** Changed files in folders `node_modules`. */
  readonly packaged: readonly string[];
}

/**
 * Entries of a commit.
 *
 * @param root a folder with its files, in which links are plain files
 */
export function gitEntries(
  { git }: Repository,
  commit: string,
  root: string,
  changed: ReadonlySet<string>,
): GitEntries {
  const links = new Map<string, string>();
  const submodules = new Set<string>();
  const manifests: string[] = [];
  for (const entry of git('ls-tree', '-r', '-z', '--full-tree', commit).split('\0')) {
    const [head, path] = entry.split('\t', 2) as [string, string | undefined];
    if (path === undefined) continue;
    if (head.startsWith('120000')) links.set(path, readFileSync(join(root, path), 'utf8'));
    else if (head.startsWith('160000')) submodules.add(path);
    else if (basename(path) === 'package.json' && !isPackaged(path)) manifests.push(path);
  }
  return { links, submodules, manifests, packaged: [...changed].filter(isPackaged) };
}

const isPackaged = (path: string): boolean => path.split('/').includes('node_modules');
