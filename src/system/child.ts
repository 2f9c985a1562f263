/** @file Child process that runs a TypeScript module and exchanges messages with it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { atEnd } from './cleanup.js';
import { killStarted } from './descendants.js';
import { BENEATH } from './ownProcess.js';

/** Failure of a child process to answer. */
export class ChildError extends Error {
  override name = 'ChildError';

  constructor(
    readonly reason: 'ended' | 'timeout',
    message: string,
    /** The end of its stdout and stderr. */
    readonly output: string,
  ) {
    super(message);
  }
}

/** Options for starting a child. */
export interface ChildOptions {
  /** Working directory; defaults to this process's. */
  readonly cwd?: string;
  /** Arguments of the module. */
  readonly args?: readonly string[];
  /** Flags of Node itself. */
  readonly flags?: readonly string[];
  /** Whether the module's jobs get signals as messages `{ stop: 'SIGTERM' }`, as those of an OwnProcess. */
  readonly isBeneath?: boolean;
  /** Whether the processes that it starts end with it, as those of a project's code do. */
  readonly isForeign?: boolean;
}

/** Set in the environment of a process whose own processes end with it. */
const MARK = 'LUTHIER_STARTED_BY';

/** Most characters of a child's output that are kept. */
const longestOutput = 8000;

/**
 * A process that runs a TypeScript or JavaScript module. Both sides send plain data: the module by `process.send`,
 * receiving by `process.on('message')`. Its output is kept for errors.
 */
export class Child<Sent, Received> {
  private readonly process: ChildProcess;
  private readonly forget: () => void;
  private readonly mark: string | undefined;
  private readonly inbox: Received[] = [];
  private waiting: (() => void) | undefined;
  private output = '';
  private ended: string | undefined;
  private readonly closed: Promise<void>;

  constructor(module: URL, { cwd, args = [], flags = [], isBeneath, isForeign }: ChildOptions = {}) {
    const typescript = new URL('./typescript.js', import.meta.url).href;
    // Before it starts: a signal that comes between the two would leave it running.
    this.forget = atEnd(() => this.end());
    const env = {
      ...(isBeneath && { [BENEATH]: '1' }),
      ...(isForeign && { [MARK]: (this.mark = randomUUID()) }),
    };
    this.process = spawn(
      process.execPath,
      [...flags, '--import', typescript, fileURLToPath(module), ...args],
      {
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
        ...(cwd !== undefined && { cwd }),
        ...((isBeneath || isForeign) && { env: { ...process.env, ...env } }),
      },
    );
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
        this.endStarted();
        this.forget();
        this.waiting?.();
        resolve();
      };
      this.process.on('error', (error) => end(`could not be started: ${error.message}`));
      this.process.on('close', (code, signal) => end(howItEnded(code, signal, this.output)));
      // Processes started by the child may outlive it, and hold its pipes.
      this.process.on('exit', (code, signal) => {
        setTimeout(() => end(howItEnded(code, signal, this.output)), 500).unref();
      });
    });
  }

  /** Sends a message. A message to a child that has ended is lost; the next `receive` fails. */
  send(message: Sent): void {
    if (this.process.connected) this.process.send(message as object, () => {});
  }

  /**
   * Receives the child's next message.
   *
   * @param timeoutMs time limit, after which the child is killed.
   * @throws ChildError if the child has ended, or was killed.
   */
  async receive(timeoutMs = Number.POSITIVE_INFINITY): Promise<Received> {
    if (this.inbox.length === 0 && this.ended === undefined) {
      const arrived = new Promise<void>((resolve) => {
        this.waiting = resolve;
      });
      const timer = Number.isFinite(timeoutMs) ? setTimeout(() => this.waiting?.(), timeoutMs) : undefined;
      await arrived;
      clearTimeout(timer);
      this.waiting = undefined;
    }
    if (this.inbox.length > 0) return this.inbox.shift()!;
    if (this.ended !== undefined) throw new ChildError('ended', `The process ${this.ended}.`, this.output);
    await this.kill();
    throw new ChildError('timeout', `No answer within ${timeoutMs / 1000} s.`, this.output);
  }

  /** Ends the child at once. */
  async kill(): Promise<void> {
    this.end();
    await this.closed;
  }

  private end(): void {
    // Its own processes first, while it is their parent.
    if (this.mark !== undefined && this.ended === undefined) {
      this.process?.kill('SIGSTOP');
      this.endStarted();
    }
    this.process?.kill('SIGKILL');
  }

  private endStarted(): void {
    const pid = this.process?.pid;
    if (this.mark !== undefined && pid !== undefined) killStarted(pid, `${MARK}=${this.mark}`);
  }
}

function howItEnded(code: number | null, signal: NodeJS.Signals | null, output: string): string {
  if (/heap out of memory|GB of memory/.test(output)) return 'ran out of memory';
  if (signal === 'SIGKILL') return 'was killed, as the system does where memory runs out';
  return signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
}
