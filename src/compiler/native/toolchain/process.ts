/** @file Processes of the compiler: without a shell, with a time limit, and ended by the signals that stop this process. */
import { InterruptedError, spawnGroup } from '../../../system/index.js';

/** How a process ended. */
export interface Ended {
  /** Its exit code, or what kept it from having one. */
  readonly code: number | string;
  /** What it wrote, both streams in the order of writing. */
  readonly output: string;
}

/** How it ended, for messages. */
export const endText = ({ code }: Ended): string => (typeof code === 'number' ? `exit code ${code}` : code);

/** Where and how long a process runs. */
export interface RunOptions {
  readonly cwd?: string;
  readonly env: NodeJS.ProcessEnv;
  readonly seconds: number;
}

/** More is not read by anyone; an endless writer must not fill the memory. */
const mostOutput = 1 << 20;

/**
 * Runs a program to its end, its arguments as they are given. Messages come in English, whatever the user's language.
 *
 * @param command an absolute path.
 * @throws InterruptedError where it was ended because this process was told to stop.
 */
export function runProcess(command: string, args: readonly string[], options: RunOptions): Promise<Ended> {
  const { cwd, env, seconds } = options;
  return new Promise((resolve, reject) => {
    let output = '';
    let late = false;
    const { child, kill, wasStopped } = spawnGroup(command, args, {
      ...(cwd === undefined ? {} : { cwd }),
      env: { ...env, LC_ALL: 'C' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const timer = setTimeout(() => {
      late = true;
      kill();
    }, seconds * 1000);
    for (const stream of [child.stdout!, child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        if (output.length < mostOutput) output += text;
      });
    }
    const end = (code: number | string): void => {
      clearTimeout(timer);
      if (wasStopped()) reject(new InterruptedError(`${command} was ended, for this process is to stop.`));
      else resolve({ code, output });
    };
    child.on('error', (error) => end(error.message));
    child.on('close', (code, signal) =>
      end(late ? `no answer within ${seconds} s` : (code ?? `ended by ${signal}`)),
    );
  });
}
