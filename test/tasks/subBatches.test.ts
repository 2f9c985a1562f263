/** @file Sub-batches: the gradients of the undivided batch, sums that no grouping changes, memory, and bad settings. */
import { describe, expect, test } from 'vitest';
import { analyze } from '../../src/analysis/analyze.js';
import {
  compile,
  type Engine,
  flatViews,
  type HostTensor,
  type Tensor,
  type TensorSpec,
  type Tree,
  tf,
} from '../../src/compiler/index.js';
import { build, ConfigError } from '../../src/hparams/index.js';
import { SyntheticLmInput } from '../../src/inputs/index.js';
import { Learner, Sgd } from '../../src/learners/index.js';
import { BaseModel, gpt2Lm, LanguageModel, type TensorBatch } from '../../src/models/index.js';
import { SingleTask, type StepMetrics, Train, trainStep } from '../../src/tasks/index.js';
import { overParts } from '../../src/tasks/subBatches.js';
import { configured, Gpt } from '../analysis/models.js';
import { hasCompiler } from '../compiler/native/compilerSupport.js';
import { Tiny } from '../fixtures/project/experiments/tiny.js';
import { noise } from '../learners/fixtures.js';
import { longTest } from '../longTest.js';

interface Outputs {
  loss: HostTensor;
  metrics: StepMetrics;
  grads: Record<string, HostTensor>;
  updatedVars: Record<string, HostTensor>;
}

const engines: Engine[] = ['onnx', ...(hasCompiler ? ['native' as const] : [])];
const rows = 6;

/** A step on six rows of unequal weights, one of them padding. */
async function stepOf(numSubBatches: number, engine: Engine): Promise<Outputs> {
  const config = new Tiny().task();
  const lmTpl = gpt2Lm({ vocabSize: 32, modelDims: 8, numLayers: 1, numHeads: 2, maxSeqLength: 8 });
  config.model = LanguageModel.config({ lmTpl, countTokens: true });
  config.train.numSubBatches = numSubBatches;
  const task = build(config);
  const layout = task.layout();
  const views = flatViews(layout, new Float32Array(layout.size));
  await task.initialize(views);
  const params = Object.fromEntries(
    layout.entries.map(({ name, shape }) => [name, { shape, dtype: 'float32', data: views[name]! }]),
  );
  const batch = await build(SyntheticLmInput.config({ batchSize: rows, seqLen: 8, vocabSize: 32 })).getNext();
  const weights = batch.weights!.data as Float32Array;
  weights.forEach((_, i) => {
    const row = Math.floor((i * rows) / weights.length);
    weights[i] = row === 4 ? 0 : 1 + row / 4;
  });
  const prngKey = { shape: [2], dtype: 'int32', data: Int32Array.of(1, 2) };
  const inputs = { params, batch, prngKey } as unknown as Tree<HostTensor>;
  const executable = await compile(trainStep(task), inputs as Tree<TensorSpec>, { engine, numThreads: 2 });
  const outputs = (await executable.run(inputs)) as unknown as Outputs;
  await executable.dispose();
  return outputs;
}

describe.each(engines)('on %s', (engine) => {
  longTest('loss, metrics and gradients are those of the undivided batch, by weights', async () => {
    const whole = await stepOf(1, engine);
    for (const count of [3, 6]) {
      const parts = await stepOf(count, engine);
      expect(Math.abs(parts.loss.data[0]! / whole.loss.data[0]! - 1)).toBeLessThan(1e-6);
      expect(Object.keys(parts.metrics)).toEqual(Object.keys(whole.metrics));
      for (const [name, { value, weight }] of Object.entries(whole.metrics)) {
        // What a batch counts, with a weight of 1, is the mean of what parts count.
        const mean = name === 'num_predictions' ? value.data[0]! / count : value.data[0]!;
        expect(parts.metrics[name]!.value.data[0], name).toBeCloseTo(mean, 5);
        const sum = ['aux_loss', 'num_predictions'].includes(name) ? count : weight.data[0]!;
        expect(parts.metrics[name]!.weight.data[0], name).toBeCloseTo(sum, 5);
      }
      // Tokens that parts count add up.
      for (const { updatedVars } of [whole, parts])
        expect(Object.values(updatedVars).map(({ data }) => data[0]! * 1e6)).toEqual([expect.closeTo(48, 3)]);
      expect(Object.keys(parts.grads)).toEqual(Object.keys(whole.grads));
      for (const [name, { data }] of Object.entries(whole.grads))
        data.forEach((value, i) => {
          expect(Math.abs(parts.grads[name]!.data[i]! - value), name).toBeLessThan(1e-6);
        });
    }
  });

  test('the sums of parts have the same bits in any grouping of blocks', async () => {
    const [parts, size, dims] = [4, 5, 7];
    const x = {
      shape: [parts, size, dims],
      dtype: 'float32' as const,
      data: Float32Array.from(noise(1, 140)),
    };
    const w = { shape: [dims, 3], dtype: 'float32' as const, data: Float32Array.from(noise(2, 21)) };
    const sum = async (begin: number, end: number) => {
      const program = (given: { x: Tensor; w: Tensor }) =>
        overParts(
          ({ x: part }: { x: Tensor }) => {
            const product = tf.exp(tf.matMul(part, given.w));
            const gradient = tf.matMul(part, product, true) as Tensor;
            return {
              sums: { gradient, total: tf.sum(product) },
              tables: {},
              rows: { first: tf.slice(part, [0, 0], [1, dims]) },
            };
          },
          { x: given.x },
          begin,
          end,
        );
      const executable = await compile(program as never, { x, w } as never, { engine, numThreads: 2 });
      const { sums, rows: kept } = (await executable.run({ x, w })) as unknown as Record<
        'sums' | 'rows',
        Record<string, HostTensor>
      >;
      await executable.dispose();
      return {
        gradient: [...sums.gradient!.data],
        total: sums.total!.data[0]!,
        first: [...kept.first!.data],
      };
    };
    const added = (a: Awaited<ReturnType<typeof sum>>, b: typeof a): typeof a => ({
      gradient: a.gradient.map((value, i) => Math.fround(value + b.gradient[i]!)),
      total: Math.fround(a.total + b.total),
      first: [...a.first, ...b.first],
    });
    const inTurn = await sum(0, 4);
    expect(inTurn.first).toEqual(
      [0, 1, 2, 3].flatMap((part) => [...x.data.subarray(part * 35, part * 35 + 7)]),
    );
    const pairs = added(await sum(0, 2), await sum(2, 4));
    const single = await Promise.all([0, 1, 2, 3].map((part) => sum(part, part + 1)));
    expect(pairs).toEqual(inTurn);
    expect(added(added(single[0]!, single[1]!), added(single[2]!, single[3]!))).toEqual(inTurn);
    // Other trees have other bits.
    expect(single.reduce(added)).not.toEqual(inTurn);
    expect(await sum(0, 3)).toEqual(added(added(single[0]!, single[1]!), single[2]!));
  });
});

