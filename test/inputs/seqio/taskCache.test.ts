/** @file Caches of tasks: the same batches as without, each example once, and what is told where a cache does not fit. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { build, type Config, type ConfigValues, configurable, copyWith } from '../../../src/hparams/index.js';
import {
  AppendEos,
  CacheDatasetPlaceholder,
  type Example,
  FilterByLength,
  LanguageModelFeatures,
  Mixture,
  type PreprocessContext,
  ReduceConcatTokens,
  type SeqioInput,
  SplitTokens,
  type Task,
  Tokenize,
  Trim,
} from '../../../src/inputs/index.js';
import { finishCache, numShardsOf, writeShards } from '../../../src/inputs/seqio/cacheShards.js';
import type { CacheManifest } from '../../../src/inputs/seqio/taskCache.js';
import { temporaryDirectory } from '../../command.js';
import { batchesOf, numbersIn, numbersTask, rising, seqio } from './corpora.js';

const cacheDirectory = temporaryDirectory();

/** Writes the caches of an input's tasks. */
function cached(config: Config<SeqioInput>, shards?: number): CacheManifest[] {
  return build(copyWith(config, { useCached: true }))
    .taskCaches(config.cacheDirectory)
    .map((cache) => {
      const n = numShardsOf(cache, shards);
      // Two processes would do so side by side.
      for (const index of [1, 0]) for (const _ of writeShards(cache, n, { index, count: 2 }));
      const { manifest } = finishCache(cache, n);
      cache.subject.records.close();
      return manifest!;
    });
}

const folderOf = ({ fingerprint }: CacheManifest): string => join(cacheDirectory, fingerprint);

/** Adds `by` to the ids; `code` stands for the code, which no config says. */
let code = 1;
const shifted = configurable(
  function shifted({ by }: { by: number }) {
    return (example: Example) => ({
      targets: (example.targets as Int32Array).map((id) => id + by * code),
    });
  },
  { by: z.int() },
);

/** Draws the last id. */
const drawn = configurable(function drawn() {
  return (example: Example, { draws }: PreprocessContext) => ({
    targets: Int32Array.of(...(example.targets as Int32Array).slice(0, 1), 2 + draws.below(1000)),
  });
}, {});

const placeholder = CacheDatasetPlaceholder.config();
const end = AppendEos.config();

function input(
  preprocessors: ConfigValues<Task>['preprocessors'],
  values: Partial<ConfigValues<SeqioInput>> = {},
): Config<SeqioInput> {
  const mixtureOrTask = numbersTask({ count: 50, sizes: [1, 4, 2, 7] }, preprocessors);
  return seqio({ mixtureOrTask, cacheDirectory, ...values });
}

const packed = LanguageModelFeatures.config({ pack: true });

test('where each record gives one cached example, batches and states are those without a cache', async () => {
  const steps = [Tokenize.config(), shifted.config({ by: 0 }), placeholder, drawn.config(), end];
  const [alone, other] = [steps, [Tokenize.config(), end]].map(
    (preprocessors) => input(preprocessors).mixtureOrTask,
  );
  const mixture = Mixture.config({ parts: { a: alone!, b: other!, again: alone! } });
  const training = { isTraining: true, inputRandomSeed: 3, batchSize: 4 };
  const inputs = [
    input(steps, training),
    input(steps, { ...training, featureConverter: packed }),
    input(steps, { ...training, mixtureOrTask: mixture, featureConverter: packed }),
    input(steps),
  ];
  const manifests = inputs.flatMap((config) => cached(config, 3));
  expect(new Set(manifests.map(({ fingerprint }) => fingerprint)).size).toBe(2);
  expect(readdirSync(folderOf(manifests[0]!))).toEqual([
    ...['00000-of-00003.records', '00001-of-00003.records', '00002-of-00003.records', 'manifest.json'],
  ]);
  expect(manifests[0]).toMatchObject({
    ...{ split: 'all', records: 50 },
    statistics: { examples: 50, skipped: 0, features: { targets: { tokens: 173, longest: 7 } } },
  });
  for (const config of inputs) {
    const [uncached, reading] = [false, true].map((useCached) => build(copyWith(config, { useCached })));
    expect(await batchesOf(reading!, 14)).toEqual(await batchesOf(uncached!, 14));
    expect(reading!.getState()).toEqual(uncached!.getState());
    expect(reading!.dataIdentity().contents).toBe(uncached!.dataIdentity().contents);
    await reading!.close();
  }
});

