/** @file The parameter counts of Pax's experiments, computed by hand from published sizes. */
import { expect, test } from 'vitest';
import { analyze } from '../../src/analysis/analyze.js';
import { readDevice } from '../../src/analysis/device.js';
import { toJSON } from '../../src/hparams/index.js';
import { longTest } from '../longTest.js';
import { configured, countParameters, paxNames } from './zoo.js';

/** Sizes of a published model: layers L, depth D, heads N, depth of a head H, vocabulary V. */
interface Sizes {
  readonly L: number;
  readonly D: number;
  readonly N: number;
  readonly H: number;
  readonly V: number;
}

/**
 * A layer has two norms of scale and bias (4 D), the projections of attention (query, key, value and output: 4 D N H),
 * a trained scale of queries (H), and two feed-forward layers to 4 D and back with biases (8 D^2 + 5 D). Around the
 * layers stand a last norm (2 D) and the table of embeddings, which is the softmax's too, with a bias (D V + V).
 */
const lm = ({ L, D, N, H, V }: Sizes): number =>
  L * (4 * D + 4 * D * N * H + H + 8 * D * D + 5 * D) + 2 * D + D * V + V;

/**
 * As `lm`, with biases of attention (3 N H + D) instead of the scale of queries, no bias of the softmax, and a table of
 * 16384 positions.
 */
const gpt3 = ({ L, D, N, H, V }: Sizes): number =>
  L * (4 * D + 4 * D * N * H + (3 * N * H + D) + 8 * D * D + 5 * D) + 2 * D + D * V + 16_384 * D;

/** `layers` products with biases: from `io` to `hidden`, between, and back; and a softmax of io by io with bias. */
const mlp = (layers: number, io: number, hidden: number): number =>
  io * hidden + hidden + (layers - 2) * (hidden * hidden + hidden) + hidden * io + io + io * io + io;

/** Heads of depth 128, a vocabulary of 32000. */
const spmd = (L: number, D: number): number => lm({ L, D, N: D / 128, H: 128, V: 32_000 });

const gpt3Sizes = { L: 96, D: 12_288, N: 96, H: 128, V: 50_257 };
const padded = { ...gpt3Sizes, V: 51_200 };
const small = { L: 24, D: 3072, N: 24, H: 128, V: 51_200 };
const maxText = { L: 48, D: 6144, N: 24, H: 256, V: 32_768 };
const maxText384 = { L: 24, D: 9216, N: 24, H: 384, V: 32_768 };
const maxText8 = { L: 16, D: 2048, N: 8, H: 256, V: 32_768 };

const expected: Readonly<Record<string, number>> = {
  'lmCloud.LargeMlp': mlp(8, 4096, 7168),
  'lmCloud.SmallMlp': mlp(8, 1024, 1024),
  'lmCloud.LmCloudTransformerAdam': lm({ L: 32, D: 1024, N: 16, H: 64, V: 32_000 }),
  'lmCloud.LmCloudTransformerAdamTest': lm({ L: 2, D: 1024, N: 16, H: 64, V: 32_000 }),
  'lmCloud.LmCloudTransformerAdamLimitSteps': lm({ L: 10, D: 1024, N: 16, H: 64, V: 32_000 }),
  'lmCloud.LmCloudSpmdTest': lm({ L: 2, D: 64, N: 8, H: 8, V: 32_000 }),
  'lmCloud.LmCloudSpmd2B': spmd(18, 3072),
  'lmCloud.LmCloudSpmd2BLimitSteps': spmd(18, 3072),
  'lmCloud.LmCloudSpmdMultislice2B': spmd(18, 3072),
  'lmCloud.LmCloudSpmdPipelineMultislice2B': spmd(18, 3072),
  'lmCloud.LmCloudSpmdPipelineMultislice2BCircular': spmd(18, 3072),
  'lmCloud.LmCloudSpmdPipeline9B': spmd(48, 4096),
  'lmCloud.LmCloudSpmd32B': spmd(40, 8192),
  'lmCloud.LmCloudSpmd64B': spmd(51, 10_240),
  'lmCloud.LmCloudSpmd128B': spmd(71, 12_288),
  'lmCloud.LmCloudSpmdPipeline175B': spmd(96, 12_288),
  'lmCloud.LmCloudSpmd256B': spmd(80, 16_384),
  'lmCloud.LmCloudSpmd512B': spmd(102, 20_480),
  'lmCloud.LmCloudSpmd1024B': spmd(142, 24_576),
  'c4.LmCloudSpmdAdam': spmd(2, 2048),
  'c4.LmCloudSpmdAdamLimitSteps': spmd(2, 2048),
  'c4.C4SpmdAdam': lm({ L: 24, D: 2048, N: 32, H: 64, V: 32_128 }),
  'c4.C4Spmd1BAdam4Replicas': spmd(13, 2560),
  'c4.C4Spmd1BAdam4ReplicasLimitSteps': spmd(13, 2560),
  'c4.C4Spmd2BAdam4Replicas': spmd(18, 3072),
  'c4.C4Spmd16BAdam32Replicas': spmd(36, 6144),
  'c4.C4Spmd32BAdam64Replicas': spmd(40, 8192),
  'c4.C4SpmdGpt3AdamOrgHP': gpt3(gpt3Sizes),
  'c4.C4SpmdGpt3AdamOrgHPBS1p5k1536Replicas': gpt3(padded),
  'c4.C4SpmdPipelineGpt3AdamOrgHPBS1p5k768Replicas': gpt3(padded),
  'c4.C4SpmdPipelineGpt3AdamMLPerfHPBS1p5k768Replicas': gpt3(padded),
  'c4.C4SpmdPipelineGpt3AdamMLPerfHPBS2k512Replicas': gpt3(padded),
  'c4.C4SpmdPipelineGpt3AdamMLPerfHPBS3k768Replicas': gpt3(padded),
  'c4.C4SpmdPipelineGpt3AdamMLPerfHPBS4k1024Replicas': gpt3(padded),
  'c4.C4SpmdPipelineGpt3AdamMLPerfHPBS8k1024Replicas': gpt3(padded),
  'c4.C4SpmdGpt3L16AdamOrgHP': gpt3({ ...gpt3Sizes, L: 16 }),
  'c4.C4SpmdPipelineGpt3SmallAdam8Replicas': gpt3(small),
  'c4.C4SpmdPipelineGpt3SmallAdam64Replicas': gpt3(small),
  'c4Multislice.C4Spmd22BAdamMaxText': lm(maxText),
  'c4Multislice.C4Spmd22BAdam1xv4_128': lm(maxText),
  'c4Multislice.C4Spmd22BAdam1xv4_128LimitSteps': lm(maxText),
  'c4Multislice.C4Spmd22BAdam2xv4_128': lm(maxText),
  'c4Multislice.C4Spmd22BAdam2xv4_128LimitSteps': lm(maxText),
  'c4Multislice.C4Spmd22BAdam4xv4_128': lm(maxText),
  'c4Multislice.C4Spmd22BAdam4xv4_128LimitSteps': lm(maxText),
  'c4Multislice.C4Spmd22BAdam1xv4_384': lm(maxText384),
  'c4Multislice.C4Spmd22BAdam2xv4_384': lm(maxText384),
  'c4Multislice.C4Spmd22BAdam1xv4_8': lm(maxText8),
  'c4Multislice.C4Spmd22BAdam1xv4_8LimitSteps': lm(maxText8),
  'c4Multislice.C4Spmd22BAdam2xv4_8': lm(maxText8),
  'c4Multislice.C4Spmd22BAdam2xv4_8LimitSteps': lm(maxText8),
  'c4Multislice.C4Spmd22BAdam4xv4_8': lm(maxText8),
  'c4Multislice.C4Spmd22BAdam4xv4_8LimitSteps': lm(maxText8),
  'c4Multislice.C4SpmdGpt3AdamDataParallel2x16x16': gpt3(gpt3Sizes),
};

