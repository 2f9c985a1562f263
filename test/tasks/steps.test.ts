/** @file A task's step functions: the compiled gradients are the oracle's, and frozen variables have none. */
import { expect, test } from 'vitest';
import { compile, flatViews, type HostTensor, type TensorSpec } from '../../src/compiler/index.js';
import { build, ConfigError } from '../../src/hparams/index.js';
import { SyntheticLmInput } from '../../src/inputs/index.js';
import { evalStep, forwardStep, metricValues, type StepMetrics, trainStep } from '../../src/tasks/index.js';
import { repeatedly } from '../compiler/repeatedRuns.js';
import { Tiny } from '../fixtures/project/experiments/tiny.js';

interface Outputs {
  loss: HostTensor;
  metrics: StepMetrics;
  grads: Record<string, HostTensor>;
}

async function example(edit: (task: ReturnType<Tiny['task']>) => void = () => {}) {
  const config = new Tiny().task();
  edit(config);
  const task = build(config);
  const layout = task.layout();
  const buffer = new Float32Array(layout.size);
  const views = flatViews(layout, buffer);
  await task.initialize(views);
  const params = Object.fromEntries(
    layout.entries.map(({ name, shape }) => [name, { shape, dtype: 'float32', data: views[name]! }]),
  );
  const input = build(SyntheticLmInput.config({ batchSize: 2, seqLen: 8, vocabSize: 256 }));
  const batch = await input.getNext();
  const prngKey = { shape: [2], dtype: 'int32', data: Int32Array.of(1, 2) };
  return { task, inputs: { params, batch, prngKey } as never as Record<string, HostTensor> };
}

test('loss, metrics and every gradient agree with the eager engine', async () => {
  const { task, inputs } = await example();
  const [fast, oracle] = await Promise.all(
    (['onnx', 'eager'] as const).map(async (engine) => {
      const executable = await compile(trainStep(task), inputs as Record<string, TensorSpec>, { engine });
      return (await repeatedly(executable, inputs)) as unknown as Outputs;
    }),
  );
  expect(fast!.loss.data[0]).toBeCloseTo(oracle!.loss.data[0]!, 5);
  expect(Object.keys(fast!.grads)).toEqual(task.variables.map((v) => v.path));
  for (const [path, { data }] of Object.entries(oracle!.grads)) {
    const largest = Math.max(...Array.from(data, Math.abs));
    const difference = Math.max(...Array.from(data, (g, i) => Math.abs(g - fast!.grads[path]!.data[i]!)));
    expect(difference, path).toBeLessThanOrEqual(1e-4 * largest + 1e-7);
  }
});

test('evaluation has no dropout, and its loss is the metric that the learner names', async () => {
  const { task, inputs } = await example();
  const specs = inputs as Record<string, TensorSpec>;
  const metricsOf = async () => {
    const executable = await compile(evalStep(task), specs);
    return metricValues(((await executable.run(inputs)) as unknown as Outputs).metrics);
  };
  const metrics = await metricsOf();
  expect(await metricsOf()).toEqual(metrics);
  const forward = (await (await compile(forwardStep(task), specs)).run(inputs)) as unknown as HostTensor;
  expect(task.lossOf(metrics)).toBe(metrics.total_loss);
  expect(forward.data[0]).not.toBe(metrics.total_loss!.value);
});

test('excluded variables get no gradient and lie in a group of their own', async () => {
  const { task } = await example((config) => {
    config.train.learner.bpropVariableExclusion = ['lm/position_emb/.*'];
  });
  expect(task.trainablePaths()).not.toContain('lm/position_emb/emb_var');
  expect(task.layout().entries.find((e) => e.name === 'lm/position_emb/emb_var')!.group).toBe('frozen');
});

test('variables that the loss does not follow from are named', async () => {
  const { task, inputs } = await example();
  const paths = task.trainablePaths();
  const compiled = (unused: readonly string[]) => {
    task.trainablePaths = () => [...paths, ...unused];
    const spec = { shape: [3], dtype: 'float32' } as const;
    const params = { ...inputs.params, ...Object.fromEntries(unused.map((path) => [path, spec])) };
    return compile(trainStep(task), { ...inputs, params } as never, { engine: 'eager' });
  };
  const exclusion = 'task.train.learner.bpropVariableExclusion';
  await expect(compiled(['lm/spare/w'])).rejects.toEqual(
    new ConfigError(
      "The loss 'total_loss' does not depend on the variable 'lm/spare/w': use it in the model's loss, or leave it out " +
        `of training with ${exclusion}.`,
      { path: exclusion },
    ),
  );
  await expect(compiled(['a', 'b', 'c', 'd', 'e'])).rejects.toThrow(
    "The loss 'total_loss' does not depend on the variables 'a', 'b', 'c', and 2 more: use them in the model's loss, " +
      `or leave them out of training with ${exclusion}.`,
  );
});

test('a loss that the model does not have is an error with a suggestion', async () => {
  const { task } = await example((config) => {
    config.train.learner.lossName = 'total_los';
  });
  expect(() => task.lossOf({ total_loss: 1, avg_xent: 2 })).toThrow(
    "The learner's lossName is 'total_los', and LanguageModel has no such metric. Did you mean 'total_loss'? " +
      'It has: total_loss, avg_xent.',
  );
});
