/** @file Disables ONNX Runtime's telemetry before the library is loaded. */
import { isMainThread } from 'node:worker_threads';
import { loadKoffi } from '../../system/index.js';
import { CompilerError } from '../program/tensors.js';

/** The library reads this variable once, when the first session of the process is created. */
const variable = 'ORT_DISABLE_TELEMETRY';

/**
 * Without this, ONNX Runtime writes a device id into the user's cache and sends it to its vendor. Child processes
 * inherit the setting.
 *
 * @throws CompilerError in a worker thread that can't set the variable.
 */
export async function disableTelemetry(): Promise<void> {
  process.env[variable] = '1';
  // Windows builds of the library lack this code. A worker's `process.env` is a copy, which C doesn't see.
  if (isMainThread || process.platform === 'win32') return;
  try {
    const program = (await loadKoffi()).load(null);
    const get = program.func('const char *getenv(const char *name)');
    if (get(variable) === '1') return;
    program.func('int setenv(const char *name, const char *value, int overwrite)')(variable, '1', 1);
  } catch (error) {
    throw new CompilerError(
      `ONNX Runtime would send telemetry, which this worker thread can't turn off: ${(error as Error).message}. ` +
        'Compile in the main thread, or reinstall with npm ci.',
      { cause: error },
    );
  }
}
