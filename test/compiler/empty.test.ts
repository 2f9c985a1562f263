/** @file Empty tensors: every engine gives the identities of docs/guide/numerics.md, and writes nothing beside its outputs. */
import { describe, expect, test } from 'vitest';
import { compile, type HostTensor, type Tensor, type Tree } from '../../src/compiler/index.js';
import { isEmpty, optimize } from '../../src/compiler/passes/index.js';
import { traceProgram } from '../../src/compiler/trace/tracedProgram.js';
import { engines } from './engines.js';
import { compiledResults, host, leavesOf, ops, repeatedly, tf, withGradient } from './support.js';

/** A function of some inputs, and each of its results as text. */
type Case = readonly [f: (...xs: any[]) => Tensor | Tensor[], inputs: HostTensor[], ...expected: string[]];

const none = (shape: number[], dtype: HostTensor['dtype'] = 'float32'): HostTensor => host(shape, [], dtype);
const six = host([2, 3], [1, 2, 3, 4, 5, 6]);
const two = host([2], [3, -4]);
const [rows, columns, list] = [none([0, 3]), none([2, 0]), none([0])];
const [integers, ids] = [none([2, 0], 'int32'), none([0], 'int32')];
const truths = none([2, 0], 'bool');
const zeros = (spec: string, count: number): string => `${spec} ${new Array(count).fill(0)}`;

/** A reduction of no elements to two, and of a tensor without elements along its other axis. */
const reduced = (
  f: (x: any, axis?: number) => Tensor,
  x: HostTensor,
  dtype: string,
  element: string,
): Case => [
  (t) => [f(t, 1), f(t), f(t, 0)],
  [x],
  `${dtype}[2] ${element},${element}`,
  `${dtype}[] ${element}`,
  `${dtype}[0] `,
];

const image = none([0, 4, 5, 2]);
const filter = host([3, 3, 2, 1], new Float32Array(18).fill(1));

