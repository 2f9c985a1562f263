/** @file Calls of operations, kept with what they record while an error or a report may have to name the user's line. */
import { DEEP } from './usersFrame.js';

let keeps = false;

/** Whether calls are kept. */
export const keepsCalls = (): boolean => keeps;

/** Runs `f` with calls kept, which takes 20 µs an operation. */
export function keepingCalls<T>(f: () => T): T {
  const outer = keeps;
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = DEEP;
  keeps = true;
  try {
    return f();
  } finally {
    keeps = outer;
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** An error whose stack is that of the present call; undefined where calls are not kept. */
export const presentCall = (): Error | undefined => (keeps ? new Error() : undefined);
