/** @file A version of the project: its folders, and the library that its experiments are made with. */
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A version of the project on disk. */
export interface Tree {
  /** Of the repository. */
  readonly root: string;
  /** The project's folder, in which experiments/ stands. */
  readonly project: string;
  /** The folder of the library that the experiments import. */
  readonly library: string;
}

const own = realpathSync(fileURLToPath(new URL('../../..', import.meta.url))).replace(/\/$/, '');
const ownName = nameOf(own);

/** The project of `user` as it stands in `root`: in the user's repository, or in a worktree of it. */
export function treeAt(root: string, user: { readonly root: string; readonly project: string }): Tree {
  const project = join(root, relative(user.root, user.project));
  return { root, project, library: around(project) ?? installed(project) ?? inRoot(root, user.root) };
}

function nameOf(folder: string): unknown {
  try {
    return (JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name?: unknown }).name;
  } catch {
    return undefined;
  }
}

/** The library, where the project is part of it. */
function around(project: string): string | undefined {
  for (let folder = project; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json')) && nameOf(folder) === ownName) return folder;
    if (folder === dirname(folder)) return undefined;
  }
}

/** The library among the project's packages. */
function installed(project: string): string | undefined {
  try {
    return around(
      dirname(realpathSync(createRequire(join(project, 'package.json')).resolve(String(ownName)))),
    );
  } catch {
    return undefined;
  }
}

/** The library that this process runs, or its counterpart where it stands in the repository. */
function inRoot(root: string, user: string): string {
  const inside = relative(user, own);
  return inside.startsWith('..') || !existsSync(join(root, inside)) ? own : join(root, inside);
}
