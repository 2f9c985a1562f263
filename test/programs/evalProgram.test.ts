/** @file An evaluation is the mean over all tokens of a split, however they fall into batches. */
import { join } from 'node:path';
import { beforeAll, expect, test, vi } from 'vitest';
import { createTrainState } from '../../src/checkpoints/index.js';
import { flatViews } from '../../src/compiler/index.js';
import { build, type Config, copyWith } from '../../src/hparams/index.js';
import {
  type BaseInput,
  type Batch,
  type ExampleMetrics,
  nextBatch,
  TextInput,
} from '../../src/inputs/index.js';
import type { LanguageModel } from '../../src/models/index.js';
import { BatchBuffers } from '../../src/programs/batchBuffers.js';
import { EvalProgram } from '../../src/programs/evalProgram.js';
import { EvalSteps } from '../../src/programs/evalStep.js';
import type { JobOptions } from '../../src/programs/index.js';
import { Measurements } from '../../src/programs/measurements.js';
import { InterruptedError } from '../../src/system/index.js';
import {
  type EvalResult,
  Evaluation,
  F1,
  Perplexity,
  type ProgramRun,
  type SingleTask,
  WeightedMeans,
} from '../../src/tasks/index.js';
import { project, temporaryDirectory } from '../command.js';
import { engines } from '../compiler/engines.js';
import { Answers } from '../fixtures/faults/experiments/answers.js';
import { Tiny } from '../fixtures/project/experiments/tiny.js';

let options: JobOptions;
let task: SingleTask;
let steps: EvalSteps;
let measurements: Measurements;
let allViews: Record<string, Float32Array>;

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
    ...{ moduleUrl: import.meta.url, jobLogDir: temporaryDirectory(), mode: 'eval' },
  };
  task = build(taskConfig);
  const layout = task.layout();
  const views = flatViews(layout, createTrainState(layout).params);
  allViews = views;
  await task.initialize(views);
  steps = new EvalSteps(options, task, { layout, views });
  measurements = new Measurements(options, task, () => ({ layout, views }));
});

function counting(values: Partial<Config<TextInput>>, cls = TextInput): Config<TextInput> {
  const files = [join(project, 'corpus/counting.txt')];
  return cls.config({
    ...{ files, seqLen: 16, split: 'validation', batchSize: 1, evalLoopNumBatches: -1 },
    ...values,
  });
}

/** The program of a dataset, and its evaluations, with these weights and settings. */
function programOf(dataset: Config<BaseInput>, on = measurements, of = task) {
  const program = new EvalProgram(of.hp.train, dataset);
  const evaluate = async ({ step, throwIfStopped }: ReturnType<typeof at>): Promise<EvalResult> => {
    const results: EvalResult[] = [];
    const run: Partial<ProgramRun> = {
      step,
      evaluate: (input, settings) =>
        on.evaluations.evaluate(input, { ...settings, program: program.name, throwIfStopped }),
      report: (result) => results.push(result as EvalResult),
    };
    await program.run(run as ProgramRun);
    return results[0]!;
  };
  return {
    evaluate,
    getState: () => program.getState(),
    setState: (state: Parameters<EvalProgram['setState']>[0]) => program.setState(state),
  };
}

const validation = (values: Partial<Config<TextInput>>, cls = TextInput) => programOf(counting(values, cls));

/** A run at a step, which is stopped before a batch where `isStopped` says so. */
const at = (step: number, isStopped = () => false) => ({
  step,
  throwIfStopped: () => {
    if (isStopped()) throw new InterruptedError('stopped');
  },
});

test('compiling counts in no evaluation: the watch stands still until the step is there', async () => {
  const acts: string[] = [];
  const own = new EvalSteps(options, task, { layout: task.layout(), views: allViews });
  const watch = { pause: () => acts.push('pause'), start: () => acts.push('start') } as never;
  const batch = await nextBatch(build(counting({})));
  const evaluation = new Evaluation({});
  vi.spyOn(evaluation, 'add').mockImplementation(() => acts.push('add') as never);
  await own.run('validation', batch!, evaluation, watch);
  expect(acts).toEqual(['pause', 'start', 'add']);
});