const cases: Readonly<Record<string, Case>> = {
  'sum of float32': reduced(tf.sum, columns, 'float32', '0'),
  'sum of int32': reduced(tf.sum, integers, 'int32', '0'),
  'prod of float32': reduced(tf.prod, columns, 'float32', '1'),
  'prod of int32': reduced(tf.prod, integers, 'int32', '1'),
  'max of float32': reduced(tf.max, columns, 'float32', '-Infinity'),
  'max of int32': reduced(tf.max, integers, 'int32', '-2147483648'),
  'min of float32': reduced(tf.min, columns, 'float32', 'Infinity'),
  'min of int32': reduced(tf.min, integers, 'int32', '2147483647'),
  'mean of float32': reduced(tf.mean, columns, 'float32', 'NaN'),
  'mean of int32': reduced(tf.mean, integers, 'float32', 'NaN'),
  all: reduced(tf.all, truths, 'bool', '1'),
  any: reduced(tf.any, truths, 'bool', '0'),
  'sums that go on': [(x, y) => tf.add(tf.sum(x, 1), y), [columns, two], 'float32[2] 3,-4'],
  concat: [(x, e) => tf.concat([x, e]), [six, rows], 'float32[2,3] 1,2,3,4,5,6'],
  'concat of three': [
    (x, e) => tf.concat([x, e, x], 1),
    [two, none([2, 0])].map((x) => ({ ...x, shape: x.shape.length === 1 ? [2, 1] : x.shape })),
    'float32[2,2] 3,3,-4,-4',
  ],
  'concat of empty ones': [(x, e) => tf.concat([x, e]), [rows, rows], 'float32[0,3] '],
  stack: [(e) => tf.stack([e, e]), [list], 'float32[2,0] '],
  unstack: [(e) => tf.unstack(e), [columns], 'float32[0] ', 'float32[0] '],
  'unstack to nothing': [(e) => [...tf.unstack(e), e], [rows], 'float32[0,3] '],
  pad: [(e) => tf.pad(e, [[4, 0]], 2), [list], 'float32[4] 2,2,2,2'],
  'pad of a row': [
    (e) =>
      tf.pad(e, [
        [0, 0],
        [1, 1],
      ]),
    [columns],
    zeros('float32[2,2]', 4),
  ],
  slice: [(x) => [tf.slice(x, [2, 0]), tf.slice(x, [0, 1], [2, 0])], [six], 'float32[0,3] ', 'float32[2,0] '],
  strides: [(x) => tf.stridedSlice(x, [1, 0], [1, 3], [1, 1]), [six], 'float32[0,3] '],
  split: [(x) => tf.split(x, [0, 3], 1), [six], 'float32[2,0] ', 'float32[2,3] 1,2,3,4,5,6'],
  'split in three': [
    (x) => tf.split(x, [1, 0, 2], 1),
    [six],
    'float32[2,1] 1,4',
    'float32[2,0] ',
    'float32[2,2] 2,3,5,6',
  ],
  shapes: [
    (e) => [tf.reshape(e, [0, 7]), tf.transpose(e), tf.expandDims(e), tf.reverse(e, 0), tf.tile(e, [2, 1])],
    [rows],
    'float32[0,7] ',
    'float32[3,0] ',
    'float32[1,0,3] ',
    'float32[0,3] ',
    'float32[0,3] ',
  ],
  tile: [(x) => tf.tile(x, [0, 1]), [six], 'float32[0,3] '],
  fills: [
    () => [tf.zeros([0, 2]), tf.fill([3, 0], 2), tf.range(3, 3), tf.onesLike(tf.zeros([0]))],
    [],
    'float32[0,2] ',
    'float32[3,0] ',
    'float32[0] ',
    'float32[0] ',
  ],
  elementwise: [
    (x, e) => [tf.add(e, x), tf.exp(e), tf.greater(e, 0), tf.cast(e, 'int32')],
    [host([1, 3], [1, 2, 3]), rows],
    'float32[0,3] ',
    'float32[0,3] ',
    'bool[0,3] ',
    'int32[0,3] ',
  ],
  where: [(e) => tf.where(tf.less(e, 1), e, tf.zerosLike(e)), [rows], 'float32[0,3] '],
  'softmax and the like': [
    (e) => [tf.softmax(e), tf.logSoftmax(e), tf.cumsum(e, 0)],
    [rows],
    'float32[0,3] ',
    'float32[0,3] ',
    'float32[0,3] ',
  ],
  'softmax of nothing': [(e) => tf.softmax(e), [columns], 'float32[2,0] '],
  topk: [
    (x) => {
      const { values, indices } = tf.topk(x, 0);
      return [values, indices];
    },
    [six],
    'float32[2,0] ',
    'int32[2,0] ',
  ],
  'argMax of no rows': [(e) => [tf.argMax(e, 1), tf.argMin(e, 1)], [rows], 'int32[0] ', 'int32[0] '],
  'product without terms': [(a, b) => tf.matMul(a, b), [columns, none([0, 3])], zeros('float32[2,3]', 6)],
  'product of integers without terms': [
    (a, b) => tf.matMul(a, b),
    [integers, none([0, 3], 'int32')],
    zeros('int32[2,3]', 6),
  ],
  'product that is added to': [
    (a, b, c) => tf.add(tf.matMul(a, b), c),
    [columns, none([0, 3]), six],
    'float32[2,3] 1,2,3,4,5,6',
  ],
  'product of no rows': [(a, b) => tf.matMul(a, b), [rows, host([3, 1], [1, 2, 3])], 'float32[0,1] '],
  'product of no batch': [(a, b) => tf.matMul(a, b), [none([0, 2, 3]), none([0, 3, 2])], 'float32[0,2,2] '],
  gather: [(x, i) => tf.gather(x, i), [six, ids], 'float32[0,3] '],
  'gather of empty rows': [
    (x, i) => tf.gather(x, i),
    [columns, host([3], [0, 1, 0], 'int32')],
    'float32[3,0] ',
  ],
  lookup: [(x, i) => ops.embeddingLookup(x, i), [six, ids], 'float32[0,3] '],
  segments: [(x, i) => tf.unsortedSegmentSum(x, i, 2), [rows, ids], zeros('float32[2,3]', 6)],
  oneHot: [(i) => tf.oneHot(i, 3), [ids], 'int32[0,3] '],
  updateSlice: [
    (x, e) => ops.updateSlice(x, e, tf.scalar(1, 'int32'), 0),
    [six, rows],
    'float32[2,3] 1,2,3,4,5,6',
  ],
  updateRows: [(x, e, i) => ops.updateRows(x, e, i), [six, rows, ids], 'float32[2,3] 1,2,3,4,5,6'],
  norms: [
    (e) => [ops.layerNorm(e, null, null, { epsilon: 1 }), ops.rmsNorm(e, null, { epsilon: 1 })],
    [rows],
    'float32[0,3] ',
    'float32[0,3] ',
  ],
  'norms of nothing': [
    (e) => [ops.layerNorm(e, null, null, { epsilon: 1 }), ops.rmsNorm(e, null, { epsilon: 1 })],
    [columns],
    'float32[2,0] ',
    'float32[2,0] ',
  ],
  gelu: [(e) => ops.gelu(e), [rows], 'float32[0,3] '],
  crossEntropy: [(e, i) => ops.softmaxCrossEntropy(e, i), [rows, ids], 'float32[0] '],
  'attention of no batch': [
    (q) => ops.attention(q, q, q, { causal: true }),
    [none([0, 2, 1, 2])],
    'float32[0,2,1,2] ',
  ],
  'attention to no keys': [
    (q, k) => ops.attention(q, k, k),
    [host([1, 2, 1, 1], [1, 2]), none([1, 0, 1, 1])],
    'float32[1,2,1,1] 0,0',
  ],
  convolutions: [
    (x, f) => [
      tf.conv2d(x, f, 1, 'same'),
      tf.depthwiseConv2d(x, f, 1, 'same'),
      tf.maxPool(x, 2, 2, 'same'),
      tf.avgPool(x, 2, 2, 'same'),
    ],
    [image, filter],
    'float32[0,4,5,1] ',
    'float32[0,4,5,2] ',
    'float32[0,2,3,2] ',
    'float32[0,2,3,2] ',
  ],
  'convolution of no channels': [
    (x, f) => tf.conv2d(x, f, 1, 'same'),
    [none([1, 1, 2, 0]), none([1, 1, 0, 1])],
    'float32[1,1,2,1] 0,0',
  ],
  'inputs as they are': [
    (e, x) => [e, x, tf.neg(x)],
    [rows, two],
    'float32[0,3] ',
    'float32[2] 3,-4',
    'float32[2] -3,4',
  ],
};

