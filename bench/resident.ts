/** @file Resident memory of this process. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Resident bytes outside of JavaScript's heap, once garbage is collected. */
export function resident(): number {
  for (let i = 0; i < 3; i++) collect();
  const { rss, heapTotal } = process.memoryUsage();
  return rss - heapTotal;
}
