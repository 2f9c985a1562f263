/** @file Tags of shipped fields: learning rates of optimizers, types of layers' activations. */
import { expect, test } from 'vitest';
import { print, setTagged } from '../../../src/hparams/index.js';
import { ActivationDtype, FeedForward } from '../../../src/layers/index.js';
import { Adam, Learner, LearningRate } from '../../../src/learners/index.js';
import { ClassificationMLPModel } from '../../../src/models/index.js';
import { SingleTask, Train } from '../../../src/tasks/index.js';

const task = () => {
  const learner = Learner.config({ optimizer: Adam.config({ learningRate: 0.1 }) });
  return SingleTask.config({ model: ClassificationMLPModel.config(), train: Train.config({ learner }) });
};

test('a learning rate and the type of activations are set wherever they stand', () => {
  const config = task();
  expect(setTagged(config, LearningRate, 0.5)).toBe(1);
  expect(config.train.learner.optimizer.learningRate).toBe(0.5);
  expect(setTagged(config, ActivationDtype, 'bfloat16')).toBeGreaterThan(5);
  expect(config.model.mlpTpl.ffTpl.linearTpl.fpropDtype).toBe('bfloat16');
  const layer = FeedForward.config();
  // @ts-expect-error no type of activations
  expect(() => setTagged(layer, ActivationDtype, 'float64')).toThrow(
    "expected one of 'float32', 'bfloat16' or null, got 'float64'",
  );
});

test('tags of the classes are not printed', () => {
  expect(print(task(), { tags: true })).toBe(print(task()));
});