/** Gradients of a weighted sum of the results. */
const gradients: Readonly<Record<string, Case>> = {
  'a sum of nothing': [withGradients((x) => tf.sum(x, 1), 1), [columns], 'float32[2,0] '],
  'a table of which no row is taken': [
    withGradients((x, i) => ops.embeddingLookup(x, i), 1),
    [six, ids],
    zeros('float32[2,3]', 6),
  ],
  'weights of a product of no rows': [
    withGradients((w, x) => tf.matMul(x, w), 1),
    [host([3, 1], [1, 2, 3]), rows],
    zeros('float32[3,1]', 3),
  ],
  'weights of a norm of no rows': [
    withGradients((s, b, x) => ops.layerNorm(x, s, b, { epsilon: 1 }), 2),
    [host([3], [1, 2, 3]), host([3], [1, 2, 3]), rows],
    zeros('float32[3]', 3),
    zeros('float32[3]', 3),
  ],
  'a filter that no image is given': [
    withGradients((f, x) => tf.conv2d(x, f, 1, 'same'), 1),
    [filter, image],
    zeros('float32[3,3,2,1]', 18),
  ],
  'attention of no batch': [
    withGradients((q) => ops.attention(q, q, q), 1),
    [none([0, 2, 1, 2])],
    'float32[0,2,1,2] ',
  ],
  'cross entropy of no labels': [
    withGradients((x, i) => ops.softmaxCrossEntropy(x, i), 1),
    [rows, ids],
    'float32[0,3] ',
  ],
  'one element that is repeated no times': [
    withGradients((s, e) => tf.rsqrt(tf.mul(s, e)), 1),
    [host([1], [2]), list],
    'float32[1] 0',
  ],
  'an empty part': [
    withGradients((x) => tf.split(x, [0, 3], 1), 1),
    [six],
    expect.stringMatching(/^float32\[2,3\] 0\.|^float32\[2,3\] 1\./) as any,
  ],
};

/** The gradients alone. */
function withGradients(f: (...xs: any[]) => any, count: number): Case[0] {
  return (...xs) => (withGradient(f, count)(xs) as unknown as { grads: Tensor[] }).grads;
}

const told = ({ dtype, shape, data }: HostTensor): string => `${dtype}[${shape}] ${[...data]}`;

const all = {
  ...cases,
  ...Object.fromEntries(Object.entries(gradients).map(([k, v]) => [`gradient of ${k}`, v])),
};

