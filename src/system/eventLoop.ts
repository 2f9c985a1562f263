/** @file Turns of the event loop for long computations: signals, timers and messages are answered between their parts. */
import { setImmediate } from 'node:timers/promises';

/** Longest unnoticeable delay of answers. */
const longestMs = 20;
let lastTurn = performance.now();

/** Lets the event loop turn if it has not for a while, as resolved promises alone never do. */
export async function letEventsIn(): Promise<void> {
  if (performance.now() - lastTurn < longestMs) return;
  await setImmediate();
  lastTurn = performance.now();
}
