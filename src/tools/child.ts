/** @file Child process that runs a TypeScript module and exchanges messages with it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { atEnd } from './cleanup.js';

/** Why a child gives no answer. */
export class ChildError extends Error {
  override name = 'ChildError';

  constructor(
    readonly reason: 'ended' | 'timeout',
    message: string,
    /** The end of what it wrote to stdout and stderr. */
    readonly output: string,
  ) {
    super(message);
  }
}

/** How a child is started. */
export interface ChildOptions {
  /** The working directory; that of this process where it is absent. */
  readonly cwd?: string;
  /** Arguments of the module. */
  readonly args?: readonly string[];
}

/** As much of what a child writes as is kept. */
const longestOutput = 8000;

/**
 * A process that runs a TypeScript or JavaScript module. Both sides send messages of plain data: the module with
 * `process.send`, and by `process.on('message')` it gets those of this side. What it prints is kept for its error.
 */
export class Child<Sent, Received> {
  private readonly process: ChildProcess;
  private readonly forget: () => void;
  private readonly inbox: Received[] = [];
  private waiting: (() => void) | undefined;
  private output = '';
  private ended: string | undefined;
  private readonly closed: Promise<void>;

  constructor(module: URL, { cwd, args = [] }: ChildOptions = {}) {
    const typescript = new URL('../system/typescript.js', import.meta.url).href;
    this.process = spawn(process.execPath, ['--import', typescript, fileURLToPath(module), ...args], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      ...(cwd !== undefined && { cwd }),
    });
    this.forget = atEnd(() => this.process.kill('SIGKILL'));
    for (const stream of [this.process.stdout!, this.process.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.output = (this.output + text).slice(-longestOutput);
      });
    }
    this.process.on('message', (message) => {
      this.inbox.push(message as Received);
      this.waiting?.();
    });
    this.closed = new Promise((resolve) => {
      const end = (how: string): void => {
        this.ended ??= how;
        this.forget();
        this.waiting?.();
        resolve();
      };
      this.process.on('error', (error) => end(`could not be started: ${error.message}`));
      this.process.on('close', (code, signal) => end(howItEnded(code, signal, this.output)));
      // What the child itself has started may outlive it, and holds its pipes.
      this.process.on('exit', (code, signal) => {
        setTimeout(() => end(howItEnded(code, signal, this.output)), 500).unref();
      });
    });
  }

  /** Sends a message; one to a child that has ended is lost, as the next `receive` tells. */
  send(message: Sent): void {
    if (this.process.connected) this.process.send(message as object, () => {});
  }

  /**
   * The next message of the child.
   *
   * @param timeoutMs the child is killed where it takes longer.
   * @throws ChildError where the child has ended, or was killed.
   */
  async receive(timeoutMs?: number): Promise<Received> {
    if (this.inbox.length === 0 && this.ended === undefined) {
      const arrived = new Promise<void>((resolve) => {
        this.waiting = resolve;
      });
      const timer = timeoutMs === undefined ? undefined : setTimeout(() => this.waiting?.(), timeoutMs);
      await arrived;
      clearTimeout(timer);
      this.waiting = undefined;
    }
    if (this.inbox.length > 0) return this.inbox.shift()!;
    if (this.ended !== undefined) throw new ChildError('ended', `The process ${this.ended}.`, this.output);
    await this.kill();
    const seconds = timeoutMs! / 1000;
    throw new ChildError('timeout', `No answer within ${seconds} s.`, this.output);
  }

  /** Ends the child at once. */
  async kill(): Promise<void> {
    this.process.kill('SIGKILL');
    await this.closed;
  }
}

function howItEnded(code: number | null, signal: NodeJS.Signals | null, output: string): string {
  if (/heap out of memory|GB of memory/.test(output)) return 'ran out of memory';
  if (signal === 'SIGKILL') return 'was killed, as the system does where memory runs out';
  return signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
}
