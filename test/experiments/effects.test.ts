/** @file No constant of Pax's experiments does nothing: each, changed, changes the configs. */
import { beforeAll, expect, test } from 'vitest';
import type { ConfiguredExperiment, Override } from '../../src/cli/index.js';
import { constantsOf } from '../../src/experiment/index.js';
import { isEqual } from '../../src/hparams/index.js';
import { configured } from './zoo.js';

/** Another value for each constant of the language models on text, which have all there are. */
const otherValues: Readonly<Record<string, string>> = {
  percoreBatchSize: '2',
  percoreEvalBatchSize: '4',
  maxSeqLen: '512',
  iciMeshShape: '[2, 4, 2]',
  dcnMeshShape: '[2, 1, 1]',
  numTrainSteps: '10',
  learningRate: 'null',
  weightDecay: '0.5',
  clipGradientNormToValue: '2',
  adamBeta1: '0.8',
  adamBeta2: '0.8',
  adamEpsilon: '1e-3',
  adamClipThreshold: '0',
  lrSchedule: 'linear_rampup_cosine_decay',
  lrWarmup: 'null',
  lrDecayEnd: 'null',
  lrMinRatio: '0.5',
  checkpointEveryNSteps: '7',
  checkpointMaxToKeep: '7',
  summaryIntervalSteps: '7',
  evalIntervalSteps: '7',
  numLayers: '2',
  modelDims: '1024',
  hiddenDims: '1000',
  numHeads: '16',
  dimsPerHead: '64',
  vocabSize: '256',
  fpropDtype: 'bfloat16',
  packedInput: 'false',
  separateEmbedding: 'true',
  trainablePositionEmb: 'false',
  trainablePeMaxSeqLen: '2048',
  useRotaryPositionEmb: 'true',
  normPolicy: 'post',
  normalizationCls: 'RmsNorm',
  layernormEpsilon: '1e-3',
  activationCls: 'ReLU',
  useGatedActivation: 'true',
  combineQkv: 'false',
  useBias: 'true',
  useRepeatedLayer: 'false',
  checkpointPolicy: 'SAVE_NOTHING',
  dropoutProb: '0.1',
  softmaxCapLogits: '0',
  attenLogitCap: '0',
  trainFiles: 'a.txt',
  evalFiles: 'a.txt',
  trainingSeed: '1',
};

/** Those of a pipeline, with the others that have to change beside. */
const pipelineValues: Readonly<Record<string, readonly (readonly [path: string, text: string])[]>> = {
  numStages: [['numStages', 'null']],
  circularRepeat: [['circularRepeat', '3']],
  numMicrobatches: [
    ['microbatchSize', 'null'],
    ['numMicrobatches', '8'],
  ],
  microbatchSize: [['microbatchSize', '8']],
  streamIo: [['streamIo', 'false']],
  pipelineBroadcastInputs: [['pipelineBroadcastInputs', 'true']],
};

const set = (path: string, text: string): Override => ({
  ...{ kind: 'set', path, text, origin: `--set ${path}=${text}` },
});
// The size of the table of positions is that of a trained one, and policies are those of repeated layers.
const always = ['trainablePositionEmb', 'useRepeatedLayer'].map((path) => set(path, 'true'));

let unchanged: ConfiguredExperiment;
beforeAll(async () => {
  unchanged = await configured('c4.C4SpmdAdam', always);
});

test('the list of constants is complete', () => {
  expect([...Object.keys(otherValues), ...Object.keys(pipelineValues)].sort()).toEqual(
    Object.keys(constantsOf(unchanged.experiment.constructor)).sort(),
  );
});

test.each(Object.entries(otherValues))('%s=%s', async (name, text) => {
  const changed = await configured('c4.C4SpmdAdam', [...always, set(name, text)]);
  const same = [changed.task, ...changed.datasets].map((config, i) =>
    isEqual(config, [unchanged.task, ...unchanged.datasets][i]),
  );
  expect(same).toContain(false);
});

test.each(Object.entries(pipelineValues))('a pipeline: %s', async (_, values) => {
  const name = 'lmCloud.LmCloudSpmdPipelineMultislice2B';
  const [before, after] = [
    await configured(name),
    await configured(
      name,
      values.map(([path, text]) => set(path, text)),
    ),
  ];
  expect(isEqual(before.task, after.task)).toBe(false);
});

const mlpValues = { numLayer: '2', inputDim: '16', hiddenDim: '16' };
test.each(Object.entries(mlpValues))('SmallMlp: %s=%s', async (name, text) => {
  const [before, after] = [
    await configured('lmCloud.SmallMlp'),
    await configured('lmCloud.SmallMlp', [set(name, text)]),
  ];
  expect(isEqual(before.task, after.task)).toBe(false);
});
