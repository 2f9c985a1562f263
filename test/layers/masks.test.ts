/** @file What stands in padded places changes no bit of anything else: outputs, losses, statistics, gradients. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compile, type HostTensor, type Tensor, tf, valueAndGrad } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import {
  type BaseLayer,
  type BaseSoftmax,
  BatchNorm,
  FullSoftmax,
  GlobalPooling,
  GroupNorm,
  NClassMajorSharedEmbeddingSoftmax,
  Pooling,
  runInContext,
  SharedEmbeddingSoftmax,
  StackedTransformer,
  StackedTransformerRepeated,
  selected,
  Transformer,
  TransformerFeedForward,
  weightedSum,
} from '../../src/layers/index.js';
import { classificationMetrics, regressionMetrics, type WeightedScalars } from '../../src/models/index.js';
import { engines } from '../compiler/engines.js';
import { runs } from '../faults/campaign.js';
import { numbers, randomTheta, tensor } from './helpers.js';

const [B, T, D, V] = [3, 4, 4, 5];

/** Inputs by name, of which `x` is padded, and the numbers that must not depend on the padding. */
interface Subject {
  readonly layer?: BaseLayer;
  readonly shape: number[];
  /** `paddings` [B, T]. @returns outputs without those of padding */
  readonly call: (x: Tensor, paddings: Tensor) => Tensor;
}

/** Outputs [B, T, …] without those of padding. */
const unpaddedOf = (outputs: Tensor, paddings: Tensor): Tensor =>
  selected(outputs, tf.reshape(tf.less(paddings, 0.5), [B, T, ...outputs.shape.slice(2).map(() => 1)]));

const sequence = <L extends BaseLayer>(
  layer: L,
  call: (layer: L, x: Tensor, paddings: Tensor) => Tensor,
): Subject => ({
  layer,
  shape: [B, T, D],
  call: (x, paddings) => unpaddedOf(call(layer, x, paddings), paddings),
});

const hidden = (paddings: Tensor) => ({ paddings });
const transformer = { modelDims: D, hiddenDims: 6, numHeads: 2, numLayers: 2 };

const weightsOf = (paddings: Tensor): Tensor => tf.mul(tf.sub(1, paddings), 0.5);
const labels = (shape: number[]): Tensor => {
  const ids = Array.from(numbers(shape.reduce((a, b) => a * b)), (x) => Math.floor(((x + 1) / 2) * V));
  return tf.tensor(ids, shape, 'int32');
};
const sumOf = (metrics: WeightedScalars): Tensor =>
  Object.values(metrics)
    .map(([value], i) => tf.mul(value, i + 1) as Tensor)
    .reduce((a, b) => tf.add(a, b));

const softmax = (layer: BaseSoftmax): Subject => ({
  layer,
  shape: [B, T, D],
  call: (x, paddings) => {
    const { avgXent, totalXent, logits } = layer.fprop(x, weightsOf(paddings), labels([B, T]));
    const losses = layer.context.auxLosses.map(({ value }) => tf.reshape(value, [1]));
    const counted = tf.reshape(unpaddedOf(logits, paddings), [-1]);
    return tf.concat([tf.stack([avgXent, totalXent]), ...losses, counted] as tf.Tensor1D[]);
  },
});
const smooth = { inputDims: D, numClasses: V, labelSmoothingProb: 0.1, zLossWeight: 0.01 };

