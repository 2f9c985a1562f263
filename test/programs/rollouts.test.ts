/** @file Training on rewards of own samples: what is sampled, and runs that are cut off end with the same bits. */
import { cpSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { SampleDecoder } from '../../src/decoding/index.js';
import { configurable, setPath } from '../../src/hparams/index.js';
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
    ...{ decodeDatasets: [], engine: 'native', numThreads: 1, peakTflops: 1, classVars: '' },
  };
}

const STEPS = 24;
let whole: string;

beforeAll(async () => {
  const options = optionsOf(STEPS);
  whole = options.jobLogDir;
  await runTraining(options, new StopSignal());
}, 120_000);

const of = (program: string) => metricLines(whole).filter((line) => line.program === program);

test('the reward rises; of two steps on the same answers, the second one has other ratios', () => {
  const rewards = of('train').map((line) => Number(line['Metrics/reward']));
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  expect(rewards.length).toBe(STEPS);
  expect(rewards[1]).toBe(rewards[0]);
  expect(rewards[2]).not.toBe(rewards[1]);
  expect(mean(rewards.slice(-6)) - mean(rewards.slice(0, 6))).toBeGreaterThan(0.03);
  const losses = of('train').map((line) => Number(line.loss));
  expect(losses[1]).not.toBe(losses[0]);
  // An evaluation of the next training batch samples it, and training has it again.
  expect(of('eval_train').length).toBeGreaterThan(0);
});

test.each([5, 6])('a run that ends at step %i and goes on comes to the same bits', async (step) => {
  const directory = join(temporaryDirectory(), 'run');
  cpSync(whole, directory, { recursive: true });
  for (const name of readdirSync(join(directory, 'checkpoints')))
    if (Number(name.replace('checkpoint_', '')) > step)
      rmSync(join(directory, 'checkpoints', name), { recursive: true });
  await runTraining(optionsOf(12, directory), new StopSignal());
  expect(stateAt(directory, 12).equals(stateAt(whole, 12))).toBe(true);
});

class Unanswered extends IterableSource.with({}) {
  protected override records(): DataRecord[] {
    return [{ inputs: 'ab', targets: '' }];
  }
}

test('a prompt without a target is refused', async () => {
  const options = optionsOf(1);
  setPath(options.datasets[0]!, 'prompts.mixtureOrTask.source', Unanswered.config());
  await expect(runTraining(options, new StopSignal())).rejects.toThrow(
    "RolloutInput 'train': batch 0, prompt 0: it has no targets, so that its last token is a label alone; give it one target at " +
      'least, which no answer sees.',
  );
});
