/** @file What ranks tell each other, in this process: the same job, turns, and one that cannot go on. */
import { expect, test } from 'vitest';
import { broadcastBytes, gatherJson } from '../../../src/collectives/index.js';
import { build } from '../../../src/hparams/index.js';
import { hostShare, InterleavedInput, ScheduledInput, SyntheticLmInput } from '../../../src/inputs/index.js';
import { LanguageModel } from '../../../src/models/index.js';
import { agree, announce, checkSameJob, nextTurn } from '../../../src/programs/ranks/agreement.js';
import type { JobOptions, JobRanks } from '../../../src/runs/index.js';
import { SingleTask, Train } from '../../../src/tasks/index.js';
import { ranksInProcess } from './ranksInProcess.js';

const each = <T>(count: number, act: (ranks: JobRanks, rank: number) => Promise<T>) =>
  Promise.allSettled(ranksInProcess(count).map(act));
const valuesOf = <T>(settled: readonly PromiseSettledResult<T>[]) =>
  settled.map((one) => (one.status === 'fulfilled' ? one.value : String(one.reason)));

const jobOf = (seed: number, jobLogDir = 'out/run'): JobOptions => ({
  ...{ name: 'tiny', datasets: [], decodeDatasets: [], moduleUrl: import.meta.url, jobLogDir, mode: 'train' },
  task: SingleTask.config({ model: LanguageModel.config(), train: Train.config({ randomSeed: seed }) }),
  ...{ overrides: [], classVars: '' },
});

test('values of all ranks, and data of any length of rank 0', async () => {
  const texts = await each(3, (ranks, rank) => gatherJson(ranks, { rank, text: 'ü'.repeat(rank) }));
  const all = [0, 1, 2].map((rank) => ({ rank, text: 'ü'.repeat(rank) }));
  expect(valuesOf(texts)).toEqual([all, all, all]);
  const data = await each(2, (ranks) => broadcastBytes(ranks, Uint8Array.of(1, 2, ranks.rank)));
  expect(valuesOf(data)).toEqual([Uint8Array.of(1, 2, 0), Uint8Array.of(1, 2, 0)]);
  expect(valuesOf(await each(2, (ranks) => broadcastBytes(ranks, new Uint8Array())))).toEqual([
    new Uint8Array(),
    new Uint8Array(),
  ]);
});

test('ranks that run other settings are named on every rank', async () => {
  expect(valuesOf(await each(2, (ranks) => checkSameJob(ranks, jobOf(1))))).toEqual([undefined, undefined]);
  const told =
    'UsageError: Rank 1 runs another job than rank 0: job_log_dir: out/run → out/other; task.train.randomSeed: 1 → 2. ' +
    'Start all ranks with the same files, flags and environment.';
  const jobs = [jobOf(1), jobOf(2, 'out/other')];
  expect(valuesOf(await each(2, (ranks, rank) => checkSameJob(ranks, jobs[rank]!)))).toEqual([told, told]);
});

test('where one rank cannot go on, all hear why, and a stop of one reaches rank 0', async () => {
  const found = await each(3, (ranks, rank) =>
    agree(ranks, async () => {
      if (rank === 1) throw new RangeError('no more rows');
      return rank;
    }),
  );
  const others = 'JobError: Rank 1 cannot go on: no more rows';
  expect(valuesOf(found)).toEqual([others, 'RangeError: no more rows', others]);
  const asked: string[] = [];
  const stopped = await each(2, (ranks, rank) => {
    const stop = {
      received: rank === 1 ? 'SIGTERM' : undefined,
      request: (name: string) => asked.push(`${rank} ${name}`),
    };
    return agree(Object.assign(ranks, { stop: stop as never }), async () => rank);
  });
  expect([valuesOf(stopped), asked]).toEqual([[0, 1], ['0 SIGTERM']]);
});

test('turns are those of rank 0, and the last one is noted', async () => {
  const turns = await each(2, async (ranks, rank) => {
    const seen: string[] = [];
    for (const turn of ['step', 'step', 'end'] as const)
      if (rank === 0) await announce(ranks, turn);
      else seen.push(await nextTurn(ranks));
    return [seen.join(' '), ranks.hasEnded];
  });
  expect(valuesOf(turns)).toEqual([
    ['', true],
    ['step step end', true],
  ]);
});

test('hosts share the rows of every batch, or hear why they cannot', async () => {
  const rows = (batchSize: number) =>
    SyntheticLmInput.config({ batchSize, seqLen: 4, vocabSize: 50, isTraining: true });
  const first = async (config: ReturnType<typeof rows>) => {
    const { ids } = (await build(config).getNext()) as unknown as { ids: { data: Int32Array } };
    return [...ids.data];
  };
  const shares = await Promise.all([0, 1].map((host) => first(hostShare(rows(4), host, 2) as never)));
  expect(shares.flat()).toEqual(await first(rows(4)));
  const turns = InterleavedInput.config({ inputs: { a: rows(4), b: rows(6) }, isTraining: true });
  const grows = ScheduledInput.config({
    ...{ input: turns.inputs.a!, isTraining: true },
    phases: [{ fromStep: 0 }, { fromStep: 2, batchSize: 8 }],
  });
  for (const config of [turns, grows])
    expect(build(hostShare(config, 1, 2)).getGlobalBatchSize()).toBe(build(config).getGlobalBatchSize());
  expect(() => hostShare(rows(3), 0, 2)).toThrow(
    "Input 'train': batchSize is 3, which 2 hosts cannot share evenly: set it to a multiple of 2, or start fewer.",
  );
  expect(() => hostShare(grows, 0, 8)).toThrow(
    "Input 'train': batchSize is 4, which 8 hosts cannot share evenly",
  );
  expect(() => hostShare(hostShare(rows(4), 0, 2), 0, 2)).toThrow(
    "Input 'train': numInfeedHosts is 2, and 2 ranks share its rows: leave it at 1.",
  );
});
