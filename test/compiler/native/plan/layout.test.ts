/** @file Layout: what moves data becomes a view, and results are computed where they are wanted. */
import { expect, test } from 'vitest';
import { ops as compilerOps, type Tensor } from '../../../../src/compiler/index.js';
import { f32, i32, layoutOf, opText, tf } from '../plans.js';

const ops = (...args: Parameters<typeof layoutOf>): string[] => layoutOf(...args).ops.map(opText);

test('views cost nothing, and the result goes to the caller', () => {
  expect(ops((x) => tf.exp(tf.transpose(tf.reshape(x, [2, 3]))), f32(6))).toEqual([
    'Exp(float32 in0[3,2]:(1,3)) -> float32 out0[3,2]',
  ]);
});

test('a program that only moves data copies it', () => {
  expect(ops((x) => tf.transpose(x), f32(2, 3))).toEqual([
    'Copy(float32 in0[3,2]:(1,3)) -> float32 out0[3,2]',
  ]);
  expect(ops((x) => x, f32(2))).toEqual(['Copy(float32 in0[2]) -> float32 out0[2]']);
});

test('a result with two destinations is computed once and copied', () => {
  expect(
    ops(
      (x) => {
        const y = tf.exp(x);
        return [y, tf.reshape(y, [3, 2])];
      },
      f32(2, 3),
    ),
  ).toEqual(['Exp(float32 in0[2,3]) -> float32 out0[2,3]', 'Copy(float32 out0[3,2]) -> float32 out1[3,2]']);
});

test('parts of a concatenation are computed in the whole; inputs are copied there', () => {
  expect(ops((x, y) => tf.concat([tf.exp(x), y], 1), f32(2, 3), f32(2, 1))).toEqual([
    'Exp(float32 in0[2,3]) -> float32 out0[2,3]:(4,1)',
    'Copy(float32 in1[2,1]) -> float32 out0+3[2,1]:(4,1)',
  ]);
});

test('a product is not computed across its columns', () => {
  expect(ops((x, y) => tf.transpose(tf.matMul(x, y)), f32(2, 3), f32(3, 4))).toEqual([
    'BatchMatMul(float32 in0[2,3], float32 in1[3,4]) -> float32 b3[2,4]',
    'Copy(float32 b3[4,2]:(1,4)) -> float32 out0[4,2]',
  ]);
});

test('numbers are operands of elementwise operations, and memory for others', () => {
  expect(ops((x) => tf.add(x, tf.fill([2, 3], 2)), f32(2, 3))).toEqual([
    'Add(float32 in0[2,3], 2) -> float32 out0[2,3]',
  ]);
  expect(ops((x) => tf.matMul(x, tf.ones([3, 1])), f32(2, 3))).toEqual([
    'Copy(1) -> float32 b2[3,1]',
    'BatchMatMul(float32 in0[2,3], float32 b2[3,1]) -> float32 out0[2,1]',
  ]);
});

test('a reshape that strides cannot express copies once', () => {
  expect(ops((x) => tf.exp(tf.reshape(tf.transpose(x), [6])), f32(2, 3))).toEqual([
    'Copy(float32 in0[3,2]:(1,3)) -> float32 b2[3,2]',
    'Exp(float32 b2[6]) -> float32 out0[6]',
  ]);
});

test('padding fills, then overwrites the middle', () => {
  expect(ops((x) => tf.pad(x, [[1, 2]], 5), f32(3))).toEqual([
    'Copy(5) -> float32 out0[6]',
    'Overwrite(float32 in0[3]) -> float32 out0+1[3]',
  ]);
});

test('tiles repeat along an axis of stride 0', () => {
  expect(ops((x) => tf.tile(x, [2, 2]), f32(1, 3))).toEqual([
    'Copy(float32 in0[2,1,2,3]:(0,3,0,1)) -> float32 out0[2,1,2,3]',
  ]);
});

test('a reduction over axes that do not merge works on a copy in the order it is walked', () => {
  expect(ops((x) => tf.sum(tf.transpose(x, [0, 2, 1]), [1, 2]), f32(2, 3, 4))).toEqual([
    'Copy(float32 in0[2,4,3]:(12,1,4)) -> float32 b2[2,4,3]',
    'Sum(float32 b2[2,4,3]) -> float32 b3[2]',
    'Copy(float32 b3[2]) -> float32 out0[2]',
  ]);
});

test('constants that differ lie in memory, once', () => {
  const layout = layoutOf((i) => tf.gather(tf.tensor1d([1, 2, 3]), i), i32(4));
  expect(layout.ops.map(opText)).toEqual(['GatherV2(float32 const0[3], int32 in0[4]) -> float32 out0[4]']);
  expect(layout.constants.map(({ data }) => [...data!])).toEqual([[1, 2, 3]]);
});

test.each([false, true])(
  'a carry lies in the stacks of what turns read and write, reverse: %s',
  (reverse) => {
    const f = (x: Tensor, start: Tensor): Tensor[] => {
      const turn = (carry: Tensor, row: Tensor): [Tensor, Tensor[]] => {
        const next = tf.tanh(tf.add(carry, row)) as Tensor;
        return [next, [carry, next]];
      };
      const [last, [given, made]] = compilerOps.scan(turn, start, x, { reverse });
      return [tf.sin(last), tf.sin(given!), tf.sin(made!)];
    };
    const { buffers } = layoutOf(f, f32(5, 3), f32(3));
    expect(buffers.filter(({ home }) => home.kind === 'arena').map(({ size }) => size)).toEqual([18, 3]);
    const [last, given, made, at] = reverse ? [0, 3, 0, 15] : [15, 0, 3, 0];
    const offset = (elements: number): string => (elements === 0 ? '' : `+${elements}`);
    expect(ops(f, f32(5, 3), f32(3))).toEqual([
      `Copy(float32 in1[3]) -> float32 b5${offset(at!)}[3]`,
      'Begin() -> ',
      'Add(float32 slice6[3], float32 slice8[3]) -> float32 b9[3]',
      'Tanh(float32 b9[3]) -> float32 slice7[3]',
      'End() -> ',
      `Sin(float32 b5${offset(last!)}[3]) -> float32 out0[3]`,
      `Sin(float32 b5${offset(given!)}[5,3]) -> float32 out1[5,3]`,
      `Sin(float32 b5${offset(made!)}[5,3]) -> float32 out2[5,3]`,
    ]);
  },
);
