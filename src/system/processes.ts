/** @file Processes: liveness, parents, exit codes of signals. */
import { readFileSync } from 'node:fs';

/** Whether there is a process of this number on this machine. */
export function isAlive(pid: number): boolean {
  const state = statOf(pid)?.state;
  // A zombie has been killed, and not yet waited for by its parent.
  if (state !== undefined) return state !== 'Z' && state !== 'X';
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** The state and the parent of a process, if the system has /proc. */
function statOf(pid: number): { state: string; parent: number } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The command's name is in parentheses and may have any character.
    const [state = '', parent] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}

/** The parent of a process; undefined where it has ended, or the system has no /proc. */
export const parentOf = (pid: number): number | undefined => statOf(pid)?.parent;

/** Exit codes of processes that signals ended: 128 + the signal's number, by convention. */
export const exitCodeOfSignal = { SIGHUP: 129, SIGINT: 130, SIGPIPE: 141, SIGTERM: 143 } as const;

/** Signals that stop a run; SIGHUP also follows the end of launchers, SIGPIPE that of an output's reader. */
export type StopSignalName = keyof typeof exitCodeOfSignal;
