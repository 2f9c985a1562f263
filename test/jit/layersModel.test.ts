/** @file Models of tfjs-layers, compiled, against the same models on tfjs's cpu backend. */
import '@tensorflow/tfjs-backend-cpu';
import { createRequire } from 'node:module';
import { beforeEach, expect, test } from 'vitest';
import type { Tensor } from '../../src/compiler/index.js';
import { compileModel, type JitOptions } from '../../src/jit/index.js';
import { floats, tf } from '../compiler/support.js';

// As the compiler does: one copy of the engine.
const tfl = createRequire(import.meta.url)('@tensorflow/tfjs-layers') as any;
const quick: JitOptions = { engine: 'onnx', numThreads: 1, seed: 7 };

beforeEach(async () => {
  await tf.setBackend('cpu');
});

const tensor = (shape: number[], seed: number): Tensor =>
  tf.tensor(floats(shape, -1, 1, seed).data as Float32Array, shape);

const oneHot = (rows: number, classes: number): Tensor => {
  const ids = Array.from({ length: rows }, (_, i) => i % classes);
  return tf.oneHot(tf.tensor1d(ids, 'int32'), classes, 1, 0, 'float32');
};

function expectSame(actual: Tensor, expected: Tensor, what: string, tolerance = 2e-5): void {
  expect(actual.shape, what).toEqual(expected.shape);
  const [a, e] = [actual.dataSync(), expected.dataSync()];
  for (let i = 0; i < e.length; i++)
    expect(Math.abs(a[i]! - e[i]!), `${what}, element ${i}: ${a[i]}, ${e[i]}`).toBeLessThan(tolerance);
}

/** Two models of the same weights. */
function twins(make: () => any): [any, any] {
  const [a, b] = [make(), make()];
  b.setWeights(a.getWeights());
  return [a, b];
}

function expectSameWeights(actual: any, expected: any, tolerance?: number): void {
  const [a, e] = [actual.getWeights(), expected.getWeights()];
  expect(a.length).toBe(e.length);
  e.forEach((weight: Tensor, i: number) => void expectSame(a[i], weight, `weight ${i}`, tolerance));
}

const convnet = (): any =>
  tfl.sequential({
    layers: [
      tfl.layers.conv2d({
        inputShape: [8, 8, 2],
        filters: 4,
        kernelSize: 3,
        padding: 'same',
        useBias: false,
      }),
      tfl.layers.batchNormalization(),
      tfl.layers.activation({ activation: 'relu' }),
      tfl.layers.maxPooling2d({ poolSize: 2 }),
      tfl.layers.flatten(),
      tfl.layers.dense({
        units: 3,
        activation: 'softmax',
        kernelRegularizer: tfl.regularizers.l2({ l2: 0.01 }),
      }),
    ],
  });

test('fit, evaluate and predict as on the cpu backend, with callbacks, metrics, validation and a partial batch', async () => {
  const [plain, model] = twins(convnet);
  const [x, y] = [tensor([13, 8, 8, 2], 1), oneHot(13, 3)];
  const run = async (model: any, methods: any): Promise<any> => {
    model.compile({ optimizer: tf.train.adam(0.01), loss: 'categoricalCrossentropy', metrics: ['accuracy'] });
    const told: unknown[] = [];
    const tell = (what: string) => (i: number, logs: any) =>
      void told.push([what, i, Object.keys(logs).sort()]);
    const fitted = await methods.fit(x, y, {
      epochs: 3,
      batchSize: 4,
      shuffle: false,
      validationSplit: 0.25,
      classWeight: { 0: 1, 1: 2, 2: 0.5 },
      callbacks: [
        { onBatchEnd: tell('batch'), onEpochEnd: tell('epoch') },
        { onEpochEnd: (epoch: number) => void (model.model.stopTraining = epoch === 1) },
      ],
    });
    return { told, history: fitted.history, epochs: fitted.epoch };
  };
  const compiled = compileModel(model, quick);
  const [expected, actual] = [await run(plain, plain), await run(model, compiled)];
  expect(actual.told).toEqual(expected.told);
  expect(actual.epochs).toEqual([0, 1]);
  expect(Object.keys(actual.history)).toEqual(Object.keys(expected.history));
  for (const [key, values] of Object.entries<number[]>(expected.history))
    values.forEach((value, i) => void expect(actual.history[key][i], `${key} ${i}`).toBeCloseTo(value, 4));
  expectSameWeights(model, plain);
  const [loss, accuracy] = (await compiled.evaluate(x, y, { batchSize: 5 })) as Tensor[];
  const [plainLoss, plainAccuracy] = plain.evaluate(x, y, { batchSize: 5 });
  expectSame(loss!, plainLoss, 'loss');
  expectSame(accuracy!, plainAccuracy, 'accuracy');
  expectSame((await compiled.predict(x, { batchSize: 8 })) as Tensor, plain.predict(x), 'prediction');
  expect(await compiled.trainOnBatch(x, y)).toEqual(
    (await plain.trainOnBatch(x, y)).map((value: number) => expect.closeTo(value, 4)),
  );
  expectSameWeights(model, plain);
  await compiled.dispose();
});

