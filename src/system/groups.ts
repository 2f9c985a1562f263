/** @file Programs that this process starts, each a group of processes: none outlives this one, and a stop signal stops them. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';

/** What was going on was given up because the process was told to stop. */
export class InterruptedError extends Error {
  override readonly name = 'InterruptedError';
}

/** A program and all that it starts in turn. */
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

/** Ends all that is running, at once. */
export function stopGroups(): void {
  for (const group of running) {
    group.stopped = true;
    killGroup(group.child);
  }
}

function onSignal(signal: NodeJS.Signals): void {
  stopGroups();
  // Whoever else listens decides what the signal means; where nobody does, the process ends as if nobody had listened.
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
