/** @file Constants of Pax's experiments: batches of meshes, learning rates, MLPerf's rules, and constants that don't fit. */
import { expect, test } from 'vitest';
import { C4SpmdAdam } from '../../experiments/c4.js';
import { LmCloudSpmdTest } from '../../experiments/lmCloud.js';
import { constantsOf } from '../../src/experiment/index.js';
import { type Config, classOf } from '../../src/hparams/index.js';
import type { LayerNorm } from '../../src/layers/index.js';
import type { Adam, LinearRampupCosineDecay } from '../../src/learners/index.js';
import type { LanguageModel } from '../../src/models/index.js';
import { configured, meshExperiment, paxNames } from './zoo.js';

const optimizerOf = async (name: string): Promise<Config<Adam>> =>
  (await configured(name)).task.train.learner.optimizer as Config<Adam>;

test.each([
  ['lmCloud.SmallMlp', 8 * 16],
  ['lmCloud.LmCloudTransformerAdam', 16],
  ['lmCloud.LmCloudSpmdTest', 4],
  ['lmCloud.LmCloudSpmd2B', 4 * 8],
  ['lmCloud.LmCloudSpmd32B', 16 * 4 * 8],
  ['lmCloud.LmCloudSpmd1024B', 256 * 8 * 2],
  ['lmCloud.LmCloudSpmdPipeline175B', 8 * 16 * 0.75],
  ['lmCloud.LmCloudSpmdMultislice2B', 2 * 4 * 16],
  ['c4.C4Spmd1BAdam4Replicas', 4 * 32],
  ['c4.C4SpmdGpt3AdamOrgHPBS1p5k1536Replicas', 1536],
  ['c4.C4SpmdGpt3L16AdamOrgHP', 192],
  ['c4.C4SpmdPipelineGpt3SmallAdam8Replicas', 512],
  ['c4.C4SpmdPipelineGpt3SmallAdam64Replicas', 512],
  ['c4Multislice.C4Spmd22BAdam4xv4_128', 4 * 64 * 16],
  ['c4Multislice.C4Spmd22BAdam2xv4_384', 2 * 192 * 10],
  ['c4Multislice.C4SpmdGpt3AdamDataParallel2x16x16', 256],
])('%s: a batch of all devices has %i rows', async (name, rows) => {
  const { experiment, datasets } = await configured(name);
  expect((experiment as C4SpmdAdam).globalBatchSize()).toBe(rows);
  expect(datasets.map(({ batchSize }) => batchSize)).toEqual([rows, rows]);
});

test('GPT-3 has the constants of its paper', async () => {
  const { task } = await configured('c4.C4SpmdGpt3AdamOrgHP');
  const { lmTpl } = task.model as Config<LanguageModel>;
  const layer = lmTpl.stackedTransformerTpl.transformerLayerParamsTpl;
  expect(classOf(lmTpl.positionEmbTpl!).name).toBe('TrainablePositionalEmbedding');
  const norms = [layer.lnTpl, layer.trFflayerTpl.lnTpl, lmTpl.finalLnTpl] as Config<LayerNorm>[];
  expect(norms.map(({ epsilon }) => epsilon)).toEqual([1e-5, 1e-5, 1e-5]);
  expect([layer.trAttenTpl.attenLogitCap, lmTpl.softmaxTpl.softCapLogits]).toEqual([0, 0]);
  expect([lmTpl.paramsInit.scale, lmTpl.softmaxTpl.paramsInit.scale]).toEqual([0.006, 0.006]);
  const { learningRate, lrSchedule, ...adam } = await optimizerOf('c4.C4SpmdGpt3AdamOrgHP');
  expect([adam.beta1, adam.beta2, adam.epsilon, adam.decoupledWeightDecay]).toEqual([0.9, 0.95, 1e-8, 0.1]);
  expect([adam.clipThreshold, adam.clipGradientNormToValue, learningRate]).toEqual([0, 1, 6e-5]);
  const { warmupSteps, decayStart, decayEnd, minRatio } = lrSchedule as Config<LinearRampupCosineDecay>;
  expect([classOf(lrSchedule).name, warmupSteps, decayStart, decayEnd, minRatio]).toEqual([
    ...['LinearRampupCosineDecay', 265, 266, 108_600, 0.1],
  ]);
});

const mlperf = paxNames.filter((name) => name.includes('MLPerf'));

test('MLPerf’s variants are for 1536, 2048, 3072, 4096 and 8192 rows', async () => {
  const rows = await Promise.all(mlperf.map(async (name) => (await meshExperiment(name)).globalBatchSize()));
  expect(rows).toEqual([1536, 2048, 3072, 4096, 8192]);
});

test.each(mlperf)('%s follows MLPerf’s rules', async (name) => {
  const experiment = await meshExperiment(name);
  const rows = experiment.globalBatchSize();
  const { task } = await configured(name);
  const { learningRate, lrSchedule } = await optimizerOf(name);
  const { warmupSteps, decayStart, decayEnd } = lrSchedule as Config<LinearRampupCosineDecay>;
  expect(task.train.evalIntervalSteps * rows).toBe(24 * 1024);
  expect(task.train.saveIntervalSteps).toBe(2 * task.train.evalIntervalSteps);
  expect(learningRate).toBe(rows <= 3584 ? 2e-5 : 3e-5);
  // Whole steps: those that first reach 265 and 108600 steps of 1536 rows.
  expect(warmupSteps).toBe(Math.ceil((265 * 1536) / rows));
  expect(decayEnd).toBe(Math.ceil((108_600 * 1536) / rows));
  expect(decayStart).toBe(warmupSteps + 1);
});

test('where it comes out whole, MLPerf’s warm-up is 265 * 1536 rows', async () => {
  const { lrSchedule } = await optimizerOf('c4.C4SpmdPipelineGpt3AdamMLPerfHPBS1p5k768Replicas');
  expect((lrSchedule as Config<LinearRampupCosineDecay>).warmupSteps * 1536).toBe(265 * 1536);
});

test('every constant says what it is', () => {
  for (const cls of [C4SpmdAdam, LmCloudSpmdTest]) {
    const silent = Object.entries(constantsOf(cls)).filter(([, schema]) => !schema.description);
    expect(silent.map(([name]) => name)).toEqual([]);
  }
});

class Changed extends LmCloudSpmdTest.with({}) {}

test('a mesh and rows that make no whole batch are an error', () => {
  class Fraction extends Changed {
    override percoreBatchSize = 0.5;
    override iciMeshShape = [1, 3, 1];
  }
  expect(() => new Fraction().datasets()).toThrow(
    'Fraction: 0.5 rows for each of 3 devices (iciMeshShape [1,3,1], dcnMeshShape null) are 1.5 rows; a batch has a ' +
      'whole number of them.',
  );
  class Thirds extends Changed {
    override percoreBatchSize = 1 / 3;
    override iciMeshShape = [1, 3, 1];
  }
  expect(new Thirds().globalBatchSize()).toBe(1);
});

test('heads that don’t make up the depth of the model are an error', () => {
  class Heads extends Changed {
    override numHeads: number | null = 7;
  }
  expect(() => new Heads().task()).toThrow(
    "Heads: numHeads 7 and dimsPerHead 8 don't fit modelDims 64: heads times their depth must be the depth of the model, " +
      'and one of both may be null.',
  );
  class Neither extends Changed {
    override dimsPerHead: number | null = null;
  }
  expect(() => new Neither().task()).toThrow(
    "Neither: numHeads null and dimsPerHead null don't fit modelDims 64",
  );
});
