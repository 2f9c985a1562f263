/** @file Turns of the event loop for long computations: signals, timers and messages are answered between their parts. */
import { setImmediate } from 'node:timers/promises';

/** Nobody notices an answer that comes so late. */
const longestMs = 20;
let lastTurn = performance.now();

/** Lets the event loop turn where it has not been asked to for a while; promises alone, once resolved, never let it. */
export async function letEventsIn(): Promise<void> {
  if (performance.now() - lastTurn < longestMs) return;
  await setImmediate();
  lastTurn = performance.now();
}
