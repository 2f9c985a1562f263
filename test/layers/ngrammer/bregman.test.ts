/** @file Bregman components against divergences and plain loops, and the n-grammer over their coefficients. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import {
  type BaseLayer,
  BregmanNgrammer,
  BregmanPCA,
  decodeStateSpecs,
  listVariables,
} from '../../../src/layers/index.js';
import {
  checkGradients,
  expectClose,
  ints,
  isState,
  numbers,
  randomTheta,
  run,
  stateOf,
  tensor,
} from '../helpers.js';
import { type Matrix, matrix, multiply } from '../plain.js';

const [B, T, N, H, K, V] = [2, 4, 2, 4, 2, 5];
const ngrammer = (values: object = {}) =>
  BregmanNgrammer.config({
    ...{ numHeads: N, dimPerHead: H, unigramVocabSize: 7, ngramVocabSize: V, ngramEmbDim: 3 },
    ...{ numComponents: K, endStep: 10, coefficientsSteps: 3, ...values },
  });

const activations = {
  IDENTITY: { settings: {}, f: (row: number[]) => row, inverse: (row: number[]) => row },
  LEAKY_RELU: {
    settings: { negativeSlope: 0.25 },
    f: (row: number[]) => row.map((v) => (v < 0 ? v / 4 : v)),
    inverse: (row: number[]) => row.map((v) => (v < 0 ? 4 * v : v)),
  },
  SOFTMAX: {
    settings: {},
    f: (row: number[]) => {
      const exps = row.map(Math.exp);
      return exps.map((e) => e / exps.reduce((a, b) => a + b));
    },
    inverse: (row: number[]) => {
      const logs = row.map((v) => Math.log(Math.max(v, 1e-6)));
      return logs.map((v) => v - logs.reduce((a, b) => a + b) / logs.length);
    },
  },
} as const;

const norm = (x: Matrix): number => Math.sqrt(x.flat().reduce((sum, v) => sum + v * v, 0));
const transposed = (x: Matrix): Matrix => x[0]!.map((_, j) => x.map((row) => row[j]!));
const zip = (a: Matrix, b: Matrix, f: (x: number, y: number) => number): Matrix =>
  a.map((row, i) => row.map((v, j) => f(v, b[i]![j]!)));
const unit = (x: Matrix): Matrix => {
  const factor = Math.sqrt(x.flat().length) / Math.max(norm(x), 1e-6);
  return x.map((row) => row.map((v) => v * factor));
};

test.each(['IDENTITY', 'LEAKY_RELU', 'SOFTMAX'] as const)(
  'coefficients, mean and components of a training step: %s',
  (activationType) => {
    const { settings, f, inverse } = activations[activationType];
    const [steps, rate, beta] = [4, 0.1, 0.9];
    const layer = build(
      BregmanPCA.config({
        ...{ inputDims: H, numComponents: K, endStep: 4, activationType, ...settings },
        ...{ coefficientsSteps: steps, coefficientsLr: rate, constantLrSchedule: false, meanBeta: 0.7 },
      }),
    );
    const theta = { ...randomTheta(layer), step: tf.scalar(1) as Tensor };
    const rows = 3;
    // Probabilities for the softmax.
    const x = matrix(numbers(rows * H, 3), H).map((row) =>
      activationType === 'SOFTMAX' ? f([...row]) : [...row],
    );
    const junk = [1e30, Number.NaN, 1, 2];
    const inputs = tf.tensor2d([...x, junk]) as Tensor;
    const updatedVars: Record<string, Tensor> = {};
    const kept = tf.tensor1d([1, 1, 1, 0], 'bool') as Tensor;
    const coefficients = run(theta, () => layer.fprop(inputs, kept), { updatedVars });

    const of = (name: string): Matrix => matrix(theta[name as 'step']!.dataSync(), H);
    const components = of('components');
    const batchMean = inverse(transposed(x).map((column) => column.reduce((a, b) => a + b) / rows));
    const mean = of('mean')[0]!.map((v, j) => 0.7 * v + 0.3 * batchMean[j]!);
    const residual = (c: Matrix): Matrix =>
      multiply(c, components).map((row, i) =>
        f(row.map((v, j) => v + mean[j]!)).map((v, j) => v - x[i]![j]!),
      );
    let c: Matrix = x.map(() => [0, 0]);
    let momentum = c;
    for (let i = 0; i < steps; i++) {
      const gradient = multiply(residual(c), transposed(components));
      momentum = zip(momentum, unit(gradient), (m, g) => beta * m + (1 - beta) * g);
      c = zip(c, momentum, (v, m) => v - rate * (1 - i / steps) * m);
    }
    expectClose(coefficients, [...c.flat(), 0, 0], 1e-4);
    expectClose(updatedVars.mean!, mean, 1e-4);
    const gradient = unit(multiply(transposed(c), residual(c)));
    const moved = zip(of('components_momentum'), gradient, (m, g) => 0.9 * m + 0.1 * g);
    expectClose(updatedVars.components_momentum!, moved.flat(), 1e-4);
    // Step 1 of 4.
    expectClose(updatedVars.components!, zip(components, moved, (v, m) => v - 0.75 * 0.01 * m).flat(), 1e-4);
    expect(updatedVars.step!.dataSync()[0]).toBe(2);
  },
);

test('components rest in evaluation and outside of their steps; inputs are made of coefficients again', () => {
  const layer = build(BregmanPCA.config({ inputDims: [2, 2], numComponents: K, startStep: 2, endStep: 3 }));
  const theta = randomTheta(layer);
  const x = tensor([3, 2, 2]);
  const updates = (step: number, doEval = false) => {
    const updatedVars: Record<string, Tensor> = {};
    run({ ...theta, step: tf.scalar(step) as Tensor }, () => layer.fprop(x), { updatedVars, doEval });
    return updatedVars;
  };
  expect(updates(2, true)).toEqual({});
  for (const step of [1, 3]) expectClose(updates(step).mean!, theta.mean!.dataSync(), 0);
  expect(updates(2).mean!.dataSync()).not.toEqual(theta.mean!.dataSync());
  const c = tensor([3, K], 4);
  const rows = multiply(matrix(c.dataSync(), K), matrix(theta.components!.dataSync(), 4));
  const expected = rows.flatMap((row) => row.map((v, j) => v + theta.mean!.dataSync()[j]!));
  const made = run(theta, () => layer.reconstruct(c));
  expect(made.shape).toEqual([3, 2, 2]);
  expectClose(made, expected);
});

test('what is trained has the gradients of finite differences', () => {
  const layer = build(ngrammer());
  const values = randomTheta(layer);
  const states = new Set(
    listVariables(layer)
      .filter(isState)
      .map(({ path }) => path),
  );
  const those = (ofState: boolean) =>
    Object.fromEntries(Object.entries(values).filter(([path]) => states.has(path) === ofState));
  const [x, ids] = [tensor([B, T, N * H]), ints(Array(B * T).fill(0), [B, T])];
  const call = () => layer.fprop(ids, x);
  checkGradients(layer, [], call, { theta: those(false), state: those(true), doEval: true, probes: 1 });
});

test('pairs of coefficients, within sequences and not across padding, whole and in a decode', () => {
  const layer = build(ngrammer({ concatNgrams: false, ngramEmbDim: H }));
  const theta = randomTheta(layer);
  const [x, ids] = [tensor([1, T, N * H]), ints(Array(T).fill(0), [1, T])];
  const part = (name: string) =>
    layer.children.get(name)! as BaseLayer & { fprop(x: Tensor, paddings?: Tensor): Tensor };
  const paddings = tf.tensor2d([[0, 1, 0, 0]]) as Tensor;
  const expected = (before: number[], padded?: Tensor) =>
    run(
      theta,
      () => {
        const coefficients = part('bregman_compression_layer').fprop(tf.reshape(x, [1, T, N, H]), padded);
        const parts = [0, 1].map((i) => {
          const c = matrix([...coefficients.dataSync()], K).filter((_, row) => row % N === i);
          const at = (k: number, l: number, v: number): number =>
            theta.correlation!.dataSync()[((k * K + l) * V + v) * N + i]!;
          const scores = c.map((own, t) =>
            Array.from({ length: V }, (_, v) =>
              c[before[t]!]!.reduce(
                (sum, a, k) => sum + own.reduce((inner, b, l) => inner + a * b * at(k, l, v), 0),
                0,
              ),
            ),
          );
          const table = matrix(theta.embedding_table!.dataSync(), N).map((row) => row[i]!);
          const rows = multiply(scores, matrix(table, H));
          const normed = part(`ngram_layer_norm_${i}`).fprop(tf.tensor3d([rows as number[][]]) as Tensor);
          return tf.add(part(`emb_layer_norm_${i}`).fprop(tf.slice(x, [0, 0, i * H], [1, T, H])), normed);
        });
        return tf.concat(parts, -1) as Tensor;
      },
      { doEval: true },
    );
  const segmentPos = ints([0, 1, 2, 0], [1, T]);
  const outputs = run(theta, () => layer.fprop(ids, x, { segmentPos, paddings }), { doEval: true });
  const kept = tf.tensor3d([[[1], [0], [1], [1]]]);
  expectClose(outputs, tf.mul(expected([0, 0, 2, 3], paddings), kept).dataSync(), 1e-4);
  // In one block, of which all but the last token belong to the prompt, a decode has the same coefficients.
  const decodeState = stateOf(decodeStateSpecs(layer, 1, T));
  const args = { timeStep: tf.scalar(0, 'int32') as Tensor, length: tf.scalar(T - 1, 'int32') as Tensor };
  const decoded = run(theta, () => layer.extendStep(ids, x, args), { decodeState, doEval: true });
  expectClose(decoded, expected([0, 0, 1, 2]).dataSync(), 1e-4);
  const all = run(theta, () => part('bregman_compression_layer').fprop(tf.reshape(x, [1, T, N, H])), {
    doEval: true,
  });
  expectClose(decodeState.coefficients!, tf.slice(all, [0, T - 2, 0, 0], [1, 1, N, K]).dataSync());
});

test('settings that do not fit', () => {
  expect(() => build(ngrammer({ numComponents: 5 }))).toThrow(
    'model (BregmanNgrammer): numComponents: expected at most dimPerHead 4, got 5.',
  );
  expect(() => build(ngrammer({ startStep: 10 }))).toThrow(
    'endStep (BregmanNgrammer): expected more than startStep 10; endStep is 10',
  );
  expect(() => build(ngrammer({ activationType: 'LEAKY_RELU' }))).toThrow(
    'negativeSlope (BregmanNgrammer): expected a slope above 0 for LEAKY_RELU, whose inverse divides by it',
  );
  const layer = build(BregmanPCA.config({ inputDims: 3, numComponents: 1, endStep: 1 }));
  expect(() => run(randomTheta(layer), () => layer.fprop(tensor([2, 4])))).toThrow(
    'model (BregmanPCA): expected inputs [B, 3], got [2, 4].',
  );
});
