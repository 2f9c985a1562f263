/** @file Layers models over datasets of tf.data, compiled, against tfjs's own methods on its cpu backend. */
import '@tensorflow/tfjs-backend-cpu';
import { beforeEach, expect, test, vi } from 'vitest';
import type { Tensor } from '../../src/compiler/index.js';
import { compileModel } from '../../src/jit/index.js';
import { tf } from '../compiler/support.js';
import {
  convnet,
  expectSame,
  expectSameWeights,
  oneHot,
  quick,
  tensor,
  tfjs,
  twins,
} from './layersModels.js';

beforeEach(async () => {
  await tf.setBackend('cpu');
});

/** Batches of images and classes, of the given sizes. */
const images = (...sizes: number[]): any =>
  tfjs.data.generator(function* () {
    for (const [i, size] of sizes.entries())
      yield { xs: tensor([size, 8, 8, 2], i + 1), ys: oneHot(size, 3) };
  });

/** The history, what callbacks were told, and the tensors that training left behind. */
async function told(model: any, methods: any, dataset: any, args: any, stopAt: number): Promise<any> {
  const calls: unknown[] = [];
  const tell = (what: string) => (i: number, logs: object) =>
    void calls.push([what, i, Object.keys(logs ?? {}).sort()]);
  const before = tf.memory().numTensors;
  const history = await methods.fitDataset(dataset, {
    ...args,
    callbacks: [
      {
        ...{ onTrainBegin: () => void calls.push('begin'), onTrainEnd: () => void calls.push('end') },
        ...{ onEpochBegin: tell('epoch'), onBatchBegin: tell('batch'), onBatchEnd: tell('batch done') },
        onEpochEnd: tell('epoch done'),
      },
      { onEpochEnd: (epoch: number) => void (model.stopTraining = epoch === stopAt) },
    ],
  });
  return { history, calls, left: tf.memory().numTensors - before };
}

function expectSameHistory(actual: any, expected: any): void {
  expect(actual.epoch).toEqual(expected.epoch);
  expect(Object.keys(actual.history)).toEqual(Object.keys(expected.history));
  for (const [key, values] of Object.entries<number[]>(expected.history))
    values.forEach((value, i) => void expect(actual.history[key][i], `${key} ${i}`).toBeCloseTo(value, 5));
}

test('fitDataset trains, tells and stops as tfjs does, with a partial batch, weights and validation', async () => {
  const [plain, model] = twins(convnet);
  const compiled = compileModel(model, quick);
  const args = {
    epochs: 4,
    classWeight: { 0: 1, 1: 2, 2: 0.5 },
    validationData: images(3, 3, 3),
    validationBatches: 2,
    verbose: 0,
  };
  const run = (model: any, methods: any) => {
    model.compile({ optimizer: tf.train.adam(0.01), loss: 'categoricalCrossentropy', metrics: ['accuracy'] });
    return told(model, methods, images(4, 4, 2), args, 1);
  };
  const [expected, actual] = [await run(plain, plain), await run(model, compiled)];
  expect(actual.calls).toEqual(expected.calls);
  expectSameHistory(actual.history, expected.history);
  expect(actual.history.epoch).toEqual([0, 1]);
  expectSameWeights(model, plain);
  // The optimizer's slots.
  expect(actual.left).toBe(expected.left);

  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
  const { numTensors } = tf.memory();
  for (const batches of [undefined, 2, 9]) {
    const values = (await compiled.evaluateDataset(images(4, 1, 3), { batches: batches! })) as Tensor[];
    const plainly = await plain.evaluateDataset(images(4, 1, 3), { batches });
    values.forEach((value, i) => void expectSame(value, plainly[i], `value ${i} of ${batches} batches`));
    tf.dispose([values, plainly]);
  }
  expect(warn.mock.calls.map(([text]) => text.slice(0, 35))).toEqual(
    Array(2).fill('Your dataset iterator ran out of da'),
  );
  warn.mockRestore();
  expect(tf.memory().numTensors).toBe(numTensors);
  const wrong = () =>
    tfjs.data.generator(function* () {
      yield { x: tf.zeros([1]) };
    });
  const refused = /expected to generate objects of the form `{xs: xVal, ys: yVal}`/;
  await expect(compiled.evaluateDataset(wrong())).rejects.toThrow(refused);
  await expect(compiled.fitDataset(wrong(), { epochs: 1 })).rejects.toThrow(refused);
  // The model's own methods are back.
  await compiled.dispose();
  expect((await model.fitDataset(images(2), { epochs: 1, verbose: 0 })).epoch).toEqual([0]);
});

test('epochs of some batches of an endless dataset by names, with validation on arrays and early stopping', async () => {
  const make = (): any => {
    const [a, b] = [tfjs.input({ shape: [4], name: 'a' }), tfjs.input({ shape: [3], name: 'b' })];
    const joined = tfjs.layers.concatenate().apply([a, b]);
    const outputs = [1, 2].map((units) => tfjs.layers.dense({ units, name: `out${units}` }).apply(joined));
    return tfjs.model({ inputs: [a, b], outputs });
  };
  const [plain, model] = twins(make);
  const of = (rows: number, seed: number) => ({
    xs: { b: tensor([rows, 3], seed), a: tensor([rows, 4], seed + 1) },
    ys: { out1: tensor([rows, 1], seed + 2), out2: tensor([rows, 2], seed + 3) },
  });
  const dataset = (): any =>
    tfjs.data
      .generator(function* () {
        for (let i = 0; i < 5; i++) yield of(3, 4 * i);
      })
      .repeat();
  const { xs, ys } = of(5, 77);
  const run = async (model: any, methods: any): Promise<any> => {
    model.compile({ optimizer: tf.train.momentum(0.2, 0.9), loss: 'meanSquaredError' });
    return methods.fitDataset(dataset(), {
      ...{ epochs: 9, batchesPerEpoch: 3, verbose: 0, validationBatchSize: 2 },
      validationData: [
        [xs.a, xs.b],
        [ys.out1, ys.out2],
      ],
      callbacks: tfjs.callbacks.earlyStopping({ monitor: 'val_loss', patience: 1 }),
    });
  };
  const compiled = compileModel(model, quick);
  const [expected, actual] = [await run(plain, plain), await run(model, compiled)];
  expectSameHistory(actual, expected);
  expect(actual.epoch.length).toBeLessThan(9);
  expectSameWeights(model, plain);
  await compiled.dispose();
});
