/** @file The first operation that makes NaN or infinity is named, by layer, and nothing that was infinite on purpose. */
import { expect, test } from 'vitest';
import { firstNonFinite, ops, tf, valueAndGrad, withScope } from '../../../src/compiler/index.js';
import { host } from '../support.js';

const x = host([2, 3], [1, 2, 3, 4, 0, 6]);

/** Three layers, the second of which is given; sums what comes out. */
const net =
  (middle: (x: tf.Tensor) => tf.Tensor) =>
  (inputs: any): tf.Tensor => {
    const a = withScope('net/a', () => tf.mul(inputs.x, 2) as tf.Tensor);
    const b = withScope('net/b', () => middle(a));
    return withScope('net/c', () => tf.sum(tf.tanh(b)) as tf.Tensor);
  };

const gradientOf = (f: (inputs: any) => tf.Tensor) => (inputs: any) =>
  valueAndGrad((params) => ({ value: f(params), aux: {} }), inputs).grads;

test('finite results name nothing', async () => {
  expect(await firstNonFinite(net(tf.square), { x })).toBe(undefined);
});

test('the first of several, in pieces and in one', async () => {
  const f = net((a) => tf.sub(tf.exp(tf.mul(a, 50)), tf.exp(tf.mul(a, 60))));
  for (const pieceBytes of [1 << 20, 24, 1]) {
    expect(await firstNonFinite(f, { x }, { pieceBytes })).toEqual({
      ...{ layer: 'net/b', op: 'Exp', isGradient: false },
      ...{ value: 'infinity', spec: 'float32[2,3]', input: '' },
      place: expect.stringMatching(/^test\/compiler\/program\/firstNonFinite\.test\.ts:25:\d+$/),
    });
  }
});

test('ignores an infinity that no result depends on: the gradient of a discarded branch', async () => {
  const safe = net((a) => tf.where(tf.greater(a, 0), tf.log(a), tf.zerosLike(a)));
  expect(await firstNonFinite(safe, { x })).toBe(undefined);
  expect(await firstNonFinite(gradientOf(safe), { x })).toMatchObject({
    ...{ layer: 'net/b', isGradient: true, value: 'NaN' },
  });
});

test('ignores masks of -Infinity, but not the operation that turns them into NaN', async () => {
  const masked = (visible: number[]) =>
    net((a) => {
      const mask = tf.where(tf.tensor(visible, [3], 'bool'), 0, Number.NEGATIVE_INFINITY);
      return tf.softmax(tf.add(a, mask));
    });
  expect(await firstNonFinite(masked([1, 0, 1]), { x })).toBe(undefined);
  expect(await firstNonFinite(masked([0, 0, 0]), { x })).toMatchObject({
    ...{ layer: 'net/b', op: 'Softmax', value: 'NaN' },
  });
  const computed = net((a) => tf.softmax(tf.add(a, tf.log(tf.cast(tf.greater(a, 3), 'float32')))));
  expect(await firstNonFinite(computed, { x: host([2, 3], [1, 2, 3, 4, 5, 6]) })).toBe(undefined);
});

test('names the operation in the body of a loop, and ignores the branch that is not taken', async () => {
  const looped = net((a) => {
    const [last] = ops.scan(
      (state: tf.Tensor, row: tf.Tensor) => {
        const next = ops.cond(
          tf.greater(tf.min(row), 0),
          (given: tf.Tensor) => withScope('net/b/body', () => tf.log(given) as tf.Tensor),
          (given) => tf.abs(given),
          row,
        );
        return [tf.add(state, next), []];
      },
      tf.zeros([3]) as tf.Tensor,
      a,
    );
    return last;
  });
  expect(await firstNonFinite(looped, { x })).toBe(undefined);
  expect(await firstNonFinite(looped, { x: host([2, 3], [1, 2, 3, 4, 5, 6]) })).toBe(undefined);
  const shifted = net(
    (a) =>
      ops.scan(
        (state: tf.Tensor, row: tf.Tensor) => [
          withScope('net/b/body', () => tf.log(tf.sub(tf.add(state, row), 4)) as tf.Tensor),
          [],
        ],
        tf.zeros([3]) as tf.Tensor,
        a,
      )[0],
  );
  expect(await firstNonFinite(shifted, { x })).toMatchObject({
    ...{ layer: 'net/b/body', op: 'Log', value: 'NaN', spec: 'float32[3]' },
  });
});

test('names a non-finite input', async () => {
  const broken = { x: host([2, 3], [1, 2, 3, 4, Number.NaN, 6]) };
  expect(await firstNonFinite(net(tf.square), broken)).toEqual({
    ...{ layer: '', op: 'Input', isGradient: false },
    ...{ value: 'NaN', spec: 'float32[2,3]', input: 'x', place: '' },
  });
  const infinite = { x: host([2, 3], [1, 2, 3, 4, Number.POSITIVE_INFINITY, 6]) };
  // tanh of infinity is 1.
  expect(await firstNonFinite(net(tf.square), infinite)).toBe(undefined);
  expect(await firstNonFinite(({ x }) => tf.square(x), infinite)).toMatchObject({ op: 'Input', input: 'x' });
  expect(await firstNonFinite(({ x }) => tf.sub(x, x), infinite)).toMatchObject({ op: 'Sub', value: 'NaN' });
});
