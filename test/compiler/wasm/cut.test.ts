/** @file Programs that become WebAssembly loops, wholly or at their end, and those that don't. */
import { expect, test } from 'vitest';
import { type Tensor, type TensorSpec, type Tree, tf } from '../../../src/compiler/index.js';
import type { Graph } from '../../../src/compiler/ir.js';
import { optimize } from '../../../src/compiler/passes/index.js';
import { traceProgram } from '../../../src/compiler/tracedProgram.js';
import { cutLoops } from '../../../src/compiler/wasm/cut.js';

const float = (...shape: number[]): TensorSpec => ({ shape, dtype: 'float32' });
const int = (...shape: number[]): TensorSpec => ({ shape, dtype: 'int32' });
const bool = (...shape: number[]): TensorSpec => ({ shape, dtype: 'bool' });

/** Operations before the loops, and those of each loop. */
function parts(f: (inputs: any) => Tree<Tensor>, inputs: Tree<TensorSpec>) {
  const cut = cutLoops(optimize(traceProgram(f, inputs).graph));
  const ops = ({ nodes }: Graph): string[] => nodes.map(({ op }) => op);
  return cut && { head: ops(cut.head), loops: cut.loops.map(ops) };
}

type Example = [string, (inputs: any) => Tree<Tensor>, Tree<TensorSpec>];

const ACCEPTED: Example[] = [
  ['arrays of one shape', ([x, y]) => tf.add(x, y), [float(7), float(7)]],
  ['arrays of several axes', ([x, y]) => tf.mul(x, y), [float(2, 3, 4), float(2, 3, 4)]],
  ['scalars beside arrays', ([x, s]) => tf.mul(x, s), [float(7), float()]],
  ['arrays of one element beside arrays', ([x, s]) => tf.mul(x, s), [float(7), float(1)]],
  ['constants', ([x]) => tf.add(x, 0.5), [float(7)]],
  ['an array of equal constants', ([x]) => tf.add(x, tf.fill([7], 0.5)), [float(7)]],
  ['a choice by a truth value', ([x, y]) => tf.where(tf.greater(x, y), x, y), [float(7), float(7)]],
  ['an input as output', ([x]) => [x, tf.neg(x)], [float(7)]],
];

test.each(ACCEPTED)('a loop runs %s', (_, f, inputs) => {
  expect(parts(f, inputs)).toMatchObject({ head: [], loops: [expect.anything()] });
});

const REFUSED: Example[] = [
  ['a program without outputs', () => [], [float(7)]],
  ['an array without elements', ([x]) => tf.neg(x), [float(0)]],
  ['scalars alone', ([x, y]) => tf.add(x, y), [float(), float()]],
  ['one element alone', ([x, y]) => tf.add(x, y), [float(1), float(1)]],
  ['a scalar beside one element', ([x, y]) => tf.add(x, y), [float(), float(1)]],
  ['arrays that broadcast', ([x, y]) => tf.add(x, y), [float(2, 3), float(3)]],
  ['int32', ([x, y]) => tf.add(x, y), [int(7), int(7)]],
  ['a bool input', ([c, x]) => tf.where(c, x, tf.neg(x)), [bool(7), float(7)]],
  ['a bool output', ([x]) => tf.greater(x, 0), [float(7)]],
  ['an output twice', ([x]) => [tf.neg(x), tf.neg(x)], [float(7)]],
  ['a constant array', ([x]) => tf.add(x, tf.tensor1d([1, 2, 3])), [float(3)]],
  ['a constant array as output', ([x]) => [tf.neg(x), tf.tensor1d([1, 2, 3])], [float(3)]],
  ['fewer operations than it reads arrays', ([x, y]) => tf.add(tf.exp(x), y), [float(7), float(7)]],
  ['one array of two', ([x, y]) => [tf.neg(x), tf.exp(y)], [float(7), float(7)]],
];

test.each(REFUSED)('no loop runs %s', (_, f, inputs) => {
  expect(parts(f, inputs)).toBeUndefined();
});

const CUT: [...Example, ReturnType<typeof parts>][] = [
  [
    'a scalar result',
    ([x, s]) => [tf.mul(x, s), tf.neg(s)],
    [float(7), float()],
    cutInto(['Neg'], ['Multiply']),
  ],
  ['an array of another operation', ([x]) => tf.neg(tf.exp(x)), [float(7)], cutInto(['Exp'], ['Neg'])],
  ['a reduction', ([x]) => tf.sub(x, tf.sum(x)), [float(7)], cutInto(['Sum'], ['Sub'])],
  [
    'a truth value of all elements',
    ([x, s]) => tf.where(tf.less(s, 2), x, tf.neg(x)),
    [float(7), float()],
    cutInto(['Less'], ['Neg', 'Select']),
  ],
  [
    'a truth value as a number',
    ([x]) => tf.mul(x, tf.cast(tf.greater(x, 0), 'float32')),
    [float(7)],
    undefined,
  ],
  [
    'an int32 scalar',
    ([x, s]) => tf.mul(x, tf.cast(s, 'float32')),
    [float(7), int()],
    cutInto(['Cast'], ['Multiply']),
  ],
  ['two shapes', ([x, y]) => [tf.neg(x), tf.abs(y)], [float(7), float(8)], cutInto([], ['Neg'], ['Abs'])],
];

function cutInto(head: string[], ...loops: string[][]) {
  return { head, loops };
}

test.each(CUT)('%s is worked out before the loops', (_, f, inputs, expected) => {
  expect(parts(f, inputs)).toEqual(expected);
});
