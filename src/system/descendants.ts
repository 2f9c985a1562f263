/** @file Processes that a process has started, found in Linux's /proc: children of children, and those that left them. */
import { readdirSync, readFileSync } from 'node:fs';
import { parentOf } from './processes.js';

/** Rounds of looking, since processes start others until they are killed. */
const mostRounds = 20;

function others(): number[] {
  try {
    return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
  } catch {
    // Other systems have none.
    return [];
  }
}

/** Whether a process has this text in the environment that it began with. */
function hasMark(pid: number, mark: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(mark);
  } catch {
    // It has ended, or belongs to another user.
    return false;
  }
}

/** The processes that descend from `root`, and those whose environment has the mark; `root` is none of them. */
function startedBy(root: number, mark: string): number[] {
  const parents = new Map(others().map((pid) => [pid, parentOf(pid)]));
  const descends = (pid: number): boolean => {
    for (let at = parents.get(pid); at !== undefined && at > 1; at = parents.get(at))
      if (at === root) return true;
    return false;
  };
  return [...parents.keys()].filter((pid) => {
    if (pid === root || pid === process.pid) return false;
    return descends(pid) || hasMark(pid, mark);
  });
}

/**
 * Kills all that a process has started. Processes that were handed on to init are found by the mark in the environment that
 * they inherit.
 */
export function killStarted(root: number, mark: string): void {
  const killed = new Set<number>();
  for (let round = 0; round < mostRounds; round += 1) {
    const fresh = startedBy(root, mark).filter((pid) => !killed.has(pid));
    if (fresh.length === 0) return;
    for (const pid of fresh) {
      killed.add(pid);
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended.
      }
    }
  }
}
