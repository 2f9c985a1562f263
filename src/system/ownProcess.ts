/** @file The command in a child process, which gets signals as messages and ends with this process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { StopSignalName } from './processes.js';

/** Set in the environment of a process that gets signals as messages. */
export const BENEATH = 'LUTHIER_BENEATH';
const command = fileURLToPath(new URL('../tools/luthier.js', import.meta.url));

interface StopMessage {
  readonly stop: StopSignalName;
}

/** Node's own flags without those that load tsx: the command brings its own. */
function nodeFlags(): string[] {
  const flags = process.execArgv.map((flag) => flag.replace(/^(--import|--require)=/, '$1\0'));
  const words = flags.flatMap((flag) => flag.split('\0'));
  const isTsx = (word: string | undefined) => /(^|[/\\])tsx($|[/\\])/.test(word ?? '');
  return words.filter(
    (word, i) => !isTsx(word) && !(/^(--import|--require|-r)$/.test(word) && isTsx(words[i + 1])),
  );
}

/** Writes whole lines, since several processes write to the same stream; empty ones are left out. */
function forwardLines(from: Readable, to: Writable, prefix: string): void {
  createInterface({ input: from, crlfDelay: Number.POSITIVE_INFINITY }).on('line', (line) => {
    if (line !== '') to.write(`${prefix}${line}\n`);
  });
}

/** A process of the command, in the process group of this one: a signal that reaches both, as of Ctrl-C, counts once. */
export class OwnProcess {
  private readonly child: ChildProcess;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;

  /**
   * @param args of `luthier`.
   * @param prefix of each line of its output; without one, its output is this process's.
   */
  constructor(args: readonly string[], prefix?: string) {
    const output = prefix === undefined ? 'inherit' : 'pipe';
    this.child = spawn(process.execPath, [...nodeFlags(), command, ...args], {
      stdio: ['ignore', output, output, 'ipc'],
      env: { ...process.env, [BENEATH]: '1' },
    });
    const { stdout, stderr } = this.child;
    if (stdout !== null) forwardLines(stdout, process.stdout, prefix!);
    if (stderr !== null) forwardLines(stderr, process.stderr, prefix!);
    this.ended = new Promise((resolve, reject) => {
      this.child.on('error', reject);
      // Its output ends with it.
      this.child.on('close', (code, signal) => resolve(code ?? signal ?? 1));
    });
  }

  /** Passes on a signal. */
  stop(signal: StopSignalName): void {
    const message: StopMessage = { stop: signal };
    if (this.child.connected) this.child.send(message, () => {});
  }

  /** Ends it at once. */
  kill(): void {
    this.child.kill('SIGKILL');
  }
}

let isChild: boolean | undefined;

/**
 * In an {@link OwnProcess}: has `receive` called with signals that the parent passes on, or SIGTERM when it has ended.
 *
 * @returns a function that stops listening; undefined where this process is no such child.
 */
export function listenToParent(receive: (signal: StopSignalName) => void): (() => void) | undefined {
  isChild ??= process.env[BENEATH] !== undefined && process.channel !== undefined;
  // Children of this process are not its parent's.
  delete process.env[BENEATH];
  if (!isChild) return undefined;
  const onMessage = ({ stop }: Partial<StopMessage>) => {
    if (stop !== undefined) receive(stop);
  };
  const onEnd = () => receive('SIGTERM');
  process.on('message', onMessage).on('disconnect', onEnd);
  // Listening must not keep a process alive.
  process.channel?.unref();
  if (!process.connected) setImmediate(onEnd);
  return () => void process.off('message', onMessage).off('disconnect', onEnd);
}
