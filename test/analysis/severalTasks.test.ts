/** @file Analyses, fingerprints and traces of several tasks that are trained in turn: each is as it would be alone. */
import { expect, test } from 'vitest';
import { analyze } from '../../src/analysis/analyze.js';
import { trainingCost } from '../../src/analysis/device.js';
import type { ConfiguredExperiment } from '../../src/cli/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import {
  BaseWhichInput,
  ByWeight,
  InTurn,
  InterleavedInput,
  SyntheticLmInput,
} from '../../src/inputs/index.js';
import { AdamW, type BaseOptimizer, Learner, Sgd } from '../../src/learners/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { Fingerprints } from '../../src/review/fingerprints/experimentFingerprints.js';
import { MultiTask, SingleTask, Train } from '../../src/tasks/index.js';
import { traceSteps } from '../../src/tools/validate/traceSteps.js';

const rows = (seqLen: number, batchSize: number) =>
  SyntheticLmInput.config({ seqLen, batchSize, vocabSize: 32 });
const lm = rows(16, 8);
const copy = rows(12, 3);

function parts(optimizer: Config<BaseOptimizer>, scaleByVocabulary = 32) {
  const sizes = { modelDims: 16, numLayers: 1, numHeads: 2, maxSeqLength: 16, dropoutProb: 0 };
  const lmTpl = gpt2Lm({ ...sizes, vocabSize: 32 });
  if (scaleByVocabulary !== 32) lmTpl.softmaxTpl.softCapLogits = scaleByVocabulary;
  return {
    model: LanguageModel.config({ lmTpl }),
    train: Train.config({ learner: Learner.config({ optimizer }), numTrainSteps: 30 }),
  };
}

const adam = () => AdamW.config({ learningRate: 1e-3 });
const sgd = (learningRate = 0.1) => Sgd.config({ learningRate });
const alone = (task: ReturnType<typeof parts>, input: typeof lm) =>
  ({
    task: SingleTask.config(task),
    datasets: [SyntheticLmInput.config({ ...input, isTraining: true })],
    decodeDatasets: [],
  }) as unknown as ConfiguredExperiment;
const together = (copying = parts(sgd()), inputs: Record<string, typeof lm> = { lm, copy }) =>
  ({
    task: MultiTask.config({ ...parts(adam()), auxiliaryTasks: { copy: SingleTask.config(copying) } }),
    datasets: [
      InterleavedInput.config({
        ...{ inputs, isTraining: true },
        which: InTurn.config({ pattern: Object.keys(inputs).length === 1 ? null : ['copy', 'lm', 'copy'] }),
      }),
    ],
    decodeDatasets: [],
  }) as unknown as ConfiguredExperiment;

test('costs are those of each task alone, and a device holds what each of them needs', () => {
  const [one, two] = [analyze(alone(parts(adam()), lm)), analyze(alone(parts(sgd()), copy))];
  const both = analyze(together());
  const { memory, auxiliary, ...main } = both;
  const { memory: _, ...expected } = one;
  expect(main).toEqual(expected);
  const { tokensPerStep, unit, forwardFlopsPerToken, flopsPerStep, computedFlopsPerStep } = two;
  expect(auxiliary).toEqual({
    copy: { tokensPerStep, unit, forwardFlopsPerToken, flopsPerStep, computedFlopsPerStep, share: 2 / 3 },
  });
  expect([both.tokensPerStep, tokensPerStep]).toEqual([8 * 16, 3 * 12]);
  for (const own of ['optimizer', 'batches', 'activations', 'working'] as const)
    expect(memory[own], own).toBe(one.memory[own] + two.memory[own]);
  expect([memory.variables, memory.gradients]).toEqual([one.memory.variables, one.memory.gradients]);
  const cost = trainingCost(both)!;
  expect(cost.tokens).toBeCloseTo(10 * 128 + 20 * 36, 6);
  expect(cost.flops / (10 * one.flopsPerStep + 20 * flopsPerStep)).toBeCloseTo(1, 12);
});

test('fingerprints tell a change of a task beside the main one', async () => {
  const fingerprints = new Fingerprints();
  const base = await fingerprints.of(together());
  const differing = async (configured: ConfiguredExperiment) => {
    const other = await fingerprints.of(configured);
    const hash = (each: typeof base, part: string) => each[part as keyof typeof base].hash;
    return Object.keys(base).filter((part) => hash(base, part) !== hash(other, part));
  };
  expect(await differing(together())).toEqual([]);
  expect(await differing(together(parts(sgd(0.2))))).toEqual(['optimizer update']);
  expect(await differing(together(parts(Sgd.config({ learningRate: 0.1, momentum: 0.9 }))))).toEqual([
    'optimizer update',
    'initial values',
  ]);
  expect(await differing(together(parts(sgd(), 5)))).toEqual(['training step']);
});

test('a check traces each task’s step, and an auxiliary task without data is no task', async () => {
  const check = (configured: ConfiguredExperiment) => traceSteps(configured, build(configured.task));
  expect(await check(together())).toEqual([]);
  const error =
    "task.auxiliaryTasks.copy: the training data 'train' has the inputs lm, so nothing trains 'copy': name an input " +
    'of an InterleavedInput so, or leave out the task.';
  await expect(check(together(undefined, { lm }))).rejects.toThrow(error);
  expect(() => analyze(together(undefined, { lm }))).toThrow(error);
  // The model has 16 positions: the batches of the task beside the main one are too long.
  await expect(check(together(undefined, { lm, copy: rows(17, 3) }))).rejects.toThrow(
    'a sequence of 17 tokens is longer than maxSeqLength 16',
  );
});

test('shares of inputs: by their pattern, by their weights, and counted where a class has its own way', () => {
  class FirstOften extends BaseWhichInput {
    override at(batch: number, names: readonly string[]): string {
      return names[batch % 4 === 3 ? 1 : 0]!;
    }
  }
  const shares = (which: Config<BaseWhichInput>) =>
    build(InterleavedInput.config({ inputs: { lm, copy }, which })).partShares();
  expect(shares(InTurn.config())).toEqual({ lm: 0.5, copy: 0.5 });
  expect(shares(InTurn.config({ pattern: ['lm', 'lm', 'copy', 'lm'] }))).toEqual({ lm: 0.75, copy: 0.25 });
  expect(shares(ByWeight.config({ weights: { lm: 1, copy: 4 } }))).toEqual({ lm: 0.2, copy: 0.8 });
  expect(shares(FirstOften.config())).toEqual({ lm: 0.75, copy: 0.25 });
});
