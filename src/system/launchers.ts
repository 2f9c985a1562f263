/** @file What started this process for a person: npm, npx, tsx and the shells between; and whether they still live. */
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

/** Whether these words run a package manager's command, or tsx's. */
function isLauncher(words: readonly string[]): boolean {
  const [first = '', ...rest] = words;
  const program = isNode(first) ? (rest.find((word) => !word.startsWith('-')) ?? '') : first;
  if (/[/\\]tsx[/\\]dist[/\\]cli\.mjs$/.test(program)) return true;
  return /^(npm|npx|pnpm|pnpx|yarn|bun|bunx|tsx)(-cli)?(\.c?js)?$/.test(basename(program));
}

/** Whether these words run a command line, as launchers have a shell do. */
const isShell = ([shell = '', flag]: readonly string[]): boolean =>
  /^(ba|da|a|z|k)?sh$/.test(basename(shell)) && flag === '-c';

/**
 * The processes above this one, nearest first, up to the farthest launcher. A shell counts where a launcher started it: one
 * that a person works in may end, and what was started in it lives on.
 */
export function launchers(start = process.ppid, read = readAncestor): number[] {
  const pids: number[] = [];
  let counted = 0;
  for (let pid = start; pid > 1 && pids.length < mostAncestors; ) {
    const ancestor = read(pid);
    if (ancestor === undefined) break;
    const launches = isLauncher(ancestor.words);
    if (!launches && !isShell(ancestor.words)) break;
    pids.push(pid);
    if (launches) counted = pids.length;
    pid = ancestor.parent;
  }
  return pids.slice(0, counted);
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
