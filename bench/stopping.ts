/** @file Early ends of a benchmark: partial results on a signal, and no measured program left behind. */
import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Has a measured program end where the benchmark does. */
export function endsWithUs(child: ChildProcess): void {
  running.add(child);
  child.once('exit', () => running.delete(child));
}

/** Has `show` called where Ctrl-C or SIGTERM stops the benchmark, which then ends with the signal's exit code. */
export function whenStopped(show: () => void): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      show();
      process.exit(128 + constants.signals[signal]);
    });
  }
}
