/** @file Calls of compiled functions, one after the other: they share variables. */

let last: Promise<unknown> = Promise.resolve();

/** Runs `task` once all earlier tasks have ended. */
export function inOrderOfCalls<T>(task: () => Promise<T>): Promise<T> {
  const result = last.then(task);
  last = result.catch(() => {});
  return result;
}
