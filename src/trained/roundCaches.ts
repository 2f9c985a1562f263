/** @file Caches of a run in few bits, chosen where it is loaded. */
import { type Config, classOf, iterate } from '../hparams/index.js';
import { FullCache } from '../layers/index.js';
import { RequestError } from './requestError.js';
import type { RunDocument } from './runDocument.js';

/**
 * Has the full caches of a run's model keep keys and values in so many bits.
 *
 * @throws RequestError for another number than 8, and for a model without such caches
 */
export function roundCaches({ name, task }: RunDocument, bits: number): void {
  if (bits !== 8) throw new RequestError(`loadRun: cacheBits: expected 8, or none, got ${bits}.`);
  const caches = iterate(task.model, { defaults: true, memoized: true })
    .map(({ config }) => config)
    .filter((config) => classOf(config) === FullCache);
  for (const cache of caches) (cache as Config<FullCache>).precision = bits;
  if (caches.length === 0)
    throw new RequestError(
      `loadRun: cacheBits: ${name} has no FullCache, the cache that keeps tokens in fewer bits; load it without.`,
    );
}
