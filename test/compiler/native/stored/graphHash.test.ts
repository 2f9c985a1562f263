/** @file Hashes of graphs: the same for what is lowered alike, another for everything else. */
import { describe, expect, it } from 'vitest';
import { tf, withPrecision, withScope } from '../../../../src/compiler/index.js';
import { hashGraphs } from '../../../../src/compiler/native/stored/graphHash.js';
import type { TensorSpec, Tree } from '../../../../src/compiler/program/tensors.js';
import { traceProgram } from '../../../../src/compiler/trace/tracedProgram.js';

const square: Tree<TensorSpec> = { x: { shape: [4, 4], dtype: 'float32' } };
const graphOf = (f: (inputs: any) => any, specs = square) => traceProgram(f, specs).graph;
const hashOf = (f: (inputs: any) => any, specs = square): string => hashGraphs([graphOf(f, specs)]).hash;

const table = (last: number) => tf.tensor1d([1, 2, 3, last]);

/** Functions of which no two are the same. */
const different: Readonly<Record<string, (inputs: any) => any>> = {
  sum: ({ x }) => tf.sum(x, 1),
  'sum over another axis': ({ x }) => tf.sum(x, 0),
  'sum that keeps its axes': ({ x }) => tf.sum(x, 1, true),
  mean: ({ x }) => tf.mean(x, 1),
  'sum of a square': ({ x }) => tf.sum(tf.square(x), 1),
  'in a layer': ({ x }) => withScope('net', () => tf.sum(x, 1)),
  'in another layer': ({ x }) => withScope('net"', () => tf.sum(x, 1)),
  'constant 0': ({ x }) => tf.add(x, 0),
  'constant -0': ({ x }) => tf.add(x, -0),
  'constant 1': ({ x }) => tf.add(x, 1),
  'constant NaN': ({ x }) => tf.add(x, Number.NaN),
  table: ({ x }) => tf.add(x, table(4)),
  'another table': ({ x }) => tf.add(x, table(5)),
  'integer table': ({ x }) => tf.add(x, tf.cast(tf.tensor1d([1, 2, 3, 4], 'int32'), 'float32')),
  'attribute 0': ({ x }) => tf.clipByValue(x, 0, 1),
  'attribute -0': ({ x }) => tf.clipByValue(x, -0, 1),
  'attribute infinite': ({ x }) => tf.clipByValue(x, 0, Number.POSITIVE_INFINITY),
  product: ({ x }) => tf.matMul(x, x),
  'product in bfloat16': ({ x }) => withPrecision('bfloat16', () => tf.matMul(x, x)),
  'one of two results': ({ x }) => [tf.square(x)],
  'two results': ({ x }) => [tf.square(x), tf.square(x)],
};

describe('the hash', () => {
  it('is the same for every trace of a function', () => {
    for (const f of Object.values(different)) expect(hashOf(f)).toBe(hashOf(f));
  });

  it('is another for another graph', () => {
    const names = new Map<string, string>();
    for (const [name, f] of Object.entries(different)) {
      const hash = hashOf(f);
      expect(names.get(hash), name).toBeUndefined();
      names.set(hash, name);
    }
  });

  it.each([
    ['shapes', { x: { shape: [2, 8], dtype: 'float32' } }],
    ['types', { x: { shape: [4, 4], dtype: 'int32' } }],
    ['names', { y: { shape: [4, 4], dtype: 'float32' } }],
    ['more inputs', { x: { shape: [4, 4], dtype: 'float32' }, y: { shape: [1], dtype: 'float32' } }],
  ] as const)('knows inputs by their %s', (_, specs) => {
    const identity = (inputs: any) => tf.square(inputs.x ?? inputs.y);
    expect(hashOf(identity, specs)).not.toBe(hashOf(identity));
  });

  it('distinguishes one graph from the same split in two', () => {
    const graph = graphOf(different.sum!);
    const two = hashGraphs([graph, graphOf(different.sum!)]);
    expect(two.hash).not.toBe(hashGraphs([graph]).hash);
  });

  it('comes with the constants of all graphs, each once', () => {
    const { constants } = hashGraphs([
      graphOf(({ x }) => {
        const once = table(4);
        return tf.add(tf.mul(x, once), once);
      }),
      graphOf(({ x }) => tf.add(x, table(9))),
    ]);
    expect(constants).toEqual([Float32Array.of(1, 2, 3, 4), Float32Array.of(1, 2, 3, 9)]);
  });
});
