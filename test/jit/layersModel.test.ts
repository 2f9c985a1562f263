/** @file Models of tfjs-layers, compiled, against the same models on tfjs's cpu backend. */
import '@tensorflow/tfjs-backend-cpu';
import { beforeEach, expect, test } from 'vitest';
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
    const [a, b] = [tfjs.input({ shape: [4] }), tfjs.input({ shape: [3] })];
    const joined = tfjs.layers
      .concatenate()
      .apply([a, tfjs.layers.dense({ units: 2, activation: 'tanh' }).apply(b)]);
    const outputs = [1, 2].map((units) => tfjs.layers.dense({ units, name: `out${units}` }).apply(joined));
    return tfjs.model({ inputs: [a, b], outputs });
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
  const model = tfjs.sequential({
    layers: [
      tfjs.layers.dense({ inputShape: [2], units: 400, useBias: false, kernelInitializer: 'ones' }),
      tfjs.layers.dropout({ rate: 0.25 }),
      tfjs.layers.dense({ units: 1, useBias: false, kernelInitializer: 'ones' }),
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

test('states of recurrent layers go on from call to call, and begin anew by resetStates', async () => {
  const make = (): any =>
    tfjs.sequential({
      layers: [
        tfjs.layers.bidirectional({
          layer: tfjs.layers.gru({ units: 2, stateful: true, returnSequences: true }),
          batchInputShape: [2, 3, 2],
        }),
        tfjs.layers.lstm({ units: 3, stateful: true }),
      ],
    });
  const [plain, model] = twins(make);
  const [x, y] = [tensor([4, 3, 2], 1), tensor([4, 3], 2)];
  for (const each of [plain, model]) each.compile({ optimizer: 'sgd', loss: 'meanSquaredError' });
  const compiled = compileModel(model, quick);
  const predictions = async (what: string): Promise<Tensor> => {
    const predicted = (await compiled.predict(x, { batchSize: 2 })) as Tensor;
    expectSame(predicted, plain.predict(x, { batchSize: 2 }), what);
    return predicted;
  };
  const first = await predictions('from zeros');
  expect([...(await predictions('from the states of the first call')).dataSync()]).not.toEqual([
    ...first.dataSync(),
  ]);
  const options = { batchSize: 2, epochs: 2, shuffle: false };
  await Promise.all([plain.fit(x, y, options), compiled.fit(x, y, options)]);
  expectSameWeights(model, plain);
  await predictions('from the states of training');
  // The model's own call goes on, too.
  expectSame(model.predict(x, { batchSize: 2 }), plain.predict(x, { batchSize: 2 }), 'on the cpu backend');
  for (const each of [plain, model]) each.resetStates();
  const [state] = model.layers[1].states_;
  expect([...state.dataSync()]).toEqual([0, 0, 0, 0, 0, 0]);
  await predictions('from zeros again');
  expect(() => model.layers[1].resetStates([tf.zeros([2, 3])])).toThrow(
    `Layer ${model.layers[1].name} expects 2 state(s), but it received 1.`,
  );
  await compiled.dispose();
});
