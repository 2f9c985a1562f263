/** @file Launchers of this process (npm, npx, tsx and the shells between), and whether they still live. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { isAlive, parentOf } from './processes.js';

/** A process, the one that started it, and its command line in words. */
interface Ancestor {
  readonly pid: number;
  readonly parent: number;
  readonly words: readonly string[];
}

/** Deeper than any chain of launchers. */
const mostAncestors = 12;

function readAncestor(pid: number): Ancestor | undefined {
  try {
    if (process.platform === 'linux') {
      // A title, as npm gives itself one, has spaces in place of zeros.
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split(/[\0 ]/).filter(Boolean);
      return { pid, parent: parentOf(pid)!, words };
    }
    const said = execFileSync('ps', ['-o', 'ppid=', '-o', 'command=', '-p', String(pid)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const [parent, ...words] = said.trim().split(/\s+/);
    return { pid, parent: Number(parent), words };
  } catch {
    return undefined;
  }
}

const isNode = (word: string): boolean => /^node(js)?(\.exe)?$/.test(basename(word));

/** What runs a command for a person: a package manager, or tsx's wrapper. */
type Launcher = 'manager' | 'tsx';

function launcherOf(words: readonly string[]): Launcher | undefined {
  const [first = '', ...rest] = words;
  const program = isNode(first) ? (rest.find((word) => !word.startsWith('-')) ?? '') : first;
  if (/[/\\]tsx[/\\]dist[/\\]cli\.mjs$/.test(program) || basename(program) === 'tsx') return 'tsx';
  const isManager = /^(npm|npx|pnpm|pnpx|yarn|bun|bunx)(-cli)?(\.c?js)?$/.test(basename(program));
  return isManager ? 'manager' : undefined;
}

/** Whether these words run a command line, as launchers have a shell do. */
const isShell = ([shell = '', flag]: readonly string[]): boolean =>
  /^(ba|da|a|z|k)?sh$/.test(basename(shell)) && flag === '-c';

/** Who takes over processes whose parent has ended. */
const isReaper = ({ pid, words }: Ancestor): boolean =>
  pid === 1 || /^(init|launchd|systemd)$/.test(basename(words[0] ?? ''));

/** What stands above a process. */
interface Above {
  /** Nearest first, up to the farthest launcher. */
  readonly launchers: readonly number[];
  /** Whether a package manager or tsx started something in the line, and has ended already. */
  readonly ended: boolean;
}

/**
 * The processes above this one that started it for a person. A shell counts where a launcher started it: one that a person
 * works in may end, and what was started in it lives on.
 *
 * @param env says whether npm has started something in the line.
 * @param underTsx whether tsx's wrapper has started this process.
 */
export function launchersAbove(
  start = process.ppid,
  env: NodeJS.ProcessEnv = process.env,
  underTsx = isUnderTsx(),
  read: (pid: number) => Ancestor | undefined = readAncestor,
): Above {
  const pids: number[] = [];
  let counted = 0;
  const met = new Set<Launcher>();
  let last: Ancestor | undefined;
  for (let pid = start; pid > 0 && pids.length < mostAncestors; ) {
    last = read(pid);
    if (last === undefined) break;
    const launcher = launcherOf(last.words);
    if (launcher === undefined && !isShell(last.words)) break;
    pids.push(pid);
    if (launcher !== undefined) {
      counted = pids.length;
      met.add(launcher);
    }
    pid = last.parent;
  }
  const began: readonly Launcher[] = [
    ...(env.npm_lifecycle_event === undefined ? [] : (['manager'] as const)),
    ...(underTsx ? (['tsx'] as const) : []),
  ];
  const ended = began.some((launcher) => !met.has(launcher)) && last !== undefined && isReaper(last);
  return { launchers: pids.slice(0, counted), ended };
}

/** Whether one of these processes has ended: the next below it has another parent then. */
export function isOrphaned([parent, ...further]: readonly number[]): boolean {
  if (parent === undefined || process.platform === 'win32') return false;
  if (process.ppid !== parent) return true;
  let below = parent;
  for (const pid of further) {
    const actual = parentOf(below);
    if (actual === undefined ? !isAlive(pid) : actual !== pid) return true;
    below = pid;
  }
  return false;
}

/** Whether tsx's wrapper started this process, which then is to acknowledge signals to it. */
export const isUnderTsx = (): boolean =>
  process.execArgv.some((flag) => /[/\\]tsx[/\\]dist[/\\]preflight\.cjs$/.test(flag));
