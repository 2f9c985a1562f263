/** @file `luthier cache-task`: a dataset's tasks preprocessed once, into shards that inputs read (seqio_cache_tasks). */
import { availableParallelism } from 'node:os';
import { nonEmpty, positive } from '../../cli/commandLine/index.js';
import type { DoneShard, ShardShare } from '../../inputs/index.js';
import { Progress, UsageError } from '../../system/text/index.js';
import type { Arguments, Command, Report } from '../command.js';
import { configureFor } from '../commandExperiment.js';
import { datasetFlag } from '../datasets.js';
import { cacheReport } from './cacheReport.js';
import { type CacheOptions, DatasetCaches } from './datasetCaches.js';
import { writeInProcesses } from './shareProcesses.js';

/** Values of the flags. */
interface CacheFlags extends CacheOptions {
  readonly processes?: number;
  readonly index?: number;
  readonly count?: number;
}

function parseIndex(text: string, flag: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  throw new UsageError(`${flag}: expected an integer from 0 on; got '${text}'.`);
}

/** The share of the shards that the flags name. @throws UsageError for half of a pair, and for an index beyond the count */
function shareOf({ index, count }: CacheFlags): ShardShare {
  if ((index === undefined) !== (count === undefined))
    throw new UsageError(
      '--shard_index and --shard_count belong together: the share I of N. Give both, or neither.',
    );
  const share = { index: index ?? 0, count: count ?? 1 };
  if (share.index < share.count) return share;
  throw new UsageError(
    `--shard_index=${index}: expected an integer from 0 to ${share.count - 1}, below --shard_count.`,
  );
}

async function run(args: Arguments): Promise<Report> {
  const flags = args.values as CacheFlags;
  const { processes = availableParallelism(), index: _, count: __, ...options } = flags;
  const share = shareOf(flags);
  const [experiment] = args.positionals as readonly [string];
  const configured = await configureFor(experiment, args);
  const caches = new DatasetCaches(configured, options);
  const shards: DoneShard[] = [];
  const progress = new Progress(caches.shardsOf(share));
  const done = (shard: DoneShard): void => {
    shards.push(shard);
    progress.add(shard.file);
  };
  try {
    const most = Math.min(processes, caches.shardsOf(share));
    if (most > 1) await writeInProcesses({ experiment, changes: args.changes, options, share }, most, done);
    else await caches.write(share, done);
    const tasks = caches.finish();
    return cacheReport({ experiment: configured.name, dataset: caches.dataset, tasks, shards });
  } finally {
    progress.end();
    caches.close();
  }
}

export const cacheTask: Command = {
  usage: 'EXP',
  positionals: [1, 1],
  flags: {
    dataset: datasetFlag,
    out: {
      ...{ key: 'out', value: 'DIR', parse: nonEmpty },
      about:
        "Directory of the caches. Default: the dataset's cacheDirectory, where its input looks for them.",
    },
    shards: {
      ...{ key: 'shards', value: 'N', parse: positive(true) },
      about:
        'Files of each cache. Default: one for each 64 MiB of the source, or 100,000 records; 256 at most.',
    },
    processes: {
      ...{ key: 'processes', value: 'N', parse: positive(true) },
      about: 'Processes that write shards side by side. Default: one a core.',
    },
    shard_index: {
      ...{ key: 'index', value: 'I', parse: parseIndex },
      about:
        'Writes the shards I, I + N, … of --shard_count=N alone: a share for each host or job of a scheduler.',
    },
    shard_count: {
      ...{ key: 'count', value: 'N', parse: positive(true) },
      about: 'Number of shares.',
    },
  },
  changes: true,
  details: [
    "Stores the output of each task's preprocessors, up to a CacheDatasetPlaceholder or of all of them, and counts examples",
    'and tokens. The dataset reads the cache with useCached: true. The name of its folder is a fingerprint of the source, the',
    'split, the preprocessors and the tokenizers: a change of these makes another cache, and the old one stays until removed.',
    '',
    'Complete shards are kept: a stopped command resumes, and damaged shards are written again. Shares may run at any time,',
    'on any machine that sees the directory; the last one to finish completes the cache.',
    '',
    '  npx luthier cache-task lm.SmallBpe --dataset=train',
    '  npx luthier cache-task lm.SmallBpe --shards=64 --shard_index=$SLURM_PROCID --shard_count=$SLURM_NTASKS',
    '',
    'Exit codes: 0; 1 if data cannot be read or written; 2 for a wrong command line or config, such as a',
    'random preprocessor before the placeholder.',
  ].join('\n'),
  run,
};
