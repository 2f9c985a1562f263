/** @file Entry point of a caching process: writes a share of the shards, and reports each. */
import type { Override } from '../../cli/index.js';
import { explain } from '../../files/index.js';
import type { DoneShard, ShardShare } from '../../inputs/index.js';
import { configureFor } from '../commandExperiment.js';
import { type CacheOptions, DatasetCaches } from './datasetCaches.js';

/** A caching process's order. */
export interface CacheQuestion {
  readonly experiment: string;
  readonly changes: readonly Override[];
  readonly options: CacheOptions;
  readonly share: ShardShare;
}

/** Messages of a caching process: written shards, then its end or failure. */
export type CacheAnswer =
  | { readonly kind: 'shard'; readonly shard: DoneShard }
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly name: string; readonly message: string };

const send = (answer: CacheAnswer): void => void process.send!(answer);

process.on('message', async ({ experiment, changes, options, share }: CacheQuestion) => {
  try {
    // The parent has printed the warnings.
    const configured = await configureFor(experiment, { changes, warn: () => {} });
    const caches = new DatasetCaches(configured, options);
    await caches.write(share, (shard) => send({ kind: 'shard', shard }));
    send({ kind: 'done' });
  } catch (error) {
    send({ kind: 'failed', name: (error as Error).name, message: explain(error) });
  }
});
// The parent has gone.
process.on('disconnect', () => process.exit());
