/** @file Outputs that machine code may write over inputs, by its schedule. */
import { expect, test } from 'vitest';
import type { Tensor } from '../../../../src/compiler/index.js';
import { lowerToC, type NativeProgram } from '../../../../src/compiler/native/c/lowerToC.js';
import { optimize } from '../../../../src/compiler/passes/index.js';
import { traceProgram } from '../../../../src/compiler/trace/tracedProgram.js';
import { ops, tf } from '../../support.js';

type Given = Record<string, Tensor>;

function overwrites(f: (given: Given) => Tensor[], shapes: Record<string, number[]>) {
  const specs = Object.fromEntries(
    Object.entries(shapes).map(([name, shape]) => [name, { shape, dtype: 'float32' as const }]),
  );
  const lowered = lowerToC(optimize(traceProgram(f as any, specs).graph));
  const names = Object.keys(shapes);
  return (lowered as NativeProgram).overwrites.map(([output, input]) => `${output} on ${names[input]}`);
}

test('an update may share memory with everything that it replaces', () => {
  const step = ({ p, m, v, g }: Given): Tensor[] => {
    const first = tf.add(tf.mul(m!, 0.9), tf.mul(g!, 0.1));
    const second = tf.add(tf.mul(v!, 0.99), tf.mul(tf.square(g!), 0.01));
    const direction = tf.div(first, tf.add(tf.sqrt(second), 1e-8));
    return [tf.sub(p!, tf.mul(direction, 0.1)), first, second];
  };
  const flat = { p: [100_000], m: [100_000], v: [100_000], g: [100_000] };
  expect(overwrites(step, flat)).toEqual(expect.arrayContaining(['0 on p', '1 on m', '2 on v']));
});

test.each<[string, (given: Given) => Tensor[], string[]]>([
  ['element by element', ({ x }) => [tf.mul(x!, 2)], ['0 on x']],
  ['a row behind its sum', ({ x }) => [tf.sub(x!, tf.sum(x!, 1, true))], ['0 on x']],
  [
    'read by the pass behind that which writes it',
    ({ x }) => [tf.mul(x!, 2), tf.sub(tf.exp(x!), tf.sum(tf.exp(x!), 1, true))],
    ['1 on x'],
  ],
  [
    'read again by the pass that works it out again',
    ({ x }) => {
      const twice = tf.mul(x!, 2);
      return [twice, tf.sub(twice, tf.sum(twice, 1, true))];
    },
    [],
  ],
  ['turned', ({ x }) => [tf.transpose(x!)], []],
  ['read once more behind', ({ x }) => [tf.mul(x!, 2), tf.add(x!, 1)], ['1 on x']],
  ['read by a product behind', ({ x }) => [tf.mul(x!, 2), tf.matMul(x!, x!)], []],
  ['behind a sum of all', ({ x }) => [tf.mul(tf.mul(tf.ones([8, 8]), 2), tf.sum(x!))], ['0 on x']],
])('%s', (_, f, expected) => {
  expect(overwrites(f, { x: [8, 8] })).toEqual(expected);
});

test('an updated slice may share memory with its tensor, but not with its rows', () => {
  const grow = ({ cache, rows }: Given): Tensor[] => [
    ops.updateSlice(cache!, rows!, tf.scalar(1, 'int32'), 0),
  ];
  expect(overwrites(grow, { cache: [4, 3], rows: [1, 3] })).toEqual(['0 on cache']);
  expect(overwrites(grow, { cache: [4, 3], rows: [4, 3] })).toEqual(['0 on cache']);
});

test('rows of a table are replaced in place, though the step gathers them first', () => {
  const specs = {
    table: { shape: [400], dtype: 'float32' as const },
    ids: { shape: [3], dtype: 'int32' as const },
  };
  const step = ({ table, ids }: Given): Tensor => {
    const rows = tf.reshape(table!, [50, 8]);
    const moved = tf.sub(tf.gather(rows, ids as never), 0.5) as Tensor;
    return tf.reshape(ops.updateRows(rows, moved, ids!), [400]);
  };
  const lowered = lowerToC(optimize(traceProgram(step as never, specs).graph));
  expect((lowered as NativeProgram).overwrites).toEqual([[0, 0]]);
});
