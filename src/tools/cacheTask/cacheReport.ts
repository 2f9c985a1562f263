/** @file Report of `luthier cache-task`: each task's cache with its statistics, and unfinished shards. */

import { addSkipped, type DoneShard, describeSkipped, NONE_SKIPPED } from '../../inputs/index.js';
import { showFile } from '../../registry/names/index.js';
import { counted, formatBytes, titled } from '../../review/text/index.js';
import { formatCount } from '../../system/text/index.js';
import type { Report } from '../command.js';
import type { TaskResult } from './datasetCaches.js';

/** Result of the command. */
export interface Cached {
  readonly experiment: string;
  readonly dataset: string;
  readonly tasks: readonly TaskResult[];
  /** The shards of the command's share. */
  readonly shards: readonly DoneShard[];
}

function taskText({ folder, split, shards, finished, manifest }: TaskResult): string {
  const where = `${showFile(folder)}: split '${split}'`;
  if (manifest === undefined)
    return `${where}, ${finished} of ${counted(shards, 'shard')}; it is readable once all are written.`;
  const { examples, features, skipped } = manifest.statistics;
  const bytes = manifest.shards.reduce((sum, shard) => sum + shard.bytes, 0);
  const size = `${counted(shards, 'shard')} of ${formatBytes(bytes)} together`;
  const lines = Object.entries(features).map(
    ([name, { tokens, longest }]) =>
      `${name}: ${counted(tokens, 'token')}, ${formatCount(tokens / examples)} an example, the longest ${longest}`,
  );
  const broken = skipped === 0 ? [] : [`${counted(skipped, 'broken record')} left out`];
  const head = `${where}, ${counted(examples, 'example')} of ${counted(manifest.records, 'record')}, ${size}`;
  return titled(head, ...lines, ...broken);
}

/** The report on a command's share. */
export function cacheReport({ experiment, dataset, tasks, shards }: Cached): Report {
  const kept = shards.filter(({ isKept }) => isKept).length;
  const written = shards.length - kept;
  const skipped = shards.reduce((sum, shard) => addSkipped(sum, shard.skipped), NONE_SKIPPED);
  return {
    text: () =>
      [
        `${experiment}, dataset '${dataset}': ${counted(written, 'shard')} written, ${kept} kept`,
        ...tasks.map(taskText),
        ...(skipped.count === 0 ? [] : [describeSkipped(skipped)]),
      ].join('\n'),
    json: () => ({ experiment, dataset, written, kept, tasks }),
  };
}