test('batches of 1, 3 and 7 rows, with and without padding rows, give one result', async () => {
  const results = [];
  for (const batchSize of [1, 3, 7]) results.push(await validation({ batchSize }).evaluate(at(0)));
  const [one, three, seven] = results.map((result) => result.metrics.log_pplx!);
  expect(results.map((result) => result.batches)).toEqual([14, 5, 2]);
  expect(three!.weight).toBe(one!.weight);
  expect(seven!.weight).toBe(one!.weight);
  expect(three!.value).toBeCloseTo(one!.value, 5);
  expect(seven!.value).toBeCloseTo(one!.value, 5);
});

test.each(engines)(
  'an evaluation has the parameters of its beginning, on %s',
  async (_, { engine, available }) => {
    if (!available) return;
    const layout = task.layout();
    const params = createTrainState(layout).params;
    const own = { layout, views: flatViews(layout, params) };
    await task.initialize(own.views);
    const fresh = () => new Measurements({ ...options, engine: engine as 'native' }, task, () => own);
    const evaluation = fresh();
    const evaluate = async (on: Measurements) => {
      const { metrics } = await programOf(counting({ batchSize: 32 }), on).evaluate(at(0));
      return metrics.log_pplx!.value;
    };
    const before = await evaluate(evaluation);
    for (const views of Object.values(own.views)) views.set(views.map((x) => 3 * x));
    const after = await evaluate(evaluation);
    expect(after).not.toBeCloseTo(before, 3);
    expect(after).toBe(await evaluate(fresh()));
  },
);

test('hosts that share the data come to the metrics of one: means by weight, and those of tasks by example', async () => {
  const [, config] = new Answers().datasets();
  const evaluate = async (input: BaseInput, joined: ExampleMetrics<number> | null = input.scoreMetrics()) => {
    const evaluation = new Evaluation({}, joined);
    for (let batch = await nextBatch(input); batch; batch = await nextBatch(input))
      await steps.run(input.name, batch, evaluation);
    return evaluation;
  };
  const one = (await evaluate(build(config!))).result().metrics;
  const means = new WeightedMeans();
  const joined = build(config!).scoreMetrics()!;
  const shares: number[] = [];
  for (const infeedHostIndex of [1, 0]) {
    const host = build(copyWith(config!, { batchSize: 3, numInfeedHosts: 2, infeedHostIndex }));
    const scores = host.scoreMetrics()!;
    await evaluate(host, scores);
    const sent = JSON.parse(JSON.stringify(scores.outputs)) as [number, number][];
    shares.push(sent.length);
    joined.add(
      sent.map(([id]) => id),
      sent.map(([, score]) => score),
    );
    host.reset();
    means.add((await evaluate(host, null)).result().metrics);
  }
  // 8 examples: the last batch of host 1 is padding alone.
  expect(shares).toEqual([3, 5]);
  for (const [name, { value, weight }] of Object.entries({ ...means.result(), ...joined.result().metrics })) {
    // Means of what is no mean: one a batch.
    if (name === 'num_predictions' || name === 'aux_loss') continue;
    expect({ name, value, weight }).toEqual({
      name,
      value: expect.closeTo(one[name]!.value, 4),
      weight: one[name]!.weight,
    });
  }
});

test("evalMetrics are of the whole evaluation, of the model's tensors and the batch's", async () => {
  const config = new Tiny().task();
  config.evalMetrics = {
    perplexity: Perplexity.config({ of: 'log_pplx' }),
    f1: F1.config({ average: 'micro' }),
  };
  (config.model as Config<LanguageModel>).returnPredictions = true;
  const withMetrics = build(config);
  const layout = withMetrics.layout();
  const views = flatViews(layout, createTrainState(layout).params);
  await withMetrics.initialize(views);
  const evaluate = async (batchSize: number) => {
    const files = [join(project, 'corpus/counting.txt')];
    const dataset = TextInput.config({ files, seqLen: 16, split: 'validation', batchSize });
    const own = new Measurements(options, withMetrics, () => ({ layout, views }));
    return (await programOf(dataset, own, withMetrics).evaluate(at(0))).metrics;
  };
  const [three, seven] = [await evaluate(3), await evaluate(7)];
  expect(three.perplexity!.value).toBeCloseTo(Math.exp(three.log_pplx!.value), 6);
  expect(three.f1!.value).toBeCloseTo(three.fraction_of_correct_next_step_preds!.value, 6);
  expect(three.f1).toEqual(seven.f1);
  config.evalMetrics = { f1: F1.config({ logits: 'logit' }) };
  const wrong = build(config);
  const files = [join(project, 'corpus/counting.txt')];
  const dataset = TextInput.config({ files, seqLen: 16, split: 'validation', batchSize: 3 });
  const own = new Measurements(options, wrong, () => ({ layout, views }));
  const failing = programOf(dataset, own, wrong);
  await expect(failing.evaluate(at(0))).rejects.toThrow(
    "task.evalMetrics.f1 reads 'logit', which neither the model gives for each example nor the batch has. Did you mean 'logits'? " +
      'The model gives: labels, scores, logits, predicted_ids; the batch has: ids, labels, paddings, weights.',
  );
});

