/** @file Git in a process of its own, which leaves the user's tree and index alone. */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process';

/** Variables that a hook is run with, and that would point git at its index. */
const ofHooks = ['GIT_DIR', 'GIT_INDEX_FILE', 'GIT_WORK_TREE', 'GIT_PREFIX', 'GIT_OBJECT_DIRECTORY'];

function environment(): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    // `git diff` would otherwise refresh the index.
    GIT_OPTIONAL_LOCKS: '0',
    GIT_LFS_SKIP_SMUDGE: '1',
    GIT_TERMINAL_PROMPT: '0',
    LC_ALL: 'C',
  };
  for (const name of ofHooks) delete env[name];
  return env;
}

/** Limits on a command; by default, any time and 256 MiB of output. */
export interface GitLimits {
  /** Milliseconds. */
  readonly timeout?: number;
  /** Bytes of its output, of which the beginning is given. */
  readonly maxBuffer?: number;
}

/** Runs a git command in `folder`. The result has an `error` if git is missing or a limit ended it. */
export function runGit(
  folder: string,
  args: readonly string[],
  limits: GitLimits = {},
): SpawnSyncReturns<string> {
  // Hooks and monitors of the user are for the user's own work.
  const settings = ['core.hooksPath=/dev/null', 'core.fsmonitor=false', 'core.quotePath=false'];
  return spawnSync('git', [...settings.flatMap((setting) => ['-c', setting]), ...args], {
    cwd: folder,
    env: environment(),
    encoding: 'utf8',
    maxBuffer: 256 << 20,
    ...limits,
  });
}
