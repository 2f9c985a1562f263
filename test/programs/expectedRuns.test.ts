/** @file Runs that are expected of evaluations and decodes, from the configs of a job alone. */
import { expect, test } from 'vitest';
import { GreedyDecoder } from '../../src/decoding/index.js';
import { build } from '../../src/hparams/index.js';
import { SyntheticLmInput } from '../../src/inputs/index.js';
import { expectedDecodeRuns, expectedEvalRuns } from '../../src/programs/expectedRuns.js';
import { Tiny } from '../fixtures/project/experiments/tiny.js';

const taskConfig = new Tiny().task();
Object.assign(taskConfig.train, { numTrainSteps: 100, evalIntervalSteps: 30, decodeIntervalSteps: 50 });
taskConfig.decode.decoder = GreedyDecoder.config({ seqlen: 32 });
const task = build(taskConfig);

const dataset = (values: object) =>
  SyntheticLmInput.config({ batchSize: 1, seqLen: 8, vocabSize: 8, ...values });

test('evaluations: batches of all datasets and one of training, each time that they are due', () => {
  const datasets = [dataset({ evalLoopNumBatches: 5 }), dataset({ resetForEval: false })];
  // At steps 30, 60, 90 and 100.
  expect(expectedEvalRuns({ mode: 'train_and_eval' }, task, datasets)).toBe(4 * (5 + 1 + 1));
  expect(expectedEvalRuns({ mode: 'train' }, task, [])).toBe(4);
  expect(expectedEvalRuns({ mode: 'eval' }, task, datasets)).toBe(5 + 1);
  // Data of unknown length counts as 100 batches.
  expect(expectedEvalRuns({ mode: 'eval' }, task, [dataset({})])).toBe(100);
  expect(expectedEvalRuns({ mode: 'eval' }, task, [dataset({ evalLoopNumBatches: -1 })])).toBe(100);
});

test('decodes: tokens of all batches, each time that they are due', () => {
  expect(expectedDecodeRuns({ mode: 'decode' }, task, 1)).toBe(32);
  expect(expectedDecodeRuns({ mode: 'decode' }, task, 3)).toBe(96);
  expect(expectedDecodeRuns({ mode: 'train_and_decode' }, task, 1)).toBe(2 * 32);
});
