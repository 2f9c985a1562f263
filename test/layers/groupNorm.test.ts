/** @file Group norm against its formula by plain loops. */
import { expect, test } from 'vitest';
import { tf } from '../../src/compiler/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import { GroupNorm, LayerNorm, listVariables, WeightCollection } from '../../src/layers/index.js';
import { checkGradients, expectClose, initialTheta, randomTheta, run, tensor } from './helpers.js';

const DIM = 6;
const epsilon = 1e-3;
const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

/** x [batch, time, positions, DIM] in groups of `size`, each with the mean and variance of its elements at `seen` times. */
function normalized(
  x: tf.Tensor,
  size: number,
  seen: (b: number, t: number, other: number) => boolean,
): number[] {
  const [batch, time, positions] = x.shape as [number, number, number];
  const values = x.dataSync();
  const at = (b: number, t: number, p: number, d: number) =>
    values[((b * time + t) * positions + p) * DIM + d]!;
  const indices = (count: number) => [...Array(count).keys()];
  const group = (b: number, t: number, d: number, f: (value: number, at: number) => number): number => {
    const first = d - (d % size);
    return mean(
      indices(time)
        .filter((other) => seen(b, t, other))
        .flatMap((other) =>
          indices(positions).flatMap((p) => indices(size).map((k) => f(at(b, other, p, first + k), other))),
        ),
    );
  };
  return indices(batch).flatMap((b) =>
    indices(time).flatMap((t) =>
      indices(positions)
        .flatMap(() => indices(DIM))
        .map((d, i) => {
          const m = (when: number) => group(b, when, d, (value) => value);
          const variance = group(b, t, d, (value, when) => (value - m(when)) ** 2);
          return (at(b, t, Math.floor(i / DIM), d) - m(t)) / Math.sqrt(variance + epsilon);
        }),
    ),
  );
}

function check(
  values: Partial<Config<GroupNorm>>,
  size: number,
  shape: readonly [number, number, number, number] = [2, 3, 2, DIM],
): void {
  const layer = build(GroupNorm.config({ dim: DIM, ...values }));
  const theta = randomTheta(layer);
  const x = tensor([...shape]);
  const [gamma, beta] = [theta.gamma!.dataSync(), theta.beta!.dataSync()];
  const seen = (_: number, t: number, other: number) => !values.cumulative || other <= t;
  const expected = normalized(x, size, seen).map(
    (value, i) => value * (1 + gamma[i % DIM]!) + beta[i % DIM]!,
  );
  expectClose(
    run(theta, () => layer.fprop(x)),
    expected,
  );
  checkGradients(layer, [x], (input) => layer.fprop(input!));
}

test.each([
  ['two groups', { numGroups: 2 }, 3],
  ['one group', { numGroups: 1 }, 6],
  ['a group for each element', { numGroups: 6 }, 1],
  ['no group below the least size', { numGroups: 6, minGroupSize: 2 }, 2],
  ['fewer elements than groups', { numGroups: 32, minGroupSize: 3 }, 3],
  ['what came before alone', { numGroups: 2, cumulative: true }, 3],
])('GroupNorm with %s', (_, values, size) => check(values, size));

// torch.nn.functional.group_norm(torch.arange(12.).reshape(1, 4, 3), 2, eps=1e-3): each group has six of the numbers, whose
// variance is 35 / 12.
test('GroupNorm of a row of numbers', () => {
  const layer = build(GroupNorm.config({ dim: 4, numGroups: 2 }));
  const x = tf.transpose(tf.reshape(tf.range(0, 12), [1, 4, 3]), [0, 2, 1]);
  const group = [0, 1, 2, 3, 4, 5].map((value) => (value - 2.5) / Math.sqrt(35 / 12 + epsilon));
  const expected = [0, 1, 2].flatMap((t) => [group[t]!, group[3 + t]!, group[t]!, group[3 + t]!]);
  expectClose(
    run(initialTheta(layer), () => layer.fprop(x)),
    expected,
  );
});

test('GroupNorm of vectors with one group is a layer norm', () => {
  const layer = build(GroupNorm.config({ dim: DIM, numGroups: 1, useScale: false, useBias: false }));
  const peer = build(LayerNorm.config({ dim: DIM, epsilon, useScale: false, useBias: false }));
  const x = tensor([4, DIM]);
  expectClose(
    run({}, () => layer.fprop(x)),
    [...run({}, () => peer.fprop(x)).dataSync()],
  );
});

test('GroupNorm counts no padding', () => {
  const layer = build(GroupNorm.config({ dim: DIM, numGroups: 2 }));
  const theta = initialTheta(layer);
  const x = tensor([2, 3, 2, DIM]);
  const paddings = tf.tensor2d([0, 0, 1, 0, 1, 1], [2, 3]);
  const lengths = [2, 1];
  const expected = normalized(x, 3, (b, _, other) => other < lengths[b]!).map((value, i) => {
    const [b, t] = [Math.floor(i / (6 * DIM)), Math.floor(i / (2 * DIM)) % 3];
    return t < lengths[b]! ? value : 0;
  });
  expectClose(
    run(theta, () => layer.fprop(x, paddings)),
    expected,
  );
  const shown = build(GroupNorm.config({ dim: DIM, numGroups: 2, setPaddedOutputToZero: false }));
  const outputs = run(theta, () => shown.fprop(x, paddings)).dataSync();
  expect(outputs[2 * 2 * DIM]).not.toBe(0);
  expectClose(tf.tensor1d([...outputs].slice(0, 2 * 2 * DIM)), expected.slice(0, 2 * 2 * DIM));
});

test('the variables of GroupNorm skip weight decay; sizes that do not divide are errors', () => {
  const layer = build(GroupNorm.config({ dim: DIM, numGroups: 2 }));
  expect(listVariables(layer).map(({ path, shape, collections }) => [path, shape, collections])).toEqual(
    ['beta', 'gamma'].map((name) => [name, [DIM], [WeightCollection.SKIP_LP_REGULARIZATION]]),
  );
  expect(() => build(GroupNorm.config({ dim: DIM, numGroups: 4 }))).toThrow(
    'model (GroupNorm): numGroups 4 has to divide dim 6.',
  );
  expect(() => build(GroupNorm.config({ dim: DIM, minGroupSize: 4 }))).toThrow(
    'model (GroupNorm): minGroupSize 4 has to divide dim 6.',
  );
});