test('a step holds the activations of one part, and layers keep those of one', () => {
  const of = (count: number) => analyze(configured(Gpt, { batch: 64, 'task.train.numSubBatches': count }));
  const [whole, parts] = [of(1), of(8)];
  expect(parts.memory.variables).toBe(whole.memory.variables);
  expect(parts.memory.activations).toBeLessThan(0.3 * whole.memory.activations);
  // The loss keeps a few scalars, which do not shrink.
  for (const [i, { activationBytes }] of whole.layers.entries())
    expect(Math.abs(8 * parts.layers[i]!.activationBytes - activationBytes)).toBeLessThan(64);
  expect(parts.flopsPerStep).toBe(whole.flopsPerStep);
});

/** Squared errors of x·w + b, each row by its weight. */
class Line extends BaseModel {
  protected override setup(): void {
    this.createVariable('w', { shape: [3] });
    this.createVariable('b', { shape: [] });
  }
  override computePredictions({ x }: TensorBatch) {
    return tf.add(tf.sum(tf.mul(x!, this.getVar('w')), 1), this.getVar('b'));
  }
  override computeLoss = this.loss((predictions, { y, weights }) => {
    const total = tf.sum(weights!) as Tensor;
    const errors = tf.sum(tf.mul(tf.squaredDifference(predictions, y!), weights!));
    return [{ total_loss: [tf.div(errors, total), total] }, {}];
  });
}

test('the gradient of each example is clipped, of both variables together, before their mean by weights is taken', async () => {
  const [count, most] = [4, 1.5];
  const learner = Learner.config({ optimizer: Sgd.config({ learningRate: 1 }) });
  learner.clipSubBatchGradientNormToValue = most;
  const task = build(
    SingleTask.config({ model: Line.config(), train: Train.config({ learner, numSubBatches: count }) }),
  );
  const [w, b] = [[0.5, -1, 2], 0.25];
  const [xs, ys, weights] = [noise(1, 3 * count), noise(2, count), [1, 3, 0, 0.5]];
  // The loss of padding is 0 / 0.
  const floats = (shape: number[], values: readonly number[]) => ({
    ...{ shape, dtype: 'float32' as const },
    data: Float32Array.from(values),
  });
  const inputs = {
    params: { w: floats([3], w), b: floats([], [b]) },
    batch: { x: floats([count, 3], xs), y: floats([count], ys), weights: floats([count], weights) },
    prngKey: { shape: [2], dtype: 'int32' as const, data: Int32Array.of(1, 2) },
  } as unknown as Tree<HostTensor>;
  const executable = await compile(trainStep(task), inputs as Tree<TensorSpec>, { engine: 'onnx' });
  const { grads } = (await executable.run(inputs)) as unknown as Outputs;

  const sums = [0, 0, 0, 0];
  let isClipped = 0;
  for (let i = 0; i < count; i++) {
    const x = xs.slice(3 * i, 3 * i + 3);
    const error = x.reduce((sum, value, k) => sum + value * w[k]!, b) - ys[i]!;
    const own = [...x, 1].map((value) => 2 * error * value);
    const factor = Math.min(1, most / Math.hypot(...own));
    if (factor < 1) isClipped++;
    own.forEach((value, k) => {
      sums[k]! += weights[i]! * factor * value;
    });
  }
  expect([...grads.w!.data, ...grads.b!.data]).toEqual(
    sums.map((sum) => expect.closeTo(sum / 4.5, 5) as number),
  );
  expect([1, 2, 3]).toContain(isClipped);
});

test('rows that cannot be divided are named', async () => {
  const error = await stepOf(4, 'onnx').catch((problem: unknown) => problem);
  expect(error).toBeInstanceOf(ConfigError);
  expect((error as Error).message).toMatch(
    /^task\.train\.numSubBatches is 4, which needs a multiple of 4 rows in each tensor of a batch, and 'ids' has 6\./,
  );
});
