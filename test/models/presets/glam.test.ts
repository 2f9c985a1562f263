/** @file GLaM and Grok: sizes by hand, initial values, and a loss of packed rows. */
import { expect, test } from 'vitest';
import { sizeOf, tf } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import { type AuxLoss, listVariables, type TransformerLm } from '../../../src/layers/index.js';
import { glamLm, grokLm } from '../../../src/models/index.js';
import { initialTheta, ints, run } from '../../layers/helpers.js';

const [V, D, F, N, H, L, E, X] = [11, 8, 6, 2, 3, 4, 3, 5];
const sizes = {
  ...{ vocabSize: V, modelDims: D, hiddenDims: F, numHeads: N, dimPerHead: H, numLayers: L },
};
const experts = { numExperts: E, expertDims: X };
const countOf = (lm: Config<TransformerLm>): number =>
  listVariables(build(lm)).reduce((sum, { shape }) => sum + sizeOf(shape), 0);

/** Two norms, four projections, and a bias for each head and each of 32 buckets. */
const attention = 2 * D + 4 * D * N * H + 32 * N;
const dense = 3 * D * F;
const sparse = D * E + 2 * E * D * X;
const ends = D + V * D;

test('sizes', () => {
  expect(countOf(glamLm(sizes))).toBe(L * (attention + dense) + ends);
  expect(countOf(glamLm({ ...sizes, ...experts }))).toBe(L * attention + (L / 2) * (dense + sparse) + ends);
  // One head of keys and values; biases.
  const multiQuery = 2 * D + (2 * D * N * H + N * H + D) + 2 * (D * H + H);
  expect(countOf(grokLm({ ...sizes, ...experts, numKvHeads: 1 }))).toBe(L * (multiQuery + sparse) + ends);
  expect(() => glamLm({ ...sizes, ...experts, numLayers: 3 })).toThrow(
    'glamLm: expected an even number of layers where there are experts, got 3.',
  );
});

test('weights begin as GShard has them', () => {
  const wide = glamLm({ ...sizes, modelDims: 64, hiddenDims: 32, numHeads: 8, dimPerHead: 16, numLayers: 2 });
  const theta = initialTheta(build(wide));
  const spread = (name: string): number => {
    const path = Object.keys(theta).find((each) => each.includes(name))!;
    return Math.sqrt(tf.mean(tf.square(theta[path]!)).dataSync()[0]!);
  };
  const close = (name: string, expected: number) =>
    expect(Math.abs(spread(name) / expected - 1), name).toBeLessThan(0.05);
  close('self_attention/query/w', (64 * 16) ** -0.5);
  close('self_attention/key/w', 64 ** -0.5);
  close('self_attention/post/w', (8 * 16) ** -0.5);
  // Uniform within sqrt(3 / fan-in).
  close('ffn_layer1/linear/w', 64 ** -0.5);
  close('ffn_layer2/linear/w', 32 ** -0.5);
  close('softmax/embedding/w', 1);
});

test('a loss of packed rows, with that of the experts', () => {
  const lm = build(glamLm({ ...sizes, ...experts }));
  const theta = initialTheta(lm);
  const ids = ints([1, 2, 3, 4, 5, 6, 7, 8], [2, 4]);
  const auxLosses: AuxLoss[] = [];
  const { avgXent } = run(
    theta,
    () =>
      lm.fprop(
        {
          ids,
          segmentIds: ints([1, 1, 2, 2, 1, 1, 1, 1], [2, 4]),
          segmentPos: ints([0, 1, 0, 1, 0, 1, 2, 3], [2, 4]),
        },
        { classIds: ids, classWeights: tf.ones([2, 4]) },
      ),
    { auxLosses, prngKey: ints([3, 4], [2]) },
  );
  expect(avgXent.dataSync()[0]).toBeGreaterThan(1);
  expect(avgXent.dataSync()[0]).toBeLessThan(10);
  expect(auxLosses.map(({ name }) => name).some((name) => /load_balance|aux/.test(name))).toBe(true);
});
