/**
 * @file The base's own packages: those of its package-lock.json, installed into its worktree by npm without install scripts,
 * and kept on this machine by the lockfile's digest.
 */
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { cachePath, checkFolder } from '../../compiler/native/toolchain/index.js';
import { digestOf, spawnGroup } from '../../system/index.js';
import { UsageError } from '../../system/text/index.js';
import type { Evaluator } from './evaluators.js';
import { GitError, type Repository } from './gitQueries.js';
import type { BaseWorktree } from './worktree.js';

const LOCKFILE = 'package-lock.json';
/** Sets of packages that are kept. */
const MOST_KEPT = 4;
const MINUTES = 10;

/** The packages that the base is evaluated with: its own, as in `folder` from the root, or those installed now. */
export interface BasePackages {
  /** The folder of the base's lockfile, where that names other packages than the present one. */
  readonly folder?: string;
  /** Why they are those of now although its own were asked for. */
  readonly because?: string;
}

/** The lockfile of npm in a commit that holds for a project: that of the nearest folder. */
function lockIn(
  { root, git }: Repository,
  commit: string,
  project: string,
): [folder: string, text: string] | undefined {
  for (let folder = relative(root, project); ; folder = dirname(folder)) {
    const here = folder === '.' ? '' : folder;
    try {
      return [here, git('show', `${commit}:${join(here, LOCKFILE)}`)];
    } catch (error) {
      if (!(error instanceof GitError)) throw error;
    }
    if (here === '') return undefined;
  }
}

/** The packages that a base is to be evaluated with, where its own are asked for. */
export function packagesOfBase(repository: Repository, commit: string, project: string): BasePackages {
  const found = lockIn(repository, commit, project);
  if (found === undefined) return { because: `the base has no ${LOCKFILE} to install from` };
  const [folder, text] = found;
  const now = join(repository.root, folder, LOCKFILE);
  return existsSync(now) && readFileSync(now, 'utf8') === text ? {} : { folder };
}

/**
 * Begins to evaluate a base with its own packages, where `asked` has a folder of them. With those of the user's tree where the
 * base's Luthier is one that this one cannot ask.
 *
 * @throws UsageError with npm's own words where it fails.
 */
export async function withOwnPackages<B extends { readonly evaluator: Evaluator }>(
  asked: BasePackages,
  worktree: BaseWorktree,
  label: string,
  begin: () => B,
): Promise<B & { readonly packages: BasePackages }> {
  if (asked.folder === undefined) return { ...begin(), packages: asked };
  const folder = join(worktree.root, asked.folder);
  await installPackages(folder, label);
  const begun = begin();
  try {
    await begun.evaluator.start();
    return { ...begun, packages: asked };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    await begun.evaluator.end();
    rmSync(join(folder, 'node_modules'), { recursive: true, force: true });
    worktree.linkPackages();
    return { ...begin(), packages: { because: 'the Luthier of the base does not answer this one' } };
  }
}

/**
 * Installs the packages of a lockfile into its folder, without running any script of theirs.
 *
 * @throws UsageError with npm's own words where it fails.
 */
export async function installPackages(folder: string, label: string): Promise<void> {
  const packages = join(folder, 'node_modules');
  const kept = keptAt(folder);
  if (kept !== undefined && existsSync(kept)) {
    rmSync(packages, { recursive: true, force: true });
    copyLinked(kept, packages);
    const now = new Date();
    utimesSync(kept, now, now);
    return;
  }
  await runNpm(folder, label);
  if (kept !== undefined && existsSync(packages) && !hasLinks(packages)) keep(packages, kept);
}

/** Where the packages of a folder's lockfile are kept; undefined where the cache is not to be trusted. */
function keptAt(folder: string): string | undefined {
  const files = [LOCKFILE, 'package.json', '.npmrc'].map((name) => join(folder, name));
  const texts = files.map((file) => (existsSync(file) ? readFileSync(file, 'utf8') : ''));
  try {
    const digest = digestOf(...texts, process.version, process.platform, process.arch);
    return join(checkFolder(cachePath(process.env)), 'packages', digest.replaceAll('/', '_'));
  } catch {
    return undefined;
  }
}

/** Runs `npm ci` in a folder. */
function runNpm(folder: string, label: string): Promise<void> {
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'];
  const { child, kill } = spawnGroup('npm', ['ci', ...flags], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout!, child.stderr!])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const late = setTimeout(kill, MINUTES * 60_000);
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => reject(new UsageError(`--install: the packages of ${label}: ${why}`));
    child.once('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(late);
      if (error.code === 'ENOENT') fail('npm is not installed here.');
      else reject(error);
    });
    child.once('close', (code, signal) => {
      clearTimeout(late);
      if (code === 0) resolve();
      else if (signal === null) fail(`npm ci fails: ${wordsOf(output)}`);
      else fail(`npm ci was ended by ${signal}, at the latest after ${MINUTES} minutes.`);
    });
  });
}

/** Npm's words on an error, without the name of its log, which is of no use elsewhere. */
function wordsOf(output: string): string {
  const lines = output
    .split('\n')
    .flatMap((line) => /^npm (?:error|ERR!) ?(.*)$/.exec(line)?.[1]?.trim() ?? [])
    .filter((line) => line !== '' && !/complete log of this run/.test(line) && !/^[/~].*\.log$/.test(line));
  return lines.slice(0, 6).join('; ') || 'it says nothing.';
}

/** Whether packages are links, as those of workspaces are, which lead into one worktree alone. */
function hasLinks(packages: string): boolean {
  return readdirSync(packages, { withFileTypes: true }).some(
    (entry) =>
      entry.isSymbolicLink() ||
      (entry.name.startsWith('@') &&
        readdirSync(join(packages, entry.name), { withFileTypes: true }).some((inner) =>
          inner.isSymbolicLink(),
        )),
  );
}

/** Keeps packages. Where that fails, the next review installs them again. */
function keep(packages: string, kept: string): void {
  const part = `${kept}.${process.pid}.tmp`;
  try {
    mkdirSync(dirname(kept), { recursive: true, mode: 0o700 });
    copyLinked(packages, part);
    renameSync(part, kept);
    removeOldest(dirname(kept));
  } catch {
    // A full disk, or another review was faster.
    rmSync(part, { recursive: true, force: true });
  }
}

function removeOldest(folder: string): void {
  const times = readdirSync(folder).map(
    (name) => [join(folder, name), statSync(join(folder, name)).mtimeMs] as const,
  );
  for (const [path] of times.sort((a, b) => b[1] - a[1]).slice(MOST_KEPT))
    rmSync(path, { recursive: true, force: true });
}

/** A folder's copy whose files are the same ones on the disk, where it lies on the same. */
function copyLinked(from: string, to: string): void {
  mkdirSync(to);
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) copyLinked(source, target);
    else if (entry.isSymbolicLink()) symlinkSync(readlinkSync(source), target);
    else linkOrCopy(source, target);
  }
}

function linkOrCopy(source: string, target: string): void {
  try {
    linkSync(source, target);
  } catch (error) {
    if (!['EXDEV', 'EPERM', 'EMLINK'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    copyFileSync(source, target);
  }
}
