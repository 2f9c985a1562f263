/** @file StopSignal: the first signal saves and ends the run, one at least a second later ends it at once. */
import { onOutputClosed } from './brokenOutput.js';
import { stopGroups } from './groups.js';
import { isDetached, isOrphaned, launchersAbove } from './launchers.js';
import { listenToParent } from './ownProcess.js';
import { exitCodeOfSignal, type StopSignalName } from './processes.js';
import { warn } from './text/output.js';

/** Handlers of signals. */
export interface StopActs {
  /** Called at the first signal in place of leaving; the process then ends by itself. */
  readonly first?: (name: StopSignalName) => void;
  /** Called at the second, before the process exits. */
  readonly again?: () => void;
}

/** Signals within this time are one: the terminal, npm and tsx each deliver one key press. */
const sameSignalMs = 1000;
const orphanCheckMs = 500;

/**
 * Watches for signals from `listen` to `close`: SIGINT, SIGTERM, SIGHUP, those that a parent of the same command passes on,
 * the end of npm, npx or tsx that started this process, and of the reader of its output. A process that was started to
 * outlive its terminal outlives the last four.
 */
export class StopSignal {
  /** The signal that stopped the run. */
  received: StopSignalName | undefined;
  private receivedAt = 0;
  /** Work between the first signal and the end of the run; without any, it leaves at once. */
  private finish: string | undefined;
  private readonly undo: (() => void)[] = [];

  constructor(private readonly acts: StopActs = {}) {}

  listen(): void {
    if (this.undo.length > 0) return;
    const byOurs = listenToParent((name) => this.receive(name));
    // A parent of the same command passes on the hang-ups that are not to be outlived.
    const detached = byOurs !== undefined || isDetached();
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      const handler = () => {
        if (name !== 'SIGHUP' || !detached) this.receive(name);
      };
      process.on(name, handler);
      this.undo.push(() => process.off(name, handler));
    }
    this.undo.push(onOutputClosed(() => this.receive('SIGPIPE')));
    if (byOurs !== undefined) this.undo.push(byOurs);
    else if (!detached) this.watchLaunchers();
  }

  /** Stops as if the signal had come: another process has received one. */
  request(name: StopSignalName): void {
    this.receive(name);
  }

  close(): void {
    for (const undo of this.undo.splice(0)) undo();
  }

  /** Makes the first signal a request from here on. @param finish the work still to do: `saving a checkpoint, then leaving` */
  postpone(finish: string): void {
    this.finish = finish;
  }

  private watchLaunchers(): void {
    const { launchers, ended } = launchersAbove();
    if (ended) this.receive('SIGHUP');
    if (launchers.length === 0) return;
    const timer = setInterval(() => {
      if (isOrphaned(launchers)) this.receive('SIGHUP');
    }, orphanCheckMs);
    timer.unref();
    this.undo.push(() => clearInterval(timer));
  }

  private receive(name: StopSignalName): void {
    if (this.received !== undefined) {
      // Only a person or a system sends a second signal; a terminal or a pipe sends one.
      const asks = name === 'SIGINT' || name === 'SIGTERM';
      if (asks && performance.now() - this.receivedAt >= sameSignalMs) this.leave(name);
      return;
    }
    this.received = name;
    this.receivedAt = performance.now();
    if (this.acts.first !== undefined) {
      this.acts.first(name);
      return;
    }
    const { finish } = this;
    warn(`\n${name}: ${finish ?? 'leaving'}.${finish ? ' Once more leaves at once.' : ''}`);
    stopGroups();
    if (finish === undefined) this.leave(name);
  }

  private leave(name: StopSignalName): void {
    this.acts.again?.();
    process.exit(exitCodeOfSignal[name]);
  }
}
