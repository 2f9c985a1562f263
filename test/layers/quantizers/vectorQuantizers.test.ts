/** @file VectorQuantizer and RandomVectorQuantizer against plain loops, with padding and groups. */
import { describe, expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import { RandomVectorQuantizer, VectorQuantizer } from '../../../src/layers/index.js';
import { expectClose, randomTheta, run, tensor } from '../helpers.js';

const unit = (x: readonly number[]): number[] => {
  const norm = Math.sqrt(x.reduce((sum, value) => sum + value * value, 1e-12));
  return x.map((value) => value / norm);
};

/** Codes of vectors z, and the vectors of the codebook that are nearest, by comparing all of them. */
function nearest(z: readonly number[][], codebook: Tensor, normalized: boolean) {
  const [classes, groups, depth] = codebook.shape as [number, number, number];
  const shown = (x: readonly number[]): readonly number[] => (normalized ? unit(x) : x);
  const values = [...codebook.dataSync()];
  const vector = (v: number, g: number) =>
    shown(values.slice((v * groups + g) * depth, (v * groups + g + 1) * depth));
  const codes = z.map((row) =>
    Array.from({ length: groups }, (_, g) => {
      const latent = shown(row.slice(g * depth, (g + 1) * depth));
      const distances = Array.from({ length: classes }, (_, v) =>
        vector(v, g).reduce((sum, value, h) => sum + (value - latent[h]!) ** 2, 0),
      );
      return distances.indexOf(Math.min(...distances));
    }),
  );
  return { codes, quantized: codes.map((row) => row.flatMap((code, g) => [...vector(code, g)])) };
}

const rowsOf = (x: Tensor): number[][] =>
  tf.reshape(x, [-1, x.shape.at(-1)!]).arraySync() as unknown as number[][];

/** Coverage and perplexity of codes [N][G]. */
function usage(codes: readonly number[][], classes: number): [number, number] {
  const groups = codes[0]!.map((_, g) => {
    const counts = Array.from({ length: classes }, (_, v) => codes.filter((row) => row[g] === v).length);
    const shares = counts.filter((count) => count > 0).map((count) => count / codes.length);
    return [
      shares.length / classes,
      Math.exp(-shares.reduce((sum, share) => sum + share * Math.log(share), 0)),
    ];
  });
  const mean = (i: number): number => groups.reduce((sum, group) => sum + group[i]!, 0) / groups.length;
  return [mean(0), mean(1)];
}

const paddings = tf.tensor2d([
  [0, 0, 0, 1],
  [0, 0, 0, 0],
]);

describe.each([true, false])('VectorQuantizer, normalised: %s', (normalized) => {
  const fields = {
    numLatentClasses: 5,
    latentDim: 6,
    numGroups: 2,
    beta: 0.25,
    normalizeLatentVector: normalized,
    normalizeCodebook: normalized,
  };
  const layer = build(VectorQuantizer.config(fields));
  const theta = randomTheta(layer);
  const z = tensor([2, 4, 6], 3);
  const expected = nearest(rowsOf(z), theta.w!, normalized);
  const counted = [0, 1, 2, 4, 5, 6, 7];

  test('takes the nearest vectors, and 0 for padding', () => {
    const outputs = run(theta, () => layer.fprop(z, paddings));
    const masked = (rows: readonly number[][]): number[] =>
      rows.flatMap((row, i) => (i === 3 ? row.map(() => 0) : row));
    expectClose(outputs.zQ, masked(expected.quantized));
    expectClose(outputs.zCodes, masked(expected.codes));
    expectClose(
      tf.slice(
        run(theta, () => layer.lookUp(outputs.zCodes)),
        [0, 0, 0],
        [1, 3, 6],
      ),
      expected.quantized.slice(0, 3).flat(),
    );
    const [coverage, pplx] = usage(
      counted.map((i) => expected.codes[i]!),
      5,
    );
    expectClose(outputs.codebookCoverage, [coverage]);
    expectClose(outputs.pplx, [pplx]);
    expectClose(outputs.entropy, [Math.log(pplx)]);
    const [rows, means] = [rowsOf(z), expected.quantized];
    const distance = counted.reduce(
      (sum, i) => sum + rows[i]!.reduce((total, x, d) => total + (x - means[i]![d]!) ** 2, 0) / 6,
      0,
    );
    expectClose(outputs.loss, [(1.25 * distance) / 7]);
  });

  test('moves inputs by the commitment, and passes the gradient of its outputs to them', () => {
    const pull = tensor([2, 4, 6], 11);
    const gradient = tf.grad((x: Tensor) =>
      run(theta, () => {
        const { zQ, loss } = layer.fprop(x, paddings);
        return tf.add(loss, tf.sum(tf.mul(zQ, pull)));
      }),
    )(z);
    const pulls = rowsOf(pull);
    const by = rowsOf(z).map((row, i) =>
      row.map((x, d) =>
        i === 3 ? 0 : pulls[i]![d]! + (0.25 * 2 * (x - expected.quantized[i]![d]!)) / (6 * 7),
      ),
    );
    expectClose(gradient, by.flat());
  });
});

describe('RandomVectorQuantizer', () => {
  test('stacks, projects and compares, whatever stands in padding', () => {
    const layer = build(
      RandomVectorQuantizer.config({
        latentDim: 3,
        projectionDim: 4,
        numLatentClasses: 6,
        numGroups: 2,
        stackRatio: 2,
        normalizeLatentVector: true,
        normalizeCodebook: true,
      }),
    );
    const theta = randomTheta(layer);
    const junk = tf.concat([tensor([1, 3, 3], 5), tf.fill([1, 1, 3], Number.NaN)], 1);
    const z = tf.concat([junk, tensor([1, 4, 3], 6)], 0);
    const outputs = run(theta, () => layer.fprop(z, paddings));
    expect([...outputs.paddings.dataSync()]).toEqual([0, 1, 0, 0]);
    const stacked = tf.reshape(tensor([1, 4, 3], 6), [2, 6]);
    const projected = tf.add(tf.matMul(stacked, theta.random_proj as tf.Tensor2D), theta.random_bias!);
    const second = nearest(rowsOf(projected), theta.random_codebook!, true);
    const of = (x: Tensor): Tensor => tf.slice(x, [1, 0, 0], [1, -1, -1]);
    expectClose(of(outputs.zCodes), second.codes.flat());
    expectClose(of(outputs.zQ), second.quantized.flat());
    expect([...outputs.zCodes.dataSync()].slice(2, 4)).toEqual([0, 0]);
    expect(Number.isFinite(outputs.pplx.dataSync()[0])).toBe(true);
  });

  test('has a flat codebook for a single group', () => {
    const layer = build(
      RandomVectorQuantizer.config({ latentDim: 3, numLatentClasses: 6, lowRankCodebook: true }),
    );
    expect([...layer.variables.values()].map(({ path, shape }) => [path, shape])).toEqual([
      ['random_proj', [3, 16]],
      ['random_bias', [16]],
      ['random_codebook', [6, 16]],
    ]);
  });
});

test('groups divide the depth', () => {
  expect(() =>
    build(VectorQuantizer.config({ numLatentClasses: 4, latentDim: 6, numGroups: 4, beta: 1 })),
  ).toThrow('(VectorQuantizer): latentDim: expected a multiple of numGroups 4, got 6.');
  expect(() =>
    build(RandomVectorQuantizer.config({ numLatentClasses: 4, latentDim: 6, numGroups: 3 })),
  ).toThrow('(RandomVectorQuantizer): projectionDim: expected a multiple of numGroups 3, got 16.');
});
