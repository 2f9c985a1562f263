/** @file Process that runs one trial of a study after the other, with everything loaded once. */
import { describeError } from '../cli/commandLine/index.js';
import { runFlags } from '../cli/run/index.js';

/** A request, by the flags of `luthier train`; signals of the parent are messages too. */
interface TrialRequest {
  readonly flags?: readonly string[];
}

let isRunning = false;
let isAlone = false;

async function run(flags: readonly string[]): Promise<void> {
  isRunning = true;
  const end = await runFlags(flags, () => import('../rooms.js')).then(
    (exit) => ({ exit }),
    (error: unknown) => ({
      exit: describeError(error).code,
      error: { name: error instanceof Error ? error.name : 'Error', message: describeError(error).text },
    }),
  );
  isRunning = false;
  if (isAlone) process.exit();
  process.send!(end);
}

process.on('message', ({ flags }: TrialRequest) => {
  if (flags !== undefined) void run(flags);
});
// A job that runs saves first: it hears the end of its parent as a signal.
process.on('disconnect', () => {
  isAlone = true;
  if (!isRunning) process.exit();
});
// Jobs listen to the parent without keeping the process alive.
setInterval(() => {}, 2 ** 30);