test('where filters, splits and joins are cached, an epoch gives each of their examples once', async () => {
  const split = SplitTokens.config({ maxTokensPerSegment: 3 });
  const steps = [Tokenize.config(), FilterByLength.config({ min: 2 }), split, placeholder, end];
  const training = { isTraining: true, featureConverter: packed };
  const [manifest] = cached(input(steps, training), 4);
  // 50 records of 1, 4, 2 and 7 ids: those of 4 give two pieces, those of 7 three.
  expect(manifest!.statistics).toEqual({
    ...{ examples: 13 * 2 + 12 + 12 * 3, skipped: 0 },
    features: { targets: { tokens: 13 * 4 + 12 * 2 + 12 * 7, longest: 3 } },
  });
  const hosts = [0, 1].map((infeedHostIndex) =>
    build(
      input(steps, {
        ...{ isTraining: true, repeat: false, useCached: true, featureConverter: packed },
        ...{ numInfeedHosts: 2, infeedHostIndex },
      }),
    ),
  );
  const given = numbersIn((await Promise.all(hosts.map((host) => batchesOf(host)))).flat());
  const uncached = await batchesOf(
    build(input(steps, { isTraining: true, repeat: false, featureConverter: packed })),
  );
  expect(given).toHaveLength(74);
  expect(rising(given)).toEqual(rising(numbersIn(uncached)));

  // What is left to do gives a row for each example, so rows are numbered: an epoch is 74 rows.
  const training74 = build(input(steps, { isTraining: true, useCached: true, batchSize: 74 }));
  const rows = async () => ((await training74.getNext()).labels as { data: Int32Array }).data;
  const sortedRows = (data: Int32Array) =>
    Array.from({ length: 74 }, (_, b) => String(data.slice(8 * b, 8 * b + 8))).sort();
  const [first, second] = [await rows(), await rows()];
  expect(sortedRows(second)).toEqual(sortedRows(first));
  expect(second).not.toEqual(first);
  expect(training74.getState()).toMatchObject({ position: 148 });

  const joined = [Tokenize.config(), ReduceConcatTokens.config({ batchSize: 4 })];
  expect(cached(input(joined), 3)[0]!.statistics).toMatchObject({
    ...{ examples: 4 + 5 + 5, features: { targets: { tokens: 173 } } },
  });
});

test.each([
  [[Tokenize.config(), drawn.config()], 'preprocessors[1] (a function) draws at random, anew in each epoch'],
  [
    [Tokenize.config(), SplitTokens.config({ minTokensPerSegment: 1, maxTokensPerSegment: 3 }), placeholder],
    'preprocessors[1] (SplitTokens) draws at random, anew in each epoch',
  ],
  [
    [Tokenize.config(), Trim.config()],
    "preprocessors[1] (Trim) reads taskFeatureLengths['targets'], which each input sets for itself",
  ],
])('what differs between readers is not cached: %#', (steps, what) => {
  const refused = () => cached(input(steps));
  expect(refused).toThrow(
    `${what}, so its results cannot be cached. Put CacheDatasetPlaceholder before it, so that it runs each time that ` +
      'examples are read.',
  );
});

test('a placeholder stands once, and may require a cache', async () => {
  expect(() => build(input([placeholder, Tokenize.config(), placeholder]))).toThrow(
    'Task.preprocessors: expected at most one CacheDatasetPlaceholder, got 2. Keep the one up to which examples are to be cached.',
  );
  const required = input([Tokenize.config(), CacheDatasetPlaceholder.config({ required: true }), end]);
  expect(() => build(required)).toThrow(
    "Input 'input': the CacheDatasetPlaceholder of a task sets required: the task can be read from its cache only. Set useCached: " +
      'true, and run npx luthier cache-task EXP --dataset=input once.',
  );
  cached(required);
  expect(await batchesOf(build(copyWith(required, { useCached: true })))).toHaveLength(25);
});