const subjects: Record<string, Subject> = {
  BatchNorm: sequence(build(BatchNorm.config({ dim: D })), (l, x, p) => l.fprop(x, p)),
  'BatchNorm by its averages': sequence(
    build(BatchNorm.config({ dim: D, useMovingAvgInTraining: true, setPaddedOutputToZero: false })),
    (l, x, p) => l.fprop(x, p),
  ),
  GroupNorm: sequence(build(GroupNorm.config({ dim: D, numGroups: 2 })), (l, x, p) => l.fprop(x, p)),
  'GroupNorm of what came before': sequence(
    build(GroupNorm.config({ dim: D, numGroups: 2, cumulative: true, setPaddedOutputToZero: false })),
    (l, x, p) => l.fprop(x, p),
  ),
  ...Object.fromEntries(
    (['pre', 'post', 'primer_hybrid', 'post_skip'] as const).flatMap((normPolicy) => [
      [
        `TransformerFeedForward, ${normPolicy}`,
        sequence(
          build(TransformerFeedForward.config({ inputDims: D, hiddenDims: 6, normPolicy })),
          (l, x, p) => l.fprop(x, p),
        ),
      ],
      [
        `Transformer, ${normPolicy}`,
        sequence(
          build(Transformer.config({ inputDims: D, hiddenDims: 6, numHeads: 2, normPolicy })),
          (l, x, p) => l.fprop(x, { seen: hidden(p), paddings: p }),
        ),
      ],
    ]),
  ),
  StackedTransformer: sequence(build(StackedTransformer.config(transformer)), (l, x, p) =>
    l.fprop(x, { seen: { ...hidden(p), causal: true }, paddings: p }),
  ),
  StackedTransformerRepeated: sequence(
    build(StackedTransformerRepeated.config({ ...transformer, numLayers: 1, xTimes: 2 })),
    (l, x, p) => l.fprop(x, { seen: hidden(p), paddings: p }),
  ),
  ...Object.fromEntries(
    (['MAX', 'AVG'] as const).flatMap((poolingType): [string, Subject][] => {
      const pooling = build(Pooling.config({ windowShape: [2, 2], poolingType }));
      const all = build(GlobalPooling.config({ poolingDims: [1, 2], poolingType }));
      return [
        [`Pooling, ${poolingType}`, { shape: [B, T, 2, D], call: (x, p) => pooling.fprop(x, p) }],
        [
          `GlobalPooling, ${poolingType}`,
          { shape: [B, T, 2, D], call: (x, p) => all.fprop(x, tf.reshape(p, [B, T, 1, 1])) },
        ],
      ];
    }),
  ),
  FullSoftmax: softmax(build(FullSoftmax.config(smooth))),
  SharedEmbeddingSoftmax: softmax(build(SharedEmbeddingSoftmax.config({ ...smooth, softCapLogits: 3 }))),
  NClassMajorSharedEmbeddingSoftmax: softmax(build(NClassMajorSharedEmbeddingSoftmax.config(smooth))),
  'metrics of classifiers': {
    shape: [B, T, V],
    call: (x, p) => sumOf(classificationMetrics(x, labels([B, T]), weightsOf(p), { topK: [2] })),
  },
  'metrics of classifiers by shares': {
    shape: [B, T, V],
    // Padding in the shares too.
    call: (x, p) => sumOf(classificationMetrics(x, tf.abs(x), weightsOf(p))),
  },
  'metrics of regressions': {
    shape: [B * T],
    call: (x, p) => sumOf(regressionMetrics(x, tensor([B * T], 3), tf.reshape(weightsOf(p), [B * T]))),
  },
  'metrics of regressions with several outputs': {
    shape: [B, T, 2],
    call: (x, p) => sumOf(regressionMetrics(x, tf.tanh(x), weightsOf(p))),
  },
};

/** Where `values`, of rows [B, T, …], are padding, `junk` takes turns. */
function filled(values: Float32Array, paddings: readonly number[], junk: readonly number[]): Float32Array {
  const size = values.length / paddings.length;
  return values.map((x, i) => (paddings[Math.floor(i / size)] === 1 ? junk[i % junk.length]! : x));
}

type Numbers = Readonly<Record<string, Tensor>>;

/** All that a subject computes: outputs, replaced variables, and gradients by variables and by what is not padding. */
function computed({ call }: Subject, theta: Numbers, x: Tensor, paddings: Tensor): Numbers {
  const trained = Object.fromEntries(Object.entries(theta).filter(([path]) => !path.startsWith('moving')));
  const loss = ({ x, ...values }: Record<string, Tensor>) => {
    const updatedVars: Record<string, Tensor> = {};
    const context = { theta: { ...theta, ...values }, updatedVars };
    const outputs = runInContext(context, () => call(x!, paddings));
    return {
      value: tf.sum(tf.mul(outputs, tensor(outputs.shape, 99))) as Tensor,
      aux: { ...updatedVars, outputs },
    };
  };
  const { aux, grads: all } = valueAndGrad(loss, { x, ...trained });
  const { x: dx, ...grads } = all;
  return {
    ...aux,
    'gradient of x': unpaddedOf(tf.reshape(dx!, [B, T, -1]), paddings),
    ...Object.fromEntries(Object.entries(grads).map(([name, grad]) => [`gradient of ${name}`, grad])),
  };
}

const junk = fc.array(fc.constantFrom(Number.NaN, Infinity, -Infinity, 3e38, -3e38, 1e20), {
  minLength: 1,
  maxLength: 3,
});
const paddings = fc.array(fc.constantFrom(0, 1), { minLength: B * T, maxLength: B * T });

