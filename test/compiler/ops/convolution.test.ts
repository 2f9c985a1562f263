/** @file Convolution and pooling: what is counted, refused, rounded and passed on, beside the cases of each operation. */
import { describe, expect, test } from 'vitest';
import {
  costAnalysis,
  evalShape,
  type HostTensor,
  type Tensor,
  withPrecision,
} from '../../../src/compiler/index.js';
import { roundOperand } from '../../../src/compiler/program/precision.js';
import { engines } from '../engines.js';
import { compiledResults, expectCloseToLargest, floats, host, tf, withGradient } from '../support.js';

const spec = (...shape: number[]) => ({ shape, dtype: 'float32' as const });
const [image, filter] = [spec(2, 9, 8, 3), spec(3, 2, 3, 5)];

const conv = (x: Tensor, w: Tensor): any => tf.conv2d(x as tf.Tensor4D, w as tf.Tensor4D, 2, 'same');

describe('cost', () => {
  const gradients = (f: (...xs: any[]) => Tensor, count: number) => (inputs: any) =>
    withGradient(f, count)(inputs);

  test('a multiply-add for each output, tap and channel, and as many for each gradient', () => {
    // 2 x 5 x 4 x 5 outputs, each a sum over 3 x 2 x 3 products.
    const once = 2 * (2 * 5 * 4 * 5) * (3 * 2 * 3);
    const { byOp } = costAnalysis(gradients(conv, 2), [image, filter]);
    for (const op of ['Conv2D', 'Conv2DBackpropInput', 'Conv2DBackpropFilter'])
      expect(byOp[op], op).toMatchObject({ count: 1, flops: once });
  });

  test('dilation reaches further and costs the same', () => {
    const dilated = (x: any, w: any) => tf.conv2d(x, w, 1, 'same', 'NHWC', 3);
    const { byOp } = costAnalysis(gradients(dilated, 2), [image, filter]);
    const once = 2 * (2 * 9 * 8 * 5) * (3 * 2 * 3);
    for (const op of ['Conv2D', 'Conv2DBackpropInput', 'Conv2DBackpropFilter'])
      expect(byOp[op]?.flops, op).toBe(once);
  });

  test('depthwise, each channel on its own', () => {
    const depthwise = (x: any, w: any) => tf.depthwiseConv2d(x, w, 1, 'valid');
    const { byOp } = costAnalysis(gradients(depthwise, 2), [image, spec(3, 3, 3, 2)]);
    const once = 2 * (2 * 7 * 6 * 6) * 9;
    for (const op of ['', 'BackpropInput', 'BackpropFilter'])
      expect(byOp[`DepthwiseConv2dNative${op}`]?.flops, op).toBe(once);
  });

  test('volumes: also a multiply-add for each output, tap and channel', () => {
    const volumes = (x: any, w: any) => tf.conv3d(x, w, 2, 'same');
    const { byOp } = costAnalysis(gradients(volumes, 2), [spec(2, 5, 6, 7, 3), spec(2, 3, 2, 3, 4)]);
    const once = 2 * (2 * 3 * 3 * 4 * 4) * (2 * 3 * 2 * 3);
    for (const op of ['Conv2D', 'Conv2DBackpropInput', 'Conv2DBackpropFilter'])
      expect(byOp[op]?.flops, op).toBe(once);
  });

  test('FLOPs of pooling: one comparison or addition per output and cell of its window', () => {
    for (const [op, pool] of [
      ['MaxPool', tf.maxPool],
      ['AvgPool', tf.avgPool],
    ] as const) {
      const { byOp } = costAnalysis(
        gradients((x: any) => pool(x, [3, 2], 2, 'same'), 1),
        [image],
      );
      expect(byOp[op]?.flops).toBe(2 * 5 * 4 * 3 * 6);
      expect(byOp[`${op}Grad`]?.flops).toBe(2 * 5 * 4 * 3 * 6);
    }
  });

  test('the reported precision is that of most products', () => {
    const f = (x: any, w: any) => withPrecision('bfloat16', () => conv(x, w));
    expect(costAnalysis(f, image, filter).precision).toBe('bfloat16');
    expect(costAnalysis(conv, image, filter).precision).toBe('float32');
  });
});

