/** @file Temporary git worktree of the base commit. */
import { existsSync, lstatSync, mkdirSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { isAlive, temporaryFolder } from '../../system/index.js';
import { GitError, type Repository } from './gitQueries.js';
import { fillHeldApart, type Lacking, withoutLfs } from './heldApart.js';

/** A commit in a folder of its own. */
export interface Worktree {
  readonly root: string;
  /** Takes it away. */
  remove(): void;
}

/** A commit to be evaluated. */
export interface BaseWorktree extends Worktree {
  /** Content that git holds apart, and that it lacks. */
  readonly lacking: readonly Lacking[];
  /** Links the node_modules of the user's tree, where it has none. */
  linkPackages(): void;
}

const prefix = 'luthier-diff-';
const PACKAGES = 'node_modules';

/**
 * Checks `commit` out into the system's folder for temporary files, to run its code: files that git ignores,
 * node_modules and data above all, are links to the user's tree; submodules and content of git-lfs are there as far as this
 * machine has them. The worktree is removed when the process ends in any
 * way; one left by a killed process is removed by the next.
 *
 * @param packages `none` leaves out all node_modules, so that an installer writes into none of the user's.
 */
export function addWorktree(
  repository: Repository,
  commit: string,
  project: string,
  packages: 'linked' | 'none' = 'linked',
): BaseWorktree {
  let lacking: readonly Lacking[] = [];
  const place = (folder: string): string => {
    const around = dirname(repository.root);
    linkAround(join(folder, around), around, basename(repository.root));
    return join(folder, repository.root);
  };
  const worktree = checkOut(repository, commit, { settings: [], place }, (root) => {
    linkIgnored(repository, root, (name) => packages === 'linked' || basename(name) !== PACKAGES);
    if (packages === 'linked') linkPackagesAround(repository, root, project);
    lacking = fillHeldApart(repository, commit, root);
  });
  const { root } = worktree;
  return {
    ...worktree,
    lacking,
    linkPackages: () => {
      linkIgnored(repository, root, (name) => basename(name) === PACKAGES);
      linkPackagesAround(repository, root, project);
    },
  };
}

/** Checks `commit` out as `addWorktree` does, to read untrusted files: symbolic links become plain files. */
export function addForeignWorktree(repository: Repository, commit: string): Worktree {
  const settings = ['-c', 'core.symlinks=false'];
  return checkOut(repository, commit, { settings, place: (folder) => folder }, () => {});
}

function checkOut(
  repository: Repository,
  commit: string,
  { settings, place }: { readonly settings: readonly string[]; readonly place: (folder: string) => string },
  prepare: (root: string) => void,
): Worktree {
  removeLeftovers(repository);
  let root = '';
  const { path, remove } = temporaryFolder(`${prefix}${process.pid}-`, (folder) =>
    removeWorktree(repository, folder, root || folder),
  );
  try {
    root = place(path);
    const add = ['worktree', 'add', '--quiet', '--detach', '--force', root, commit];
    repository.git(...withoutLfs, ...settings, ...add);
    prepare(root);
  } catch (error) {
    remove();
    throw error;
  }
  return { root, remove };
}

function removeWorktree({ git }: Repository, folder: string, root: string): void {
  rmSync(folder, { recursive: true, force: true });
  try {
    git('worktree', 'remove', '--force', root);
  } catch (error) {
    // It was not added yet.
    if (!(error instanceof GitError)) throw error;
  }
}

/** Removes worktrees of processes that were killed before they could. */
function removeLeftovers(repository: Repository): void {
  const temporary = realpathSync(tmpdir());
  for (const line of repository.git('worktree', 'list', '--porcelain').split('\n')) {
    const root = /^worktree (.+)$/.exec(line)?.[1];
    if (root === undefined || !root.startsWith(`${temporary}/`)) continue;
    const [name] = relative(temporary, root).split('/') as [string];
    const owner = new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1];
    if (owner !== undefined && !isAlive(Number(owner)))
      removeWorktree(repository, join(temporary, name), root);
  }
}

// A tree with more ignored files than this has more than data beside the code.
const mostLinks = 5000;

/** Links the files that git ignores and `isMeant` takes. */
function linkIgnored(
  { root: user, git }: Repository,
  root: string,
  isMeant: (name: string) => boolean,
): void {
  const listed = git('ls-files', '--others', '--ignored', '--exclude-standard', '--directory', '-z');
  const ignored = listed
    .split('\0')
    .filter((name) => name !== '')
    .map((name) => name.replace(/\/$/, ''));
  for (const name of ignored.slice(0, mostLinks)) if (isMeant(name)) link(user, root, name);
}

// Folders of more files than this have others beside a project than its own.
const mostAround = 2000;

/** Makes a folder with links to all that is in `around` but `but`; likewise the folders above it, as far as the root. */
function linkAround(folder: string, around: string, but: string): void {
  if (around !== dirname(around)) linkAround(dirname(folder), dirname(around), basename(around));
  mkdirSync(folder, { recursive: true });
  let names: string[] = [];
  try {
    names = readdirSync(around);
  } catch {
    // Without permission to list it: what is in it has to be found without a link.
  }
  if (names.length > mostAround) return;
  for (const name of names)
    if (name !== but && !name.startsWith(prefix)) symlinkSync(join(around, name), join(folder, name));
}

/** Links packages that need not be ignored, and those of a folder around the repository, which are found from nowhere else. */
function linkPackagesAround({ root: user }: Repository, root: string, project: string): void {
  for (let folder = project; ; folder = dirname(folder)) {
    const packages = join(folder, PACKAGES);
    if (existsSync(packages)) {
      const inside = relative(user, packages);
      if (!inside.startsWith('..')) link(user, root, inside);
      else if (!existsSync(join(root, PACKAGES))) symlinkSync(packages, join(root, PACKAGES));
    }
    if (folder === dirname(folder)) return;
  }
}

function link(user: string, root: string, name: string): void {
  const [from, to] = [join(user, name), join(root, name)];
  if (existsSync(to) || !existsSync(dirname(to)) || !existsSync(from)) return;
  if (basename(name) !== PACKAGES || !linkEachPackage(from, to, user, root)) symlinkSync(from, to);
}

/**
 * Links packages one by one where some are folders of the repository itself, as in workspaces: those are to be the
 * ones of the commit. False if there are none.
 */
function linkEachPackage(from: string, to: string, user: string, root: string): boolean {
  if (lstatSync(from).isSymbolicLink()) return false;
  const names = readdirSync(from).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(from, name)).map((inner) => join(name, inner)) : [name],
  );
  const targets = names.map((name): [string, string] => [name, targetOf(join(from, name), user, root)]);
  if (targets.every(([name, target]) => target === join(from, name))) return false;
  for (const [name, target] of targets) {
    mkdirSync(dirname(join(to, name)), { recursive: true });
    symlinkSync(target, join(to, name));
  }
  return true;
}

/** Target of a link to a package. */
function targetOf(path: string, user: string, root: string): string {
  if (!lstatSync(path).isSymbolicLink()) return path;
  const inside = existsSync(path) ? relative(user, realpathSync(path)) : '..';
  const isOwn = !inside.startsWith('..') && !inside.split('/').includes('node_modules');
  return isOwn ? join(root, inside) : path;
}