test('a functional model with two inputs and outputs', async () => {
  const make = (): any => {
    const [a, b] = [tfl.input({ shape: [4] }), tfl.input({ shape: [3] })];
    const joined = tfl.layers
      .concatenate()
      .apply([a, tfl.layers.dense({ units: 2, activation: 'tanh' }).apply(b)]);
    const outputs = [1, 2].map((units) => tfl.layers.dense({ units, name: `out${units}` }).apply(joined));
    return tfl.model({ inputs: [a, b], outputs });
  };
  const [plain, model] = twins(make);
  const [x, y] = [
    [tensor([6, 4], 1), tensor([6, 3], 2)],
    [tensor([6, 1], 3), tensor([6, 2], 4)],
  ];
  for (const each of [plain, model]) each.compile({ optimizer: 'sgd', loss: 'meanSquaredError' });
  const compiled = compileModel(model, quick);
  const options = { epochs: 2, batchSize: 3, shuffle: false };
  const [expected, actual] = [await plain.fit(x, y, options), await compiled.fit(x, y, options)];
  expect(Object.keys(actual.history)).toEqual(['loss', 'out1_loss', 'out2_loss']);
  expect(Object.keys(expected.history)).toEqual(Object.keys(actual.history));
  expectSameWeights(model, plain);
  const [predicted, plainly] = [(await compiled.predict(x)) as Tensor[], plain.predict(x)];
  predicted.forEach((output, i) => void expectSame(output, plainly[i], `output ${i}`));
  // Another loss is another program.
  for (const each of [plain, model]) each.compile({ optimizer: 'sgd', loss: 'meanAbsoluteError' });
  expect(await compiled.trainOnBatch(x, y)).toEqual(
    (await plain.trainOnBatch(x, y)).map((value: number) => expect.closeTo(value, 4)),
  );
  await compiled.dispose();
});

test('dropout draws anew in each step and has no part in predictions', async () => {
  const model = tfl.sequential({
    layers: [
      tfl.layers.dense({ inputShape: [2], units: 400, useBias: false, kernelInitializer: 'ones' }),
      tfl.layers.dropout({ rate: 0.25 }),
      tfl.layers.dense({ units: 1, useBias: false, kernelInitializer: 'ones' }),
    ],
  });
  model.compile({ optimizer: tf.train.sgd(0), loss: 'meanAbsoluteError' });
  const [x, y] = [tf.tensor([[0.5, 0.5]]), tf.zeros([1, 1])];
  const compiled = compileModel(model, quick);
  const losses: number[] = [];
  for (let i = 0; i < 8; i++) losses.push((await compiled.trainOnBatch(x, y)) as number);
  expect(new Set(losses).size).toBeGreaterThan(5);
  for (const loss of losses) expect(Math.abs(loss - 400)).toBeLessThan(5 * Math.sqrt(400 / 3));
  expect(((await compiled.predict(x)) as Tensor).dataSync()[0]).toBeCloseTo(400, 3);
  const again = compileModel(model, quick);
  expect([await again.trainOnBatch(x, y), await again.trainOnBatch(x, y)]).toEqual(losses.slice(0, 2));
  await compiled.dispose();
  await again.dispose();
});
