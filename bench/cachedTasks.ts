/** @file `npm run bench:cached-tasks`: byte-pair text cached once, and packed rows of it, beside rows of raw text. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, type Config, copyWith } from '../src/hparams/index.js';
import {
  AppendEos,
  CacheDatasetPlaceholder,
  Feature,
  LanguageModelFeatures,
  PretrainedTokenizer,
  Rekey,
  SeqioInput,
  SplitTokens,
  Task,
  TextFileSource,
  Tokenize,
} from '../src/inputs/index.js';
import { finishCache, numShardsOf, writeShards } from '../src/inputs/seqio/cacheShards.js';

const ROWS = 64;
const LENGTH = 256;
const cacheDirectory = mkdtempSync(join(tmpdir(), 'luthier-bench-'));

const tokenizer = PretrainedTokenizer.config({
  ...{ file: 'experiments/typescript.tokenizer.json', padToken: '<pad>', eosToken: '<eos>' },
});
const input = SeqioInput.config({
  mixtureOrTask: Task.config({
    source: TextFileSource.config({ files: ['pkg:typescript/lib/*.d.ts'] }),
    preprocessors: [
      ...[Rekey.config({ keyMap: { targets: 'text' } }), Tokenize.config(), AppendEos.config()],
      ...[CacheDatasetPlaceholder.config(), SplitTokens.config()],
    ],
    features: { targets: Feature.config({ tokenizer }) },
  }),
  ...{ splitName: 'all', taskFeatureLengths: { targets: LENGTH }, batchSize: ROWS },
  ...{ featureConverter: LanguageModelFeatures.config({ pack: true }), isTraining: true, cacheDirectory },
});

const secondsSince = (begun: number): number => (performance.now() - begun) / 1000;

/** Packs as many rows as the corpus has, about. */
async function read(what: string, config: Config<SeqioInput>, tokens: number): Promise<void> {
  const begun = performance.now();
  const source = build(config);
  await source.getNext();
  const first = secondsSince(begun);
  const batches = Math.ceil(tokens / (ROWS * LENGTH));
  for (let i = 1; i < batches; i++) await source.getNext();
  const seconds = secondsSince(begun);
  await source.close();
  const rate = (batches * ROWS * LENGTH) / seconds / 1e6;
  console.log(
    `${what}: first batch ${first.toFixed(2)} s, an epoch ${seconds.toFixed(2)} s, ${rate.toFixed(2)} M tokens/s`,
  );
}

try {
  const [cache] = build(copyWith(input, { useCached: true })).taskCaches(cacheDirectory);
  const begun = performance.now();
  const n = numShardsOf(cache!, undefined);
  for (const _ of writeShards(cache!, n, { index: 0, count: 1 }));
  const { statistics, shards } = finishCache(cache!, n).manifest!;
  const { tokens } = statistics.features.targets!;
  const bytes = cache!.subject.records.files.reduce((sum, { size }) => sum + size, 0);
  const written = shards.reduce((sum, shard) => sum + shard.bytes, 0);
  const seconds = secondsSince(begun);
  console.log(
    `cached ${(bytes / 1e6).toFixed(1)} MB, ${tokens} tokens, as ${(written / 1e6).toFixed(1)} MB: ${seconds.toFixed(2)} s, ` +
      `${(bytes / 1e6 / seconds).toFixed(1)} MB/s`,
  );
  cache!.subject.records.close();
  await read('raw text', input, tokens);
  await read('cached', copyWith(input, { useCached: true }), tokens);
} finally {
  rmSync(cacheDirectory, { recursive: true, force: true });
}
