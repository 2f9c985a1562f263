/** @file Training on rewards of own samples: what is sampled, and runs that are cut off end with the same bits. */
import { cpSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { SampleDecoder } from '../../src/decoding/index.js';
import { configurable } from '../../src/hparams/index.js';
import {
  CharTokenizer,
  type DataRecord,
  Feature,
  IterableSource,
  LanguageModelFeatures,
  SeqioInput,
  Task,
  Tokenize,
} from '../../src/inputs/index.js';
import { Adam, Learner } from '../../src/learners/index.js';
import { gpt2Lm, LanguageModelGRPO } from '../../src/models/index.js';
import { runTraining } from '../../src/programs/trainJob.js';
import type { JobOptions } from '../../src/runs/options.js';
import { StopSignal } from '../../src/system/index.js';
import { type Answer, Decode, RolloutInput, SingleTask, Train } from '../../src/tasks/index.js';
import { temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';
import { metricLines, stateAt } from './runs.js';

const vocabulary = '^$abcd';

class Prompts extends IterableSource.with({}) {
  protected override records(): DataRecord[] {
    return [...'abcd'].map((letter) => ({ inputs: `${letter}a`, targets: letter }));
  }
}

/** The share of the answer's letters that are the target. */
const share = configurable(function share(_: object) {
  return ({ answer, target }: Answer) =>
    answer.length === 0 ? 0 : [...answer].filter((letter) => letter === target).length / answer.length;
}, {});

/** A job whose last update is at `numTrainSteps`; each step has a checkpoint. */
function optionsOf(numTrainSteps: number, jobLogDir = join(temporaryDirectory(), 'run')): JobOptions {
  const feature = Feature.config({ tokenizer: CharTokenizer.config({ vocabulary }), addEos: false });
  const prompts = SeqioInput.config({
    mixtureOrTask: Task.config({
      source: Prompts.config(),
      preprocessors: [Tokenize.config()],
      features: { inputs: feature, targets: feature },
    }),
    ...{ splitName: 'all', taskFeatureLengths: { inputs: 2, targets: 1 }, batchSize: 4 },
    featureConverter: LanguageModelFeatures.config(),
  });
  const decoder = SampleDecoder.config({ seqlen: 8, eosId: 1, k: 0, numSamples: 8 });
  const mdl = gpt2Lm({ vocabSize: 6, modelDims: 16, numLayers: 1, numHeads: 2, maxSeqLength: 8 });
  const task = SingleTask.config({
    model: LanguageModelGRPO.config({ mdl, beta: 0.01 }),
    train: Train.config({
      learner: Learner.config({ optimizer: Adam.config({ learningRate: 2e-2 }) }),
      ...{ numTrainSteps, summaryIntervalSteps: 1, saveIntervalSteps: 1, saveMaxToKeep: null },
      ...{ saveKeepIntervalDuration: null, evalIntervalSteps: 4, onEvalError: 'stop' },
    }),
  });
  return {
    ...{ name: 'rollouts', task, moduleUrl: import.meta.url, jobLogDir, mode: 'train', overrides: [] },
    datasets: [
      RolloutInput.config({
        ...{ name: 'train', isTraining: true, batchSize: 32, prompts, reward: share.config() },
        ...{ decode: Decode.config({ decoder }), numIterations: 2 },
      }),
    ],
    ...{ decodeDatasets: [], engine: 'onnx', numThreads: 1, peakTflops: 1, classVars: '' },
  };
}

/** Last step of the run that others are compared with; an evaluation stands at the fourth. */
const STEPS = 6;
let whole: string;

beforeAll(async () => {
  whole = await trained(STEPS);
}, 120_000);

/** The directory of a run. */
async function trained(steps: number): Promise<string> {
  const options = optionsOf(steps);
  await runTraining(options, new StopSignal());
  return options.jobLogDir;
}

const numbersOf = (directory: string, name: string): number[] =>
  metricLines(directory)
    .filter(({ program }) => program === 'train')
    .map((line) => Number(line[name]));

test('of two steps on the same answers, the second one has other ratios', () => {
  const rewards = numbersOf(whole, 'Metrics/reward');
  expect(rewards.length).toBe(STEPS);
  expect(rewards[1]).toBe(rewards[0]);
  expect(rewards[2]).not.toBe(rewards[1]);
  const losses = numbersOf(whole, 'loss');
  expect(losses[1]).not.toBe(losses[0]);
  // Sampling is no wait for data.
  const tags = new Set(metricLines(whole).flatMap((line) => Object.keys(line)));
  expect([tags.has('sampling'), tags.has('input_wait')]).toEqual([true, false]);
  // An evaluation of the next training batch samples it, and training has it again.
  expect(metricLines(whole).filter(({ program }) => program === 'eval_train').length).toBeGreaterThan(0);
});

longTest('the reward rises', async () => {
  const rewards = numbersOf(await trained(24), 'Metrics/reward');
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  expect(mean(rewards.slice(-6)) - mean(rewards.slice(0, 6))).toBeGreaterThan(0.03);
});

async function goesOnFrom(step: number): Promise<void> {
  const directory = join(temporaryDirectory(), 'run');
  cpSync(whole, directory, { recursive: true });
  for (const name of readdirSync(join(directory, 'checkpoints')))
    if (Number(name.replace('checkpoint_', '')) > step)
      rmSync(join(directory, 'checkpoints', name), { recursive: true });
  await runTraining(optionsOf(STEPS, directory), new StopSignal());
  expect(stateAt(directory, STEPS).equals(stateAt(whole, STEPS))).toBe(true);
}

test('a run that ends between two steps on the same answers and goes on comes to the same bits', () =>
  goesOnFrom(3));

longTest('so does one that ends between batches', () => goesOnFrom(4));
