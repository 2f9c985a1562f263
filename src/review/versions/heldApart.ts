/** @file Content that git holds apart from a commit: submodules, files of git-lfs; and packages that are not installed. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { filesBetween, GitError, namesIn, type Repository, repositoryAt } from './gitQueries.js';

/** What a version lacks. */
export interface Lacking {
  /** A file or folder from the root, or the name of a package. */
  readonly path: string;
  readonly isPackage?: true;
  readonly why: string;
}

/** Settings under which content that git-lfs holds apart stays there: its filters may be missing, and fail. */
export const withoutLfs = ['smudge', 'process', 'clean']
  .map((name) => `filter.lfs.${name}=`)
  .concat('filter.lfs.required=false')
  .flatMap((setting) => ['-c', setting]);

/** Submodules of a commit, or of the index: their commits by their paths. */
function submodulesOf({ git }: Repository, commit?: string): Map<string, string> {
  const listed =
    commit === undefined
      ? git('ls-files', '--stage', '-z')
      : git('ls-tree', '-r', '-z', '--full-tree', commit);
  return new Map(
    listed.split('\0').flatMap((entry): [string, string][] => {
      const [, hash, path] = /^160000 (?:commit )?([0-9a-f]+)[^\t]*\t(.*)$/s.exec(entry) ?? [];
      return path === undefined ? [] : [[path, hash!]];
    }),
  );
}

/** Git's folder that all working trees of a repository share. */
const commonFolder = ({ git }: Repository): string =>
  git('rev-parse', '--path-format=absolute', '--git-common-dir').trim();

/** The repository of a submodule, also of one that is checked out no more; undefined where it lacks the commit. */
function submoduleAt(repository: Repository, path: string, commit: string): Repository | undefined {
  const here = join(repository.root, path);
  const common = commonFolder(repository);
  const folder = [here, join(common, 'modules', path)].find((each) =>
    existsSync(join(each, each === here ? '.git' : 'HEAD')),
  );
  if (folder === undefined) return undefined;
  const found = repositoryAt(folder);
  try {
    found.git('cat-file', '-e', `${commit}^{commit}`);
    return found;
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    return undefined;
  }
}

/**
 * The files that differ between a commit and the working tree, untracked ones and those of submodules included; from the root.
 * A submodule whose content cannot be compared is one of them itself.
 */
export function changedFiles(repository: Repository, commit: string): Set<string> {
  const { root, git } = repository;
  const untracked = namesIn(git('ls-files', '--others', '--exclude-standard', '-z'));
  const found = new Set([...filesBetween(repository, commit), ...untracked]);
  for (const path of lfsFiles(repository))
    if (found.has(path) && isOfPointer(repository, commit, path)) found.delete(path);
  const [before, after] = [submodulesOf(repository, commit), submodulesOf(repository)];
  for (const path of new Set([...before.keys(), ...after.keys()])) {
    const hash = before.get(path) ?? after.get(path)!;
    const isHere = existsSync(join(root, path, '.git'));
    const module = submoduleAt(repository, path, hash);
    if (module === undefined) continue;
    const inside =
      before.has(path) && isHere && after.has(path)
        ? changedFiles(module, hash)
        : namesIn(module.git('ls-tree', '-r', '-z', '--name-only', '--full-tree', hash));
    found.delete(path);
    for (const name of inside) found.add(join(path, name));
  }
  return found;
}

/**
 * Puts content that git holds apart into a folder with a commit of `repository`, as far as this machine has it.
 *
 * @returns what it has not
 */
export function fillHeldApart(repository: Repository, commit: string, root: string): Lacking[] {
  const lacking = linkLfs(repository, root);
  for (const [path, hash] of submodulesOf(repository, commit)) {
    const module = submoduleAt(repository, path, hash);
    const target = join(root, path);
    if (module === undefined) {
      const why = `submodule ${path}: its commit ${hash.slice(0, 7)} is not here, and \`git submodule update --init\` fetches it`;
      lacking.push({ path, why });
      continue;
    }
    // Links of ignored files may be in the way.
    if (existsSync(target) && readdirSync(target).length > 0) rmSync(target, { recursive: true });
    module.git('clone', '--quiet', '--shared', '--no-checkout', module.root, target);
    repositoryAt(target).git(...withoutLfs, 'checkout', '--quiet', '--detach', hash);
    const inner = fillHeldApart(module, hash, target);
    lacking.push(...inner.map((each) => ({ ...each, path: join(path, each.path) })));
  }
  return lacking;
}

