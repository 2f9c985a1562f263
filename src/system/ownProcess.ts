/** @file The command in a child process, which gets signals as messages and ends with this process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { StopSignalName } from './processes.js';

/** Set in the environment of such a process. */
const variable = 'LUTHIER_BENEATH';
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

/** A process of the command, in the process group of this one: a signal that reaches both, as of Ctrl-C, counts once. */
export class OwnProcess {
  private readonly child: ChildProcess;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;

  /** @param args of `luthier`. */
  constructor(args: readonly string[]) {
    this.child = spawn(process.execPath, [...nodeFlags(), command, ...args], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: { ...process.env, [variable]: '1' },
    });
    this.ended = new Promise((resolve, reject) => {
      this.child.on('error', reject);
      this.child.on('exit', (code, signal) => resolve(code ?? signal ?? 1));
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

let isBeneath: boolean | undefined;

/**
 * In an {@link OwnProcess}: has `receive` called with signals that the parent passes on, or SIGTERM when it has ended.
 *
 * @returns a function that stops listening; undefined where this process is no such child.
 */
export function listenToParent(receive: (signal: StopSignalName) => void): (() => void) | undefined {
  isBeneath ??= process.env[variable] !== undefined && process.channel !== undefined;
  // Children of this process are not its parent's.
  delete process.env[variable];
  if (!isBeneath) return undefined;
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