describe('what is refused', () => {
  test.each([
    [
      'depthwiseConv2d: a window of 3x3 cells (3x9 with dilation) does not fit into float32[2,9,8,3].',
      () =>
        evalShape(
          (x: any, w: any) => tf.depthwiseConv2d(x, w, 1, 'valid', 'NHWC', [1, 4]),
          image,
          spec(3, 3, 3, 1),
        ),
    ],
  ])('%s', (message, call) => {
    expect(call).toThrow(message);
  });
});

describe.each(engines)('engine %s', (_, { engine, available }) => {
  const run = (f: (...xs: any[]) => any, inputs: HostTensor[]) =>
    compiledResults((xs: Tensor[]) => f(...xs), inputs, { engine });

  test.skipIf(!available)('NaN reaches every window that sees it, and no other', async () => {
    const x = floats([1, 4, 6, 1]);
    x.data[8] = Number.NaN;
    for (const pool of [tf.maxPool, tf.avgPool]) {
      const [pooled] = await run((y) => pool(y, 2, 2, 'valid'), [x]);
      expect([...pooled!.data].map(Number.isNaN)).toEqual([false, true, false, false, false, false]);
    }
    const ones = host([1, 3, 1, 1], [1, 1, 1]);
    const [sums] = await run((y, w) => tf.conv2d(y, w, 1, 'same'), [x, ones]);
    expect([...sums!.data].flatMap((value, i) => (Number.isNaN(value) ? [i] : []))).toEqual([7, 8, 9]);
  });

  test.skipIf(!available)('infinities are largest and smallest, and padding is never taken', async () => {
    const [low, high] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
    const x = host([1, 1, 5, 1], [low, low, -3, high, low]);
    const [pooled] = await run((y) => tf.maxPool(y, [3, 2], 2, 'same'), [x]);
    expect([...pooled!.data]).toEqual([low, high, low]);
  });

  test.skipIf(!available)(
    'bfloat16 rounds what is multiplied, in gradients too, and nothing else',
    async () => {
      const [x, w, dy] = [
        floats([2, 6, 5, 3]),
        floats([3, 3, 3, 4], -1, 1, 5),
        floats([2, 3, 3, 4], -1, 1, 6),
      ];
      const rounded = ({ data, ...rest }: HostTensor): HostTensor => ({
        ...rest,
        data: roundOperand(data as Float32Array, 'bfloat16'),
      });
      const grads = (x: any, w: any, dy: any): Tensor[] =>
        tf.grads((a: any, b: any) => conv(a, b))([x, w], dy);
      const inHalf = (a: any, b: any, d: any) => {
        const both = withPrecision('bfloat16', () => [conv(a, b), ...grads(a, b, d)]);
        return [...both, tf.maxPool(a, 2, 2, 'same'), tf.avgPool(a, 2, 2, 'same')];
      };
      const whole = (a: any, b: any, d: any) => [conv(a, b), ...grads(a, b, d)];
      for (const on of [engine, 'eager'] as const) {
        const actual = await compiledResults(([a, b, d]: any) => inHalf(a, b, d), [x, w, dy], { engine: on });
        const expected = await compiledResults(([a, b, d]: any) => whole(a, b, d), [x, w, dy].map(rounded), {
          engine: 'eager',
        });
        expected.forEach((tensor, i) => {
          expectCloseToLargest(actual[i]!, tensor, `${on}, result ${i}`);
        });
        const [pools] = [actual.slice(3)];
        const exact = await compiledResults(
          ([a]: any) => [tf.maxPool(a, 2, 2, 'same'), tf.avgPool(a, 2, 2, 'same')],
          [x],
          { engine: 'eager' },
        );
        exact.forEach((tensor, i) => {
          expectCloseToLargest(pools[i]!, tensor, `${on}, pool ${i}`);
        });
      }
    },
  );
});

test('the mean beside padding has the gradient of a mean, on tfjs itself too', async () => {
  // Windows of 2 x 2, 2 x 1, 1 x 2 and 1 x 1 real cells.
  const f = (x: any) => tf.grad((y: any) => tf.avgPool(y, 2, 2, 'same') as any)(x, tf.ones([1, 2, 2, 1]));
  const [gradient] = await compiledResults(([x]: any) => [f(x)], [floats([1, 3, 3, 1])], { engine: 'eager' });
  const [whole, half] = [0.25, 0.5];
  expect([...gradient!.data]).toEqual([whole, whole, half, whole, whole, half, half, half, 1]);
});