const runs = [['eager', { engine: 'eager', available: true }], ...engines] as const;

describe.each(runs)('%s', (_, { engine, available }) => {
  test.skipIf(!available)('gives what the table says', async () => {
    const inputs = Object.values(all).map(([, tensors]) => tensors);
    const f = (lists: any[][]) => Object.values(all).map(([g], i) => [g(...lists[i]!)].flat());
    const executable = await compile(f as any, inputs as any, { engine, numThreads: 1 });
    const results = (await repeatedly(executable, inputs as any)) as unknown as Tree<HostTensor>[];
    await executable.dispose();
    const names = Object.keys(all);
    const actual = Object.fromEntries(results.map((tree, i) => [names[i]!, leavesOf(tree).map(told)]));
    expect(actual).toEqual(
      Object.fromEntries(Object.entries(all).map(([name, [, , ...expected]]) => [name, expected])),
    );
  });

  test.skipIf(!available)('a program without any elements runs', async () => {
    const results = await compiledResults(({ e }) => ({ y: tf.neg(e), z: e }), { e: rows }, { engine });
    expect(results.map(told)).toEqual(['float32[0,3] ', 'float32[0,3] ']);
  });

  test.skipIf(!available)('repeated runs carry empty tensors among others', async () => {
    const specs = { e: rows, x: two, step: two };
    const executable = await compile(({ e, x, step }: any) => ({ e: tf.neg(e), x: tf.add(x, step) }), specs, {
      engine,
      numThreads: 1,
    });
    const [x, e] = [Float32Array.of(1, 2), new Float32Array(0)];
    const call = executable.bind({
      inputs: { e, x, step: Float32Array.of(1, 1, 10, 10, 100, 100) },
      carried: { e: 'e', x: 'x' },
      runs: 3,
    });
    await call.run(3);
    expect([...x]).toEqual([112, 113]);
    await executable.dispose();
  });
});

test.each(Object.entries(all))(
  '%s: no node that is lowered reads or makes an empty tensor',
  (_, [f, inputs]) => {
    const traced = traceProgram((xs: any[]) => [f(...xs)].flat(), inputs).graph;
    const values = optimize(traced).nodes.flatMap((node) => [...node.inputs, ...node.outputs]);
    expect(values.filter(isEmpty)).toEqual([]);
  },
);

test.each([
  [
    'argMax',
    (e: any) => tf.argMax(e, 0),
    [rows],
    'argMax: expected elements along axis 0, got float32[0,3].',
  ],
  [
    'argMin',
    (e: any) => tf.argMin(e, 1),
    [columns],
    'argMin: expected elements along axis 1, got float32[2,0].',
  ],
  [
    'gather',
    (e: any, i: any) => tf.gather(e, i),
    [rows, host([1], [0], 'int32')],
    'gather: expected elements along axis 0, which indices choose from, got float32[0,3] and int32[1].',
  ],
  [
    'cross entropy',
    (e: any, i: any) => ops.softmaxCrossEntropy(e, i),
    [columns, host([2], [0, 0], 'int32')],
    'softmaxCrossEntropy: expected logits float32[...,V] of V classes, 1 or more, and labels int32[...], got ' +
      'float32[2,0] and int32[2].',
  ],
])('%s where there is nothing to choose from is refused', (_, f, inputs, message) => {
  expect(() => traceProgram((xs: any) => (f as Case[0])(...xs) as Tensor, inputs as any)).toThrow(message);
});

describe.each(engines)('in memory that is shared, %s', (_, { engine, available }) => {
  test.skipIf(!available)(
    'an output over an input is written once that is read, beside empty ones',
    async () => {
      const f = ({ e, x }: any) => ({ none: tf.neg(e), y: tf.reverse(x) });
      const specs = { e: { shape: [0], dtype: 'float32' }, x: { shape: [7], dtype: 'float32' } } as const;
      const executable = await compile(f, specs, { engine, numThreads: 1 });
      const [x, e] = [Float32Array.from({ length: 7 }, (_, i) => i), new Float32Array(0)];
      const call = executable.bind({ inputs: { e, x }, outputs: { none: null, y: x } });
      for (const expected of [
        [6, 5, 4, 3, 2, 1, 0],
        [0, 1, 2, 3, 4, 5, 6],
      ]) {
        await call.run();
        expect([...x]).toEqual(expected);
      }
      await executable.dispose();
    },
  );
});