test('a config that changes has a cache of its own; code that changes and shards that are damaged are found', async () => {
  const of = (by: number, values = {}) =>
    input([Tokenize.config(), shifted.config({ by }), placeholder, end], { useCached: true, ...values });
  const [manifest] = cached(of(1), 2);
  const command = 'npx luthier cache-task EXP --dataset=input';
  const read = (config = of(1)) => batchesOf(build(config));
  await read();
  const [changed] = build(of(2)).taskCaches(cacheDirectory);
  await expect(read(of(2))).rejects.toThrow(
    `Input 'input': there is no cache of split 'all' of this task in ${changed!.folder}; the name tells source, tokenizers ` +
      `and preprocessors. Make it: ${command}`,
  );
  expect(changed!.fingerprint).not.toBe(manifest!.fingerprint);
  const others = [of(1, { splitName: 'all[:40]' }), of(1, { onError: 'skip' })];
  for (const other of others) await expect(read(other)).rejects.toThrow('there is no cache of split');
  // What stands behind the placeholder is none of the cache's business.
  await read(input([Tokenize.config(), shifted.config({ by: 1 }), placeholder], { useCached: true }));

  code = 2;
  await expect(read()).rejects.toThrow(
    `Input 'input': ${folderOf(manifest!)}/00000-of-00002.records, example 0: the preprocessors make another example of record 0 ` +
      `than was cached, so their code has changed. Remove ${folderOf(manifest!)}, and run ${command} again.`,
  );
  code = 1;

  const path = join(folderOf(manifest!), '00001-of-00002.records');
  const whole = readFileSync(path);
  const writeDamaged = (at: number): void => {
    const damaged = Buffer.from(whole);
    damaged[at]! ^= 1;
    writeFileSync(path, damaged);
  };
  writeDamaged(500);
  await expect(read()).rejects.toThrow(
    /00001-of-00002\.records, byte 4\d\d: record \d+ is damaged\. Write the file anew\. It is part of a cache: npx luthier cache-task EXP --dataset=input writes it again\.$/,
  );
  writeDamaged(whole.length - 1);
  await expect(read()).rejects.toThrow('the record file ends before its index, or is damaged there.');
  rmSync(path);
  await expect(read()).rejects.toThrow(/ENOENT.* It is part of a cache/);

  const manifestPath = join(folderOf(manifest!), 'manifest.json');
  const sound = readFileSync(manifestPath, 'utf8');
  const { shards } = manifest!;
  const traversal = { ...shards[0]!, file: '../../00000-of-00002.records' };
  const named = `SeqioInput 'input': ${manifestPath} is damaged: `;
  for (const [text, problem] of [
    ['{}', 'fingerprint: Invalid input: expected string, received undefined'],
    ['null', 'Invalid input: expected object, received null'],
    ['[1]', 'Invalid input: expected object, received array'],
    ['{"fingerprint": ', /Unexpected end of JSON input/],
    [
      { ...manifest!, shards: [{ ...shards[0]!, file: 7 }] },
      'shards.0.file: Invalid input: expected string, received number',
    ],
    [{ ...manifest!, shards: [traversal, shards[1]] }, /shards\.0\.file: Invalid string: must match pattern/],
    [{ ...manifest!, shards: [] }, /shards: Too small/],
    [
      { ...manifest!, shards: [shards[1]] },
      'shard 0 of 1 is 00001-of-00002.records; expected 00000-of-00001.records',
    ],
    [{ ...manifest!, fingerprint: 'other' }, 'it is of the cache other, in the folder of another'],
  ] as const) {
    writeFileSync(manifestPath, typeof text === 'string' ? text : JSON.stringify(text));
    const { message } = await read().then(
      () => new Error('none'),
      (error: Error) => error,
    );
    expect(message.startsWith(named), message).toBe(true);
    const told = message.slice(named.length).replace(`. Remove it; ${command} writes it anew.`, '');
    if (typeof problem === 'string') expect(told).toBe(problem);
    else expect(told).toMatch(problem);
    expect(told).not.toContain('\n');
  }
  rmSync(manifestPath);
  execFileSync('mkfifo', [manifestPath]);
  await expect(read()).rejects.toThrow(
    `${named}${manifestPath} is not a regular file but a named pipe. Remove it; ${command} writes it anew.`,
  );
  rmSync(manifestPath);
  writeFileSync(manifestPath, sound);

  const first = readFileSync(join(folderOf(manifest!), '00000-of-00002.records'));
  for (const damage of [() => writeDamaged(500), () => writeDamaged(whole.length - 1), () => rmSync(path)]) {
    damage();
    expect(cached(of(1))[0]).toEqual(manifest);
    expect(readFileSync(path)).toEqual(whole);
  }
  expect(readFileSync(join(folderOf(manifest!), '00000-of-00002.records'))).toEqual(first);
  expect(() => cached(of(1), 3)).toThrow(
    `${folderOf(manifest!)} has shards of 2, and 3 are asked for. Give 2, or remove the folder and run ${command} again.`,
  );
});

test('a split of which nothing is left has no cache', () => {
  const nothing = input([Tokenize.config(), FilterByLength.config({ min: 9 })]);
  expect(() => cached(nothing)).toThrow(
    "the preprocessors keep none of the 50 records of split 'all', so there is nothing to cache.",
  );
});