const pointer = /^version https:\/\/git-lfs\.github\.com\/spec\/v1\noid sha256:([0-9a-f]{64})\nsize (\d+)\n/;

const lfsFiles = ({ git }: Repository): string[] =>
  namesIn(git('ls-files', '-z', '--', ':(attr:filter=lfs)'));

const digestOf = (file: string): string => createHash('sha256').update(readFileSync(file)).digest('hex');

/** Whether a file has the content that its pointer in a commit means: without git-lfs, git takes it for another one. */
function isOfPointer({ root, git }: Repository, commit: string, path: string): boolean {
  const size = statSync(join(root, path), { throwIfNoEntry: false })?.size;
  try {
    const [, digest, meant] = pointer.exec(git('show', `${commit}:${path}`)) ?? [];
    return size === Number(meant) && digestOf(join(root, path)) === digest;
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    return false;
  }
}

/** The files of a folder of which git-lfs has the content, by its digests. */
function pointersIn(root: string): [path: string, digest: string, size: number][] {
  return lfsFiles(repositoryAt(root)).flatMap((path): [string, string, number][] => {
    const file = join(root, path);
    const stats = statSync(file, { throwIfNoEntry: false });
    if (stats === undefined || !stats.isFile() || stats.size > 1024) return [];
    const [, digest, size] = pointer.exec(readFileSync(file, 'utf8')) ?? [];
    return digest === undefined ? [] : [[path, digest, Number(size)]];
  });
}

const lfsLack = (path: string): Lacking => ({
  path,
  why: `${path}: git-lfs has its content, and \`git lfs pull\` fetches it`,
});

function linkLfs(repository: Repository, root: string): Lacking[] {
  const common = commonFolder(repository);
  return pointersIn(root).flatMap(([path, digest, size]) => {
    const kept = join(common, 'lfs/objects', digest.slice(0, 2), digest.slice(2, 4), digest);
    const own = join(repository.root, path);
    const isOwn = (): boolean =>
      statSync(own, { throwIfNoEntry: false })?.size === size && digestOf(own) === digest;
    const found = existsSync(kept) ? kept : isOwn() ? own : undefined;
    if (found === undefined) return [lfsLack(path)];
    rmSync(join(root, path));
    symlinkSync(found, join(root, path));
    return [];
  });
}

/** What the user's tree lacks of what git holds apart. */
export function lackingIn(repository: Repository): Lacking[] {
  const modules = [...submodulesOf(repository).keys()].filter(
    (path) => !existsSync(join(repository.root, path, '.git')),
  );
  return [
    ...pointersIn(repository.root).map(([path]) => lfsLack(path)),
    ...modules.map((path) => ({
      path,
      why: `submodule ${path}: it is not checked out, and \`git submodule update --init\` does it`,
    })),
  ];
}

/** The packages that a project lists, and that are in no node_modules around it. */
export function missingPackages(project: string): Lacking[] {
  let manifest: Readonly<Record<string, unknown>>;
  try {
    manifest = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as typeof manifest;
  } catch {
    return [];
  }
  const names = ['dependencies', 'devDependencies'].flatMap((kind) => Object.keys(manifest[kind] ?? {}));
  const isInstalled = (name: string): boolean => {
    for (let folder = project; ; folder = dirname(folder)) {
      if (existsSync(join(folder, 'node_modules', name))) return true;
      if (folder === dirname(folder)) return false;
    }
  };
  return names
    .filter((name) => !isInstalled(name))
    .map((name) => ({ path: name, isPackage: true, why: `package ${name}: it is not installed` }));
}

/** What of `lacking` was looked for: by reads below `root`, as `recordReads` tells them, or as an error names it. */
export function lookedFor(
  lacking: readonly Lacking[],
  root: string,
  reads: Iterable<string>,
  error = '',
): Lacking[] {
  const isAbout = ({ path, isPackage }: Lacking): boolean =>
    isPackage ? error.includes(`'${path}'`) || error.includes(`'${path}/`) : error.includes(`${path}/`);
  const found = new Set(lacking.filter(isAbout));
  const places = lacking.filter(({ isPackage }) => isPackage === undefined);
  if (places.length === 0) return [...found];
  for (const read of reads)
    for (const each of places) {
      const file = join(root, each.path);
      if (read === file || read.startsWith(`${file}/`)) found.add(each);
    }
  return [...found];
}
