/** @file Ancestors of this process (npm, npx, tsx and the shells between), its terminal and its pipes. */
import { execFileSync } from 'node:child_process';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { isatty } from 'node:tty';
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

/** A kind of launcher: a package manager, or tsx's wrapper. */
type Launcher = 'manager' | 'tsx';

function launcherOf(words: readonly string[]): Launcher | undefined {
  const [first = '', ...rest] = words;
  const program = isNode(first) ? (rest.find((word) => !word.startsWith('-')) ?? '') : first;
  if (/[/\\]tsx[/\\]dist[/\\]cli\.mjs$/.test(program) || basename(program) === 'tsx') return 'tsx';
  const isManager = /^(npm|npx|pnpm|pnpx|yarn|bun|bunx)(-cli)?(\.c?js)?$/.test(basename(program));
  return isManager ? 'manager' : undefined;
}

/** Whether these words are a shell that runs a command line, as launchers start one. */
const isShell = ([shell = '', flag]: readonly string[]): boolean =>
  /^(ba|da|a|z|k)?sh$/.test(basename(shell)) && flag === '-c';

/** Whether a process adopts those whose parent has ended. */
const isReaper = ({ pid, words }: Ancestor): boolean =>
  pid === 1 || /^(init|launchd|systemd)$/.test(basename(words[0] ?? ''));

/** Ancestors of a process. */
interface Above {
  /** Nearest first, up to the farthest launcher. */
  readonly launchers: readonly number[];
  /** Whether a package manager or tsx started something in the line, and has ended already. */
  readonly ended: boolean;
}

/**
 * The ancestors that started this process for a person. A shell counts if a launcher started it: an interactive shell
 * may end while its children live on.
 *
 * @param env says whether npm is among the ancestors.
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

/** Whether one of these processes has ended, so that the next below it has another parent. */
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

/** Whether a stream is read or typed into by something that may go away: a terminal, a pipe, a socket. */
function isLive(file: number): boolean {
  try {
    const info = fstatSync(file);
    return isatty(file) || info.isFIFO() || info.isSocket();
  } catch {
    return false;
  }
}

function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}

/**
 * Whether this process was started to outlive its terminal. Node resets the SIGHUP disposition of nohup(1): only the
 * shell's `$_` shows nohup. A process with a terminal but without any of its streams on it counts, too.
 */
export function isDetached(env: NodeJS.ProcessEnv = process.env): boolean {
  if (/(^|\/)nohup$/.test(env._ ?? '')) return true;
  return ![0, 1, 2].some(isLive) && hasTerminal();
}