test('there is a count for every experiment of Pax', () => {
  expect(Object.keys(expected).sort()).toEqual([...paxNames].sort());
});

/** Counts of models by their configs: experiments that differ in batches and schedules have one model. */
const counts = new Map<string, number>();

test.each(Object.entries(expected))('%s has %i parameters', async (name, count) => {
  const experiment = await configured(name);
  const model = JSON.stringify(toJSON(experiment.task.model));
  const counted = counts.get(model) ?? countParameters(experiment);
  counts.set(model, counted);
  expect(counted).toBe(count);
});

async function expectAnalyzed(name: string): Promise<void> {
  const { parameters, trainableParameters, layers } = analyze(await configured(name));
  expect([parameters, trainableParameters, layers[0]!.parameters]).toEqual(Array(3).fill(expected[name]));
}

test.each([['lmCloud.SmallMlp'], ['lmCloud.LmCloudSpmdTest']])(
  'luthier analyze says the same of %s',
  expectAnalyzed,
);

longTest('luthier analyze says the same of large models', async () => {
  for (const name of ['lmCloud.LmCloudSpmd2B', 'c4.C4Spmd1BAdam4Replicas', 'c4.C4SpmdGpt3L16AdamOrgHP'])
    await expectAnalyzed(name);
});

test.each([
  ['lmCloud.LmCloudSpmd1024B', 1_029_999_477_760],
  ['c4.C4SpmdGpt3AdamOrgHP', 174_780_420_096],
])('the sum for %s, written out', (name, count) => {
  expect(expected[name]).toBe(count);
});

test('the sizes that names tell are the sizes of the models, within a tenth', () => {
  for (const [name, count] of Object.entries(expected)) {
    const told = /Spmd(\d+)B/.exec(name)?.[1];
    // MaxText's small relatives keep the name of the model of 22 billion.
    if (told === undefined || name.includes('v4_8') || name.includes('v4_384')) continue;
    expect(Math.abs(count / (Number(told) * 1e9) - 1), name).toBeLessThan(0.105);
  }
});

longTest(
  'a step of a published model that keeps nothing for the gradient fits its published slice of TPU v4',
  async () => {
    const { memoryBytes } = readDevice('devices/tpu-v4.yaml');
    for (const name of [
      ...['C4Spmd1BAdam4Replicas', 'C4Spmd2BAdam4Replicas', 'C4Spmd16BAdam32Replicas'].map(
        (each) => `c4.${each}`,
      ),
      ...['c4.C4Spmd32BAdam64Replicas', 'c4Multislice.C4Spmd22BAdam1xv4_128', 'lmCloud.LmCloudSpmd128B'],
    ])
      expect(analyze(await configured(name)).memory.total, name).toBeLessThan(memoryBytes);
  },
);
