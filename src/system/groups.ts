/** @file Child programs, each a process group, which end with this process or with a stop signal. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';

/** Work was abandoned because the process was stopped. */
export class InterruptedError extends Error {
  override readonly name = 'InterruptedError';
}

/** A program with all processes that it starts in turn. */
export interface Group {
  readonly child: ChildProcess;
  /** Whether {@link stopGroups} ended it. */
  wasStopped(): boolean;
  kill(): void;
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
const hasGroups = process.platform !== 'win32';
const running = new Set<{ child: ChildProcess; stopped: boolean }>();

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(hasGroups ? -pid : pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

/** Kills all running groups. */
export function stopGroups(): void {
  for (const group of running) {
    group.stopped = true;
    killGroup(group.child);
  }
}

function onSignal(signal: NodeJS.Signals): void {
  stopGroups();
  // Other listeners handle the signal; without any, the process ends as by default.
  if (process.listenerCount(signal) > 1) return;
  process.off(signal, onSignal);
  process.kill(process.pid, signal);
}

function watch(): void {
  process.on('exit', stopGroups);
  for (const signal of signals) process.on(signal, onSignal);
}

function unwatch(): void {
  process.off('exit', stopGroups);
  for (const signal of signals) process.off(signal, onSignal);
}

/** Starts a program as the leader of a group of its own. */
export function spawnGroup(command: string, args: readonly string[], options: SpawnOptions): Group {
  const child = spawn(command, args, { ...options, detached: hasGroups });
  const group = { child, stopped: false };
  if (running.size === 0) watch();
  running.add(group);
  const end = (): void => {
    if (running.delete(group) && running.size === 0) unwatch();
  };
  child.once('exit', end).once('error', end);
  return { child, wasStopped: () => group.stopped, kill: () => killGroup(child) };
}
