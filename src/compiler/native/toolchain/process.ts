/** @file Compiler processes: no shell, a time limit, and termination with this process. */
import { InterruptedError, spawnGroup } from '../../../system/index.js';

/** Result of a process. */
export interface Ended {
  /** Its exit code, or the reason that there is none. */
  readonly code: number | string;
  /** Its output, both streams interleaved. */
  readonly output: string;
}

/** A process's result, for messages. */
export const endText = ({ code }: Ended): string => (typeof code === 'number' ? `exit code ${code}` : code);

/** Working folder, environment and time limit of a process. */
export interface RunOptions {
  readonly cwd?: string;
  readonly env: NodeJS.ProcessEnv;
  readonly seconds: number;
}

/** Output limit: guards memory against endless writers. */
const mostOutput = 1 << 20;

/**
 * Runs a program to its end, without a shell. Forces English messages.
 *
 * @param command an absolute path.
 * @throws InterruptedError where it was terminated because this process is stopping.
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
