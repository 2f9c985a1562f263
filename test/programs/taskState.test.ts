/** @file Models that the machine's memory can't hold are refused before anything is allocated. */
import { expect, test, vi } from 'vitest';
import { build } from '../../src/hparams/index.js';
import { paramsOf, trainStateOf } from '../../src/programs/taskState.js';
import { configured } from '../experiments/zoo.js';
import { Tiny } from '../fixtures/project/experiments/tiny.js';

vi.mock('node:os', async (original) => ({ ...(await original<object>()), totalmem: () => 26e9 }));

test('training needs room for parameters, gradients and slots; evaluation for parameters', async () => {
  const { task: config } = await configured('lmCloud.LmCloudSpmdPipeline9B');
  const task = build(config);
  expect(() => trainStateOf(task)).toThrow(
    'The 9.80B parameters of the model take, with gradients and 2 slots of the optimizer, 157 GB of memory, and this ' +
      'machine has 26 GB. Models are not yet split over machines: make it smaller with --set.',
  );
  expect(() => paramsOf(task)).toThrow(
    'The 9.80B parameters of the model take 40 GB of memory, and this machine has 26 GB. Models are not yet split ' +
      'over machines: make it smaller with --set.',
  );
});

test('a state that fits is allocated as zeros', () => {
  const task = build(new Tiny().task());
  const [training, evaluation] = [trainStateOf(task), paramsOf(task)];
  expect(Object.keys(training.slots)).toEqual(['m', 'v']);
  expect(evaluation.slots).toEqual({});
  for (const { step, params, layout } of [training, evaluation]) {
    expect([step, params.length, params.some((value) => value !== 0)]).toEqual([0, layout.size, false]);
  }
});
