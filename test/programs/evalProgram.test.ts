/** @file An evaluation is the mean over all tokens of a split, however they fall into batches. */
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { createTrainState } from '../../src/checkpoints/index.js';
import { flatViews } from '../../src/compiler/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import { type Batch, TextInput } from '../../src/inputs/index.js';
import { BatchBuffers } from '../../src/programs/batchBuffers.js';
import { EvalProgram, EvalSteps } from '../../src/programs/evalProgram.js';
import type { JobOptions } from '../../src/programs/index.js';
import type { SingleTask } from '../../src/tasks/index.js';
import { project } from '../command.js';
import { Tiny } from '../fixtures/project/experiments/tiny.js';

let options: JobOptions;
let steps: EvalSteps;

beforeAll(async () => {
  const taskConfig: Config<SingleTask> = new Tiny().task();
  options = {
    ...{
      name: 'tiny.Tiny',
      task: taskConfig,
      datasets: [],
      decodeDatasets: [],
      overrides: [],
      classVars: '',
    },
    ...{ moduleUrl: import.meta.url, jobLogDir: 'unused', mode: 'eval' },
  };
  const task = build(taskConfig);
  const layout = task.layout();
  const { params } = createTrainState(layout);
  await task.initialize(flatViews(layout, params));
  steps = new EvalSteps(options, task, { layout, params });
});

function validation(values: Partial<Config<TextInput>>): EvalProgram {
  const files = [join(project, 'corpus/counting.txt')];
  const dataset = TextInput.config({
    ...{ files, seqLen: 16, split: 'validation', batchSize: 1, evalLoopNumBatches: -1 },
    ...values,
  });
  return new EvalProgram(options, steps, dataset);
}

const never = () => false;

test('batches of 1, 3 and 7 rows, with and without padding rows, give one result', async () => {
  const results = [];
  for (const batchSize of [1, 3, 7]) results.push(await validation({ batchSize }).run(never));
  const [one, three, seven] = results.map((result) => result!.metrics.log_pplx!);
  expect(results.map((result) => result!.batches)).toEqual([14, 5, 2]);
  expect(three!.weight).toBe(one!.weight);
  expect(seven!.weight).toBe(one!.weight);
  expect(three!.value).toBeCloseTo(one!.value, 5);
  expect(seven!.value).toBeCloseTo(one!.value, 5);
});

test('the whole split is read anew each time; a limited evaluation goes on unless it is reset', async () => {
  const whole = validation({ batchSize: 3 });
  expect((await whole.run(never))!.metrics).toEqual((await whole.run(never))!.metrics);
  const limited = validation({ batchSize: 3, evalLoopNumBatches: 2 });
  const [first, second] = [(await limited.run(never))!.metrics, (await limited.run(never))!.metrics];
  expect(second.log_pplx!.value).not.toBe(first.log_pplx!.value);
  const reset = validation({ batchSize: 3, evalLoopNumBatches: 2, resetForEval: true });
  expect([(await reset.run(never))!.metrics, (await reset.run(never))!.metrics]).toEqual([first, first]);
});

test('a stopped evaluation has no result', async () => {
  let batches = 0;
  expect(await validation({}).run(() => ++batches > 2)).toBeUndefined();
});

test('a batch that differs from the first is named', () => {
  const ids = (rows: number, name = 'ids'): Batch => ({
    [name]: { shape: [rows, 2], dtype: 'int32', data: new Int32Array(rows * 2) },
  });
  const buffers = new BatchBuffers('train', ids(3));
  expect([buffers.size, buffers.unit]).toEqual([6, 'tokens']);
  expect(() => buffers.load(ids(2))).toThrow(
    "Input 'train': 'ids' of a batch is int32[2,2]; the first batch had int32[3,2].",
  );
  expect(() => buffers.load(ids(3, 'idz'))).toThrow(
    "Input 'train': 'idz' of a batch is int32[3,2]; the first batch had no such array.",
  );
  expect(() => buffers.load({})).toThrow("Input 'train': a batch has no 'ids', as the first had.");
});
