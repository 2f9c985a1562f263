/** @file This command in another process beneath this one: told of signals by messages, and gone when this one goes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { StopSignalName } from './exitCodes.js';

/** Set in the environment of such a process. */
const variable = 'LUTHIER_BENEATH';
const command = fileURLToPath(new URL('../tools/luthier.js', import.meta.url));

interface StopMessage {
  readonly stop: StopSignalName;
}

/** Node's own flags, less those by which tsx came in: the command brings its own. */
function nodeFlags(): string[] {
  const flags = process.execArgv.map((flag) => flag.replace(/^(--import|--require)=/, '$1\0'));
  const words = flags.flatMap((flag) => flag.split('\0'));
  const isTsx = (word: string | undefined) => /(^|[/\\])tsx($|[/\\])/.test(word ?? '');
  return words.filter(
    (word, i) => !isTsx(word) && !(/^(--import|--require|-r)$/.test(word) && isTsx(words[i + 1])),
  );
}

/** A process of the command. It is in the group of this one: what reaches both, as Ctrl-C does, is one signal to it. */
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

  /** Hands on a signal. */
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
 * In an {@link OwnProcess}: has `receive` called with what the process above hands on, or SIGTERM where that has ended.
 *
 * @returns what ends that; undefined where this process is none.
 */
export function listenToParent(receive: (signal: StopSignalName) => void): (() => void) | undefined {
  isBeneath ??= process.env[variable] !== undefined && process.channel !== undefined;
  // What this process starts in turn is not beneath its parent.
  delete process.env[variable];
  if (!isBeneath) return undefined;
  const onMessage = ({ stop }: Partial<StopMessage>) => {
    if (stop !== undefined) receive(stop);
  };
  const onEnd = () => receive('SIGTERM');
  process.on('message', onMessage).on('disconnect', onEnd);
  // Being told does not keep a process alive.
  process.channel?.unref();
  if (!process.connected) setImmediate(onEnd);
  return () => void process.off('message', onMessage).off('disconnect', onEnd);
}
