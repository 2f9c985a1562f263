/** @file Exit codes and error messages of commands; user errors are one message without a stack. */

import { exitCodeOfSignal, onOutputGone } from '../system/index.js';

/** Exit codes of user errors, by the error's name; every other error keeps its stack and exits with 1. */
const exitCodes: Readonly<Record<string, number>> = {
  UsageError: 2,
  ConfigError: 2,
  DeviceError: 1,
  InterruptedBuild: 1,
  JobError: 1,
  JobInUseError: 2,
  SummaryError: 1,
  InputError: 1,
  CheckpointError: 1,
};

/** Errors that say whose fault their cause is. */
const wrappers = ['ExperimentLoadError', 'FunctionError'];

/** A layer that finds its config wrong says all there is to say; one that fails on another error has a cause. */
function exitCodeOf(error: Error): number | undefined {
  return error.name === 'LayerError' && error.cause === undefined ? 2 : exitCodes[error.name];
}

/** What to tell a person about `error`, and the exit code. */
export function describeError(error: unknown): { text: string; code: number } {
  if (!(error instanceof Error)) return { text: String(error), code: 1 };
  const code = exitCodeOf(error);
  if (code !== undefined) return { text: error.message, code };
  if (wrappers.includes(error.name)) {
    const cause = describeError(error.cause);
    return { text: `${error.message}\n${cause.text}`, code: cause.code };
  }
  const stack = error.stack ?? error.message;
  // A layer's error has its cause's message and stack.
  const isWhole = error.cause === undefined || error.name === 'LayerError';
  return {
    text: isWhole ? stack : `${stack}\n${describeError(error.cause).text}`,
    code: 1,
  };
}

/** Runs a command to its end: what it prints is written out, and the process ends with its exit code. */
export async function runCommand(run: () => Promise<number>): Promise<void> {
  onOutputGone(() => process.exit(exitCodeOfSignal.SIGPIPE));
  const code = await run().catch((error: unknown) => {
    const told = describeError(error);
    process.stderr.write(`${told.text}\n`);
    return told.code;
  });
  // Modules that are still loading, or a library's idle threads, must not keep a finished command waiting.
  process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
}
