/** @file Exit codes and error messages of commands; user errors print one message without a stack. */

import { exitCodeOfSignal, onOutputClosed, warn, watchForeignCode } from '../../system/index.js';

/** Exit codes of user errors by name; other errors print their stack and exit with 1. */
const exitCodes: Readonly<Record<string, number>> = {
  UsageError: 2,
  ConfigError: 2,
  DeviceError: 1,
  InterruptedBuild: 1,
  NativeEngineError: 1,
  ProgramSizeError: 2,
  GitError: 1,
  JobError: 1,
  JobInUseError: 2,
  RequestError: 2,
  SummaryError: 1,
  InputError: 1,
  CheckpointError: 1,
};

/** Codes of imports that Node cannot find. */
const missing = ['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND', 'ERR_PACKAGE_PATH_NOT_EXPORTED'];

/** Errors whose cause determines the exit code. */
const wrappers = ['ExperimentLoadError', 'FunctionError'];

/** A LayerError without a cause is a config error; one with a cause is a failure of the layer's code. */
function exitCodeOf(error: Error): number | undefined {
  return error.name === 'LayerError' && error.cause === undefined ? 2 : exitCodes[error.name];
}

/** The message for an error, and the exit code. */
export function describeError(error: unknown): { text: string; code: number } {
  if (!(error instanceof Error)) return { text: String(error), code: 1 };
  const code = exitCodeOf(error);
  if (code !== undefined) return { text: error.message, code };
  if (wrappers.includes(error.name)) {
    const cause = describeError(error.cause);
    return { text: `${error.message}\n${cause.text}`, code: cause.code };
  }
  // Its stack is of Node's own functions, and the message has the importing file.
  if (missing.includes((error as NodeJS.ErrnoException).code ?? ''))
    return { text: error.message.split('\n')[0]!, code: 1 };
  const stack = error.stack ?? error.message;
  // A layer's error already contains its cause's message and stack.
  const isWhole = error.cause === undefined || error.name === 'LayerError';
  return {
    text: isWhole ? stack : `${stack}\n${describeError(error.cause).text}`,
    code: 1,
  };
}

/** Runs a command, flushes its output, and exits the process with its code. */
export async function runCommand(run: () => Promise<number>): Promise<void> {
  onOutputClosed(() => process.exit(exitCodeOfSignal.SIGPIPE));
  const ended = watchForeignCode();
  const code = await run().catch((error: unknown) => {
    const description = describeError(error);
    warn(description.text);
    return description.code;
  });
  ended();
  // Modules still loading, or idle threads of a library, must not keep a finished command alive.
  process.stdout.write('', () => process.stderr.write('', () => process.exit(code)));
}
