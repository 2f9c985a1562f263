/** @file `luthier cache-task` in one process: shares, reports, errors. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { ConfiguredExperiment } from '../../../src/cli/index.js';
import { build, type Config, copyWith } from '../../../src/hparams/index.js';
import {
  type BaseInput,
  IterableSource,
  Mixture,
  MultiInput,
  SyntheticLmInput,
  Task,
  Tokenize,
} from '../../../src/inputs/index.js';
import type { DoneShard } from '../../../src/inputs/seqio/cacheShards.js';
import { plain } from '../../../src/system/text/terminalOutput.js';
import { cacheReport } from '../../../src/tools/cacheTask/cacheReport.js';
import { DatasetCaches } from '../../../src/tools/cacheTask/datasetCaches.js';
import { cacheTask } from '../../../src/tools/cacheTask/index.js';
import { temporaryDirectory } from '../../command.js';
import { batchesOf, features, numbersTask, seqio } from '../../inputs/seqio/corpora.js';

const out = temporaryDirectory();

const experimentOf = (...datasets: Config<BaseInput>[]): ConfiguredExperiment =>
  ({ name: 'x.Y', datasets, decodeDatasets: [] }) as unknown as ConfiguredExperiment;

/** Writes a share, and reports on it. */
async function cached(experiment: ConfiguredExperiment, index: number, count: number, shards?: number) {
  const caches = new DatasetCaches(experiment, { out, ...(shards !== undefined && { shards }) });
  const done: DoneShard[] = [];
  try {
    await caches.write({ index, count }, (shard) => done.push(shard));
    expect(done).toHaveLength(caches.shardsOf({ index, count }));
    return cacheReport({
      ...{ experiment: 'x.Y', dataset: caches.dataset, tasks: caches.finish(), shards: done },
    });
  } finally {
    caches.close();
  }
}

test('shares of all tasks of a dataset make their caches together; one that is there is kept', async () => {
  const parts = { a: numbersTask({ count: 30, sizes: [1, 2] }), b: numbersTask({ count: 5, from: 100 }) };
  const config = seqio({ mixtureOrTask: Mixture.config({ parts }), isTraining: true });
  const nested = MultiInput.config({ inputs: { text: config }, batchSize: 2, isTraining: true });
  const first = await cached(experimentOf(nested), 0, 2, 3);
  expect(first.text(plain).replace(/\w{16}/g, 'FOLDER')).toBe(
    [
      "x.Y, dataset 'train': 3 shards written, 0 kept",
      `${join(out, 'FOLDER')}: split 'all', 2 of 3 shards; it is readable once all are written.`,
      `${join(out, 'FOLDER')}: split 'all', 1 of 3 shards; it is readable once all are written.`,
    ].join('\n'),
  );
  expect((await cached(experimentOf(config), 1, 2, 3)).text(plain)).toMatch(
    /^x\.Y, dataset 'train': 3 shards written, 0 kept\n.*: split 'all', 30 examples of 30 records, 3 shards of \S+ kB together\n {2}targets: 75 tokens, 2\.5 an example, the longest 3\n.*5 examples of 5 records.*\n {2}targets: 10 tokens, 2 an example, the longest 2$/,
  );
  const report = await cached(experimentOf(config), 0, 1);
  expect(report.json()).toMatchObject({ written: 0, kept: 6, tasks: [{ finished: 3 }, { finished: 3 }] });
  await batchesOf(build(copyWith(config, { useCached: true, cacheDirectory: out })), 3);
});

/** Texts, of which one is none. */
class Broken extends IterableSource.with({}) {
  protected override records() {
    return [{ targets: '1' }, { targets: null }, { targets: '3' }];
  }
}

test('broken records end the command, or are left out, counted and told', async () => {
  const preprocessors = [Tokenize.config(), numbersTask({ count: 1 }).preprocessors[1]!];
  const task = Task.config({ source: Broken.config(), preprocessors, features: features() });
  const config = seqio({ mixtureOrTask: task });
  const wrong = "record 1: 'targets': expected token ids, got null.";
  await expect(cached(experimentOf(config), 0, 1)).rejects.toThrow(wrong);
  const text = (await cached(experimentOf(copyWith(config, { onError: 'skip' })), 0, 1)).text(plain);
  expect(text.split('\n').slice(2)).toEqual([
    '  targets: 4 tokens, 2 an example, the longest 2',
    '  1 broken record left out',
    `1 broken example left out: ${wrong}`,
  ]);
});

test('what has no tasks, and flags that make no share, are refused', async () => {
  expect(
    () =>
      new DatasetCaches(experimentOf(SyntheticLmInput.config({ seqLen: 4, vocabSize: 9, batchSize: 1 })), {}),
  ).toThrow(
    "Dataset 'input' of x.Y is a SyntheticLmInput, which has no tasks to cache. Give the dataset of a SeqioInput.",
  );
  const run = (values: object) =>
    cacheTask.run({
      positionals: ['x.Y'],
      values: { ...values },
      changes: [],
      format: 'text',
      warn: () => {},
    });
  await expect(run({ index: 1 })).rejects.toThrow(
    '--shard_index and --shard_count belong together: the share I of N. Give both, or neither.',
  );
  await expect(run({ index: 2, count: 2 })).rejects.toThrow(
    '--shard_index=2: expected an integer from 0 to 1, below --shard_count.',
  );
});