test.each(Object.entries(subjects))('%s', (_, subject) => {
  const theta = subject.layer ? randomTheta(subject.layer) : {};
  if (theta.moving_variance) theta.moving_variance = tf.abs(theta.moving_variance);
  const clean = numbers(subject.shape.reduce((a, b) => a * b));
  fc.assert(
    fc.property(paddings, junk, (paddings, junk) => {
      const numbersOf = (data: Float32Array) =>
        tf.tidy(() => {
          const all = computed(subject, theta, tf.tensor(data, subject.shape), tf.tensor(paddings, [B, T]));
          return Object.fromEntries(
            Object.entries(all).map(([name, value]) => [name, [...value.dataSync()]]),
          );
        });
      const found = numbersOf(filled(clean, paddings, junk));
      expect(found).toEqual(numbersOf(filled(clean, paddings, [0])));
      for (const [name, values] of Object.entries(found))
        expect(values.every(Number.isFinite), name).toBe(true);
    }),
    { numRuns: runs(8, 3) },
  );
});

describe.each(engines)('%s', (_, { engine, available }) => {
  test.skipIf(!available)('compiled, padding changes no bit', async () => {
    const norm = build(BatchNorm.config({ dim: D }));
    const stack = build(StackedTransformer.config(transformer));
    const logits = build(FullSoftmax.config(smooth));
    const layers: Record<string, BaseLayer> = { norm, stack, logits };
    const theta = Object.fromEntries(
      Object.entries(layers).map(([name, layer]) => [name, randomTheta(layer)] as const),
    );
    // Averages have no gradient.
    const { moving_mean, moving_variance, ...norms } = theta.norm!;
    const trained = { ...theta, norm: norms };
    const step = ({ x, paddings, theta }: { x: Tensor; paddings: Tensor; theta: typeof trained }) => {
      const loss = (theta: any) => {
        const averages = { moving_mean: tf.zeros([D]), moving_variance: tf.ones([D]) };
        const normed = runInContext({ theta: { ...averages, ...theta.norm } }, () => norm.fprop(x, paddings));
        const encoded = runInContext({ theta: theta.stack }, () =>
          stack.fprop(tf.add(normed, x), { seen: hidden(paddings), paddings }),
        );
        const { avgXent } = runInContext({ theta: theta.logits }, () =>
          logits.fprop(tf.add(encoded, x), weightsOf(paddings), labels([B, T])),
        );
        return { value: avgXent, aux: {} };
      };
      return valueAndGrad(loss, theta) as never;
    };
    const host = (x: Tensor): HostTensor => ({
      shape: x.shape,
      dtype: 'float32',
      data: x.dataSync() as Float32Array,
    });
    const values = Object.fromEntries(
      Object.entries(trained).map(([name, each]) => [
        name,
        Object.fromEntries(Object.entries(each).map(([path, value]) => [path, host(value)])),
      ]),
    );
    const mask = [0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1];
    const clean = numbers(B * T * D);
    const inputs = (junk: number[]) => ({
      x: { shape: [B, T, D], dtype: 'float32', data: filled(clean, mask, junk) } as HostTensor,
      paddings: { shape: [B, T], dtype: 'float32', data: Float32Array.from(mask) } as HostTensor,
      theta: values,
    });
    const executable = await compile(step as never, inputs([0]) as never, { engine });
    const run = async (junk: number[]) => structuredClone(await executable.run(inputs(junk) as never));
    const expected = (await run([0])) as any;
    expect(Number.isFinite(expected.value.data[0])).toBe(true);
    for (const junk of [[Number.NaN], [Infinity, 1], [-3e38, Number.NaN]])
      expect(await run(junk)).toEqual(expected);
    await executable.dispose();
  });
});

test('no gradient of what was not selected gets through', () => {
  const mask = tf.tensor1d([1, 0], 'bool');
  const gradients = tf.grads((x: Tensor, y: Tensor) => tf.where(mask, x, y));
  const dys = gradients([tf.ones([2]), tf.ones([2])], tf.tensor1d([2, Number.NaN]));
  expect(dys.map((dy) => [...dy.dataSync()])).toEqual([
    [2, 0],
    [0, Number.NaN],
  ]);
  // The division is not finite where it was not asked for.
  const x = tf.tensor1d([1, 0]);
  const slope = tf.grad((x: Tensor) => tf.sum(selected(tf.sqrt(selected(x, mask)), mask)));
  expect(Number.isNaN(slope(x).dataSync()[1])).toBe(false);
});

test('weights differ from what they weigh in shape', () => {
  expect(() => weightedSum(tf.zeros([2, 3]), tf.zeros([3]))).toThrow(
    'expected a weight for each of the values [2, 3], got weights [3].',
  );
});