test('an evaluation reads the same batches each time, all of them where nothing is said', async () => {
  const whole = validation({ batchSize: 3, evalLoopNumBatches: null });
  const [first, second] = [await whole.evaluate(at(1)), await whole.evaluate(at(2))];
  expect([first.batches, second.batches]).toEqual([5, 5]);
  expect(second.metrics).toEqual(first.metrics);
  const limited = validation({ batchSize: 3, evalLoopNumBatches: 2 });
  const runs = [await limited.evaluate(at(1)), await limited.evaluate(at(2))];
  expect(runs.map((run) => run.batches)).toEqual([2, 2]);
  expect(runs[1]!.metrics).toEqual(runs[0]!.metrics);
});

test('a rolling evaluation goes on at each step, over and over its data, in a later process too', async () => {
  const rolling = () => validation({ batchSize: 3, evalLoopNumBatches: 2, resetForEval: false });
  const program = rolling();
  const weights: number[] = [];
  for (let step = 1; step <= 6; step++)
    weights.push((await program.evaluate(at(step))).metrics.log_pplx!.weight);
  // Batches of 48, 48, 48, 48 and 26 labels.
  expect(weights).toEqual([96, 96, 74, 96, 74, 96]);
  const fourth = rolling();
  for (let step = 1; step <= 3; step++) await fourth.evaluate(at(step));
  const later = rolling();
  later.setState(JSON.parse(JSON.stringify(fourth.getState())));
  const expected = await fourth.evaluate(at(4));
  expect((await later.evaluate(at(4))).metrics).toEqual(expected.metrics);
  // At the same step it reads the same batches; stopped, it has not begun.
  await expect(later.evaluate(at(5, () => true))).rejects.toThrow(InterruptedError);
  expect((await later.evaluate(at(4))).metrics).toEqual(expected.metrics);
});

test('data without end is evaluated for one batch, and refused where all of it is asked for', async () => {
  expect((await validation({ repeat: true, evalLoopNumBatches: null }).evaluate(at(0))).batches).toBe(1);
  /** Text without end, of which its config tells nothing. */
  class Endless extends TextInput {
    override get isEndless(): boolean {
      return true;
    }
  }
  await expect(validation({ name: 'v' }, Endless).evaluate(at(0))).rejects.toThrow(
    "Input 'v' has no end, so evalLoopNumBatches -1 would never finish. " +
      'Set it to a number of batches, or let the data end (repeat, numBatches).',
  );
});

test('a step that failed to compile is compiled again with the next batch', async () => {
  const predictions = vi.spyOn(task.model, 'computePredictions');
  predictions.mockImplementationOnce(() => {
    throw new Error('no memory');
  });
  const dataset = () => validation({ batchSize: 2 });
  await expect(dataset().evaluate(at(0))).rejects.toThrow('no memory');
  expect((await dataset().evaluate(at(0))).batches).toBe(7);
});

test('a stopped evaluation has no result', async () => {
  let batches = 0;
  await expect(validation({}).evaluate(at(0, () => ++batches > 2))).rejects.toThrow(InterruptedError);
});

test('a batch that differs from the first is named', () => {
  const ids = (rows: number, name = 'ids'): Batch => ({
    [name]: { shape: [rows, 2], dtype: 'int32', data: new Int32Array(rows * 2) },
  });
  const buffers = new BatchBuffers('train', ids(3));
  expect(() => buffers.load(ids(2))).toThrow(
    "Input 'train': 'ids' of a batch is int32[2,2]; the first batch had int32[3,2].",
  );
  expect(() => buffers.load(ids(3, 'idz'))).toThrow(
    "Input 'train': 'idz' of a batch is int32[3,2]; the first batch had no such array.",
  );
  expect(() => buffers.load({})).toThrow("Input 'train': a batch has no 'ids', as the first had.");
});
