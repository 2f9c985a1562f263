/** @file Read-only git queries, which leave the user's tree and index alone. */
import { existsSync, realpathSync } from 'node:fs';
import { runGit } from '../../system/index.js';
import { UsageError } from '../../system/text/index.js';

/** A git repository, by one of its folders. */
export interface Repository {
  /** The folder that holds the whole working tree. */
  readonly root: string;
  /** The output of a git command. @throws GitError where it fails. */
  git(...args: readonly string[]): string;
}

/** A git command that failed. */
export class GitError extends Error {
  override name = 'GitError';

  constructor(
    readonly args: readonly string[],
    readonly output: string,
  ) {
    const told = args.filter((arg, i) => arg !== '-c' && args[i - 1] !== '-c');
    const lines = output.split('\n').map((line) => line.trim());
    super(`git ${told.join(' ')} failed: ${lines.filter((line) => line !== '').join('; ')}`);
  }
}

function run(folder: string, args: readonly string[]): string {
  const done = runGit(folder, args);
  if (done.error !== undefined) {
    if ((done.error as NodeJS.ErrnoException).code === 'ENOENT')
      throw new UsageError('--base needs git, which is not installed here.');
    throw done.error;
  }
  // `diff --no-index` ends with 1 where there are differences.
  const isFine = done.status === 0 || (done.status === 1 && args.includes('--no-index'));
  if (!isFine) throw new GitError(args, done.stderr);
  return done.stdout;
}

/** The repository that `folder` is in. @throws UsageError where it is in none. */
export function repositoryOf(folder: string): Repository {
  let root: string;
  try {
    root = realpathSync(run(folder, ['rev-parse', '--show-toplevel']).trimEnd());
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    throw new UsageError(
      `--base compares with a git revision, and ${folder} is no working tree of git: ${error.output.trim()}`,
    );
  }
  return repositoryAt(root);
}

/** The repository whose working tree, or whose own folder, `root` is. */
export const repositoryAt = (root: string): Repository => ({ root, git: (...args) => run(root, args) });

/** The commit of the base. */
export interface Base {
  readonly commit: string;
  /** `main (3f9c2d1)`, or `main (merge base 3f9c2d1)` where that is not main itself. */
  readonly label: string;
}

/**
 * The base commit of the working tree: its merge base with `ref`, as in `git diff REF...` and on pull requests, or
 * with `exact` that of `ref` itself.
 *
 * @throws UsageError for an unknown revision, and without a common commit, with the command that fetches it.
 */
export function findBase({ git }: Repository, ref: string, exact: boolean): Base {
  const commit = commitOf(git, ref);
  if (exact) return { commit, label: `${ref} (${short(commit)})` };
  try {
    const base = git('merge-base', 'HEAD', commit).trim();
    const label = base === commit ? short(base) : `merge base ${short(base)}`;
    return { commit: base, label: `${ref} (${label})` };
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    const isShallow = git('rev-parse', '--is-shallow-repository').trim() === 'true';
    throw new UsageError(
      `--base=${ref}: it has no commit in common with HEAD${isShallow ? ' in this shallow clone' : ''}. ${
        isShallow ? 'Fetch the history (`git fetch --unshallow`), or compare' : 'Compare'
      } with the revision itself: --exact.`,
    );
  }
}

function short(commit: string): string {
  return commit.slice(0, 7);
}

function commitOf(git: Repository['git'], ref: string): string {
  try {
    return git('rev-parse', '--verify', '--quiet', '--end-of-options', `${ref}^{commit}`).trim();
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    throw new UsageError(`--base=${ref}: git knows no such revision here. ${remedyFor(git, ref)}`);
  }
}

/** Remedy for a missing revision. */
function remedyFor(git: Repository['git'], ref: string): string {
  if (git('rev-list', '-n', '1', '--all').trim() === '') return 'The repository has no commits yet.';
  const plain = ref.replace(/^(?:refs\/remotes\/)?origin\//, '');
  const known = git('for-each-ref', '--format=%(refname:short)').split('\n');
  if (known.includes(`origin/${plain}`)) return `Did you mean origin/${plain}?`;
  const isShallow = git('rev-parse', '--is-shallow-repository').trim() === 'true';
  const more = isShallow ? ' (this clone is shallow: `git fetch --unshallow` gets the whole history)' : '';
  return `Fetch it: \`git fetch origin ${plain}\`${more}; then it is FETCH_HEAD, or origin/${plain}.`;
}

/** Files of the folder `from` that git takes for files of the folder `to` with another name: where each is there. */
export function movedFiles({ git }: Repository, from: string, to: string): Map<string, string> {
  if (!existsSync(from) || !existsSync(to)) return new Map();
  const asked = ['--no-index', '--find-renames', '--diff-filter=R', '--name-status', '--no-ext-diff', '-z'];
  const words = git('diff', ...asked, '--', from, to).split('\0');
  const moved = new Map<string, string>();
  for (let i = 0; i + 2 < words.length; i += 3) moved.set(words[i + 1]!, words[i + 2]!);
  return moved;
}

/** The last commit up to `commit` that changed these lines of a file: `3f9c2d1 of 2026-01-31: Subject`. */
export function lastCommitOf(
  { git }: Repository,
  commit: string,
  { file, line, lastLine }: { readonly file: string; readonly line: number; readonly lastLine: number },
): string | undefined {
  const form = '--format=%P%x00%h of %as: %s';
  const lines = `-L${line},${lastLine}:${file}`;
  const [parents, text] = git('log', '--max-count=1', '--no-patch', form, lines, commit, '--')
    .trim()
    .split('\0');
  // The oldest commit of a shallow clone seems to have made all that there is.
  const isCertain = parents !== '' || git('rev-parse', '--is-shallow-repository').trim() === 'false';
  return isCertain ? text : undefined;
}

/** The commit that is checked out, where the working tree has no changes of its own. */
export function cleanCommit({ git }: Repository): string | undefined {
  return git('status', '--porcelain') === '' ? git('rev-parse', 'HEAD').trim() : undefined;
}

/** The files that differ between commits, or between one and the tracked files of the working tree; from the root. */
export function filesBetween({ git }: Repository, ...commits: readonly string[]): string[] {
  return namesIn(git('diff', '--name-only', '--no-renames', '--no-ext-diff', '-z', ...commits, '--'));
}

/** The names in a list that git ends with zeros. */
export function namesIn(output: string): string[] {
  return output.split('\0').filter((name) => name !== '');
}
