/** @file Pooling and GlobalPooling against plain loops, with paddings and without. */
import { describe, expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import { GlobalPooling, Pooling, Pooling1D } from '../../src/layers/index.js';
import { checkGradients, expectClose, run, tensor } from './helpers.js';

/** The largest, or the mean, of what there is; 0 of nothing. */
const combined = (type: 'MAX' | 'AVG', cells: readonly number[]): number => {
  if (cells.length === 0) return 0;
  return type === 'MAX' ? Math.max(...cells) : cells.reduce((a, b) => a + b, 0) / cells.length;
};

/** Windows over x [B, H, W, D] from `before` on; rows of padding do not count. */
function pool(
  type: 'MAX' | 'AVG',
  x: Tensor,
  window: readonly [number, number],
  stride: readonly [number, number],
  before: readonly [number, number],
  outputs: readonly [number, number],
  isPadding: (b: number, row: number) => boolean = () => false,
): number[] {
  const [B, H, W, D] = x.shape as [number, number, number, number];
  const values = x.dataSync();
  const results: number[] = [];
  for (let b = 0; b < B; b++)
    for (let i = 0; i < outputs[0]; i++)
      for (let j = 0; j < outputs[1]; j++)
        for (let d = 0; d < D; d++) {
          const cells: number[] = [];
          for (let p = 0; p < window[0]; p++)
            for (let q = 0; q < window[1]; q++) {
              const [row, column] = [i * stride[0] + p - before[0], j * stride[1] + q - before[1]];
              if (row < 0 || row >= H || column < 0 || column >= W || isPadding(b, row)) continue;
              cells.push(values[((b * H + row) * W + column) * D + d]!);
            }
          results.push(combined(type, cells));
        }
  return results;
}

const TYPES = ['MAX', 'AVG'] as const;

describe.each(TYPES)('Pooling, %s', (poolingType) => {
  test.each([
    ["'SAME'", { windowShape: [3, 2], windowStride: [2, 1] }, [1, 0], [3, 6]],
    ["'VALID'", { windowShape: [3, 2], windowStride: [2, 1], padding: 'VALID' }, [0, 0], [2, 5]],
    ['windows beside each other', { windowShape: [2, 3] }, [0, 0], [3, 2]],
  ] as const)('%s', (_, fields, before, outputs) => {
    const layer = build(Pooling.config({ poolingType, ...(fields as object) } as never)) as Pooling;
    const x = tensor([2, 5, 6, 3]);
    const pooled = run({}, () => layer.fprop(x));
    expect(pooled.shape).toEqual([2, ...outputs, 3]);
    const window = fields.windowShape;
    const stride = 'windowStride' in fields ? fields.windowStride : window;
    expectClose(pooled, pool(poolingType, x, window, stride, before, outputs));
    checkGradients(layer, [x], (input) => layer.fprop(input!));
  });

  test('rows of padding do not count, and windows of nothing else give 0', () => {
    const layer = build(Pooling.config({ windowShape: [2, 2], poolingType }));
    // Below 0, so that a padding of zeros would be the largest.
    const x = tf.sub(tensor([2, 6, 4, 2]), 3) as Tensor;
    const lengths = [3, 6];
    const isPadding = (b: number, row: number): boolean => row >= lengths[b]!;
    const paddings = tf.tensor2d(
      lengths.flatMap((_, b) => Array.from({ length: 6 }, (_, row) => Number(isPadding(b, row)))),
      [2, 6],
    );
    const pooled = run({}, () => layer.fprop(x, paddings));
    expectClose(pooled, pool(poolingType, x, [2, 2], [2, 2], [0, 0], [3, 2], isPadding));
    expect([...layer.pooledPaddings(paddings).dataSync()].map(Math.abs)).toEqual([0, 0, 1, 0, 0, 0]);
    checkGradients(layer, [x], (input) => layer.fprop(input!, paddings));
  });
});

describe.each(TYPES)('GlobalPooling, %s', (poolingType) => {
  const x = tensor([2, 3, 4, 5]);
  /** The elements that come together, by what they come together in. */
  const groups = (keyOf: (b: number, i: number, j: number, d: number) => number | null): number[][] => {
    const found: number[][] = [];
    x.dataSync().forEach((value, at) => {
      const key = keyOf(Math.floor(at / 60), Math.floor(at / 20) % 3, Math.floor(at / 5) % 4, at % 5);
      if (key !== null) (found[key] ??= []).push(value);
    });
    return found;
  };

  test('over height and width', () => {
    const layer = build(GlobalPooling.config({ poolingDims: [1, 2], poolingType }));
    const pooled = run({}, () => layer.fprop(x));
    expect(pooled.shape).toEqual([2, 5]);
    expectClose(
      pooled,
      groups((b, _i, _j, d) => b * 5 + d).map((cells) => combined(poolingType, cells)),
    );
    checkGradients(layer, [x], (input) => layer.fprop(input!));
  });

  test('dimensions stay with keepdims', () => {
    const layer = build(GlobalPooling.config({ poolingDims: [1], poolingType, keepdims: true }));
    expect(run({}, () => layer.fprop(x)).shape).toEqual([2, 1, 4, 5]);
  });

  test('padding does not count; where there is nothing else the result is 0', () => {
    const layer = build(GlobalPooling.config({ poolingDims: [1, 2], poolingType }));
    const paddings = tf.tensor([0, 0, 1, 1, 1, 1], [2, 3, 1, 1]);
    const pooled = run({}, () => layer.fprop(x, paddings));
    const first = groups((b, i, _j, d) => (b === 0 && i < 2 ? d : null));
    expectClose(pooled, [...first.map((cells) => combined(poolingType, cells)), 0, 0, 0, 0, 0]);
  });
});

test('a dimension that the inputs do not have', () => {
  const layer = build(GlobalPooling.config({ poolingDims: [1, 4] }));
  expect(() => run({}, () => layer.fprop(tf.zeros([1, 2, 3, 4])))).toThrow(
    'model (GlobalPooling): poolingDims has 4, and the inputs are [1, 2, 3, 4].',
  );
});

describe.each(TYPES)('Pooling1D, %s', (poolingType) => {
  const x = tf.sub(tensor([2, 7, 2, 3]), 3) as Tensor;
  const asImages = tf.reshape(x, [2, 7, 1, 6]) as Tensor;

  test.each([
    ['a window of a stride', { stride: 2 }, 2, 2, 0],
    ['wider windows', { stride: 2, window: 3 }, 3, 2, 1],
    ['every second step', { stride: 2, window: 1 }, 1, 2, 0],
  ] as const)('%s', (_, fields, window, stride, before) => {
    const layer = build(Pooling1D.config({ ...fields, poolingType }));
    const pooled = run({}, () => layer.fprop(x));
    expect(pooled.shape).toEqual([2, 4, 2, 3]);
    expectClose(pooled, pool(poolingType, asImages, [window, 1], [stride, 1], [before, 0], [4, 1]));
  });

  test('steps of padding do not count, and are 0 in the outputs', () => {
    const layer = build(Pooling1D.config({ stride: 2, window: 3, poolingType }));
    const isPadding = (b: number, step: number): boolean => b === 0 && step >= 3;
    const paddings = tf.tensor2d([0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0], [2, 7]) as Tensor;
    expect([...layer.pooledPaddings(paddings).dataSync()]).toEqual([0, 0, 1, 1, 0, 0, 0, 0]);
    const pooled = run({}, () => layer.fprop(x, paddings));
    expectClose(pooled, pool(poolingType, asImages, [3, 1], [2, 1], [1, 0], [4, 1], isPadding));
  });
});

test('the layer of Pooling1D takes the mean by default, and returns what it got for single steps', () => {
  const layer = build(Pooling1D.config());
  const x = tensor([2, 3, 2]);
  expectClose(
    run({}, () => layer.fprop(x)),
    x.dataSync(),
  );
});
