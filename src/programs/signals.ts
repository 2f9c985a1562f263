/** @file Stopping on SIGINT and SIGTERM: the first asks the run to save and leave, the second leaves at once. */

export type StopSignalName = 'SIGINT' | 'SIGTERM';

/** Exit codes by convention: 128 + the signal's number. */
export const exitCodeOfSignal: Readonly<Record<StopSignalName, number>> = { SIGINT: 130, SIGTERM: 143 };

/** Watches for signals from `listen` to `close`. */
export class StopSignal {
  /** The signal that asked the run to stop. */
  received: StopSignalName | undefined;
  private readonly handlers: [StopSignalName, () => void][] = [];

  /** @param notice called at the first signal, to say what happens next. */
  constructor(private readonly notice: (signal: StopSignalName) => void) {}

  listen(): void {
    for (const name of ['SIGINT', 'SIGTERM'] as const) {
      const handler = () => this.handle(name);
      process.on(name, handler);
      this.handlers.push([name, handler]);
    }
  }

  close(): void {
    for (const [name, handler] of this.handlers) process.off(name, handler);
    this.handlers.length = 0;
  }

  private handle(name: StopSignalName): void {
    if (this.received) process.exit(exitCodeOfSignal[name]);
    this.received = name;
    this.notice(name);
  }
}
