/** @file The smallest of Pax's experiments train here: on synthetic tokens, and on text of one's own. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Finished, runCommand, temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';
import { directories } from './zoo.js';

/** Trains an experiment of this repository with these constants. */
function train(directory: string, exp: string, constants: Record<string, unknown>): Promise<Finished> {
  const sets = Object.entries(constants).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
  const flags = [`--exp=${exp}`, '--mode=train_and_eval', `--job_log_dir=${join(directory, 'out')}`, ...sets];
  return runCommand(flags, join(directories[0]!, '..'));
}

const losses = ({ stdout }: Finished): number[] =>
  [...stdout.matchAll(/^step .*loss (\S+)/gm)].map(([, loss]) => Number(loss));

longTest('lmCloud.LmCloudSpmdTest', async () => {
  const sizes = { vocabSize: 64, maxSeqLen: 16, numLayers: 1, numTrainSteps: 3, summaryIntervalSteps: 1 };
  const finished = await train(temporaryDirectory(), 'lmCloud.LmCloudSpmdTest', sizes);
  expect([finished.code, finished.stderr]).toEqual([0, '']);
  expect(losses(finished).length).toBe(3);
});

longTest('lmCloud.SmallMlp learns to say its tokens again', async () => {
  const sizes = { inputDim: 16, hiddenDim: 16, numLayer: 2, maxSeqLen: 8, numTrainSteps: 40, lrWarmup: 1 };
  const finished = await train(temporaryDirectory(), 'lmCloud.SmallMlp', { ...sizes, learningRate: 0.03 });
  expect([finished.code, finished.stderr]).toEqual([0, '']);
  const [first, ...later] = losses(finished);
  expect(later.at(-1)).toBeLessThan(first! - 0.5);
});

longTest('c4.C4SpmdAdam, on files that trainFiles and evalFiles name', async () => {
  const directory = temporaryDirectory();
  for (const split of ['train', 'validation']) {
    mkdirSync(join(directory, split));
    for (const name of ['a', 'b']) {
      writeFileSync(
        join(directory, split, `${name}.txt`),
        `${name} of ${split}: to be or not to be. `.repeat(20),
      );
    }
  }
  const sizes = { numLayers: 1, modelDims: 32, numHeads: 2, vocabSize: 256, maxSeqLen: 32, numTrainSteps: 2 };
  const finished = await train(directory, 'c4.C4SpmdAdam', {
    ...sizes,
    trainFiles: join(directory, 'train/*.txt'),
    evalFiles: join(directory, 'validation/*.txt'),
  });
  expect([finished.code, finished.stderr]).toEqual([0, '']);
  expect(finished.stdout).toMatch(/eval_test_C4Validation at step 2: total_loss [\d.]+/);
});

test('c4.C4SpmdAdam without text says which files it looked for', async () => {
  const finished = await train(temporaryDirectory(), 'c4.C4SpmdAdam', {
    numLayers: 1,
    modelDims: 64,
    vocabSize: 256,
  });
  expect(finished.code).toBe(1);
  expect(finished.stderr).toContain("TextInput 'C4Train': No file matches 'data/c4/train/**/*.txt'");
});
