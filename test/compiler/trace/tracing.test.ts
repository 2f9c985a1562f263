/** @file What cannot be traced, and the messages that say so. */
import { expect, test } from 'vitest';
import {
  compile,
  costAnalysis,
  type HostTensor,
  ops,
  type Tensor,
  type TensorSpec,
  tf,
  withScope,
} from '../../../src/compiler/index.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';

const spec = (shape: number[], dtype: TensorSpec['dtype'] = 'float32'): TensorSpec => ({ shape, dtype });

/** The whole message of the error that tracing `f` in layer lm/x gives. */
function messageOf(f: (inputs: any) => any, inputs: Record<string, TensorSpec>): string {
  try {
    traceProgram((t: any) => withScope('lm/x', () => f(t)), inputs);
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('no error was thrown');
}

const x = spec([2, 3]);

/** A kernel that none of tfjs's functions runs. */
const bandOf = (tensor: Tensor): Tensor =>
  tf.engine().runKernel('MatrixBandPart', { input: tensor }) as Tensor;

test.each([
  [
    'an operation without a rule',
    (t: any) => bandOf(t.x),
    { x },
    "The compiler has no rule for the operation 'MatrixBandPart' (in layer 'lm/x'). Write it with operations that have one " +
      '(src/compiler/rules), or add a rule there and its lowering in src/compiler/onnx.',
  ],
  [
    'a value that is read',
    (t: any) => (t.x.dataSync()[0] > 0 ? t.x : tf.neg(t.x)),
    { x },
    'The value of a traced tensor float32[2,3] was read. Inside jit only shapes and dtypes are known: return the tensor ' +
      'from the function, or compute with tf operations (tf.where instead of if). ' +
      "jit's option graphBreaks runs such a function operation by operation; " +
      "--debug=eager does so for a training whose layers read values, and --tap prints them. (in layer 'lm/x')",
  ],
  [
    'shapes that do not broadcast',
    (t: any) => tf.add(t.x, t.y),
    { x, y: spec([2, 4]) },
    "add: expected shapes that broadcast, got [2,3] and [2,4], of 3 and 4 in dimension 1. (in layer 'lm/x')",
  ],
  [
    'a product whose inner dimensions differ',
    (t: any) => tf.matMul(t.x, t.y, false, true),
    { x, y: spec([2, 4]) },
    'matMul: expected inner dimensions that are equal, got 3 and 4 of float32[2,3] and float32[2,4] transposed. ' +
      "(in layer 'lm/x')",
  ],
  [
    'operands of two dtypes',
    (t: any) => tf.engine().runKernel('Add', { a: t.x, b: t.y }),
    { x, y: spec([2, 3], 'int32') },
    "add: expected tensors of one dtype (tf.cast converts), got float32[2,3] and int32[2,3]. (in layer 'lm/x')",
  ],
  [
    'what tfjs itself refuses',
    (t: any) => tf.transpose(t.x, [0, 0, 1]),
    { x },
    "Error in transpose: rank of input 2 must match length of perm 0,0,1. (in layer 'lm/x')",
  ],
  [
    'attention to tensors that do not fit',
    (t: any) => ops.attention(t.x, t.x, t.x),
    { x },
    'attention: expected q [B,T,N,H], k [B,S,N,H] and v [B,S,N,H], got float32[2,3], float32[2,3] and float32[2,3]. ' +
      "(in layer 'lm/x')",
  ],
  [
    'causal attention with more queries than keys',
    (t: any) => ops.attention(t.q, t.k, t.k, { causal: true }),
    { q: spec([1, 5, 2, 3]), k: spec([1, 4, 2, 3]) },
    'attention: expected at most as many causal queries as keys, got 5 queries and 4 keys. ' +
      "(in layer 'lm/x')",
  ],
  [
    'a tensor of strings',
    () => tf.tensor(['a']),
    { x },
    "Tensors of dtype string cannot be compiled; use float32, int32 or bool. (in layer 'lm/x')",
  ],
  [
    'a promise',
    async (t: any) => tf.neg(t.x),
    { x },
    "Expected a tensor or a structure of tensors at '<root>', got a promise: a function is traced in one call, and can " +
      'await nothing. Await before it is compiled, and pass the result as an input.',
  ],
  [
    'a promise among tensors',
    (t: any) => ({ y: tf.neg(t.x), loss: Promise.reject(new Error('not awaited')) }),
    { x },
    "Expected a tensor or a structure of tensors at 'loss', got a promise: a function is traced in one call, and can " +
      'await nothing. Await before it is compiled, and pass the result as an input.',
  ],
  [
    "tfjs's dropout",
    (t: any) => tf.dropout(t.x, 0.5),
    { x },
    'tf.dropout draws once, while the function is traced, and every run would have the same numbers. Call ' +
      'ops.dropout(x, key, keepProb), with a key int32 [2] that the function is given, or that ops.foldIn or ops.splitKey makes of one. ' +
      "(in layer 'lm/x')",
  ],
  [
    "tfjs's random numbers",
    (t: any) => tf.add(t.x, tf.randomNormal([2, 3], 0, 1, 'float32', 7)),
    { x },
    'tf.randomNormal draws once, while the function is traced, and every run would have the same numbers. Call ' +
      'ops.randomNormal(key, shape), with a key int32 [2] that the function is given, or that ops.foldIn or ' +
      "ops.splitKey makes of one. (in layer 'lm/x')",
  ],
  [
    'a complex output',
    (t: any) => ({ y: tf.complex(t.x, t.x) }),
    { x },
    "The output 'y' is complex64[2,3]: programs take and give real numbers. Return tf.real(x) and tf.imag(x).",
  ],
  [
    'a complex input',
    (t: any) => t.x,
    { x: spec([2], 'complex64' as never) },
    "The input 'x' is complex64[2]: programs take and give real numbers. Pass both parts, and call tf.complex.",
  ],
  [
    'a function of real numbers on complex ones',
    (t: any) => tf.exp(tf.complex(t.x, t.x)),
    { x },
    "exp: expected real numbers, got complex64: tf.real(x) and tf.imag(x) are its parts. (in layer 'lm/x')",
  ],
  [
    'a composite of real numbers on complex ones',
    (t: any) => ops.gelu(tf.complex(t.x, t.x)),
    { x },
    "Expected real numbers, got complex64[2,3]: take tf.real(x) and tf.imag(x). (in layer 'lm/x')",
  ],
  [
    'the real part of real numbers',
    (t: any) => tf.real(t.x),
    { x },
    "Expected complex64, got float32[2,3]: tf.complex(real, imag) makes complex numbers. (in layer 'lm/x')",
  ],
  ['no tensor', () => ({ loss: 3 }), { x }, "Expected a tensor or a structure of tensors at 'loss', got 3."],
])('%s', (_, f, inputs, message) => {
  expect(messageOf(f, inputs as Record<string, TensorSpec>)).toBe(message);
});

test.each([
  'dropout',
  'rand',
  'randomGamma',
  'randomNormal',
  'randomStandardNormal',
  'randomUniform',
  'randomUniformInt',
  'truncatedNormal',
  'multinomial',
])('tf.%s is refused while a function is traced, and nowhere else', (name) => {
  const draw = () => (tf as any)[name]([2, 3], 0.5, 2);
  const first = `tf.${name} draws once, while the function is traced`;
  expect(() => traceProgram(draw, {})).toThrow(first);
  // Whatever it may lack here.
  expect(() => tf.tidy(draw)).not.toThrow(first);
});

/** What tfjs's own checks let through, or make in a kernel that a trace does not run. */
const misfits = { x, y: spec([2, 4]), i: spec([2, 3], 'int32'), q: spec([1, 4, 1, 2]) };

test.each<[string, (t: any) => Tensor | Tensor[], string]>([
  [
    'a slice beyond its tensor',
    (t: any) => tf.slice(t.x, [1, 0], [4, 2]),
    'slice: expected a part of float32[2,3], got begin [1,0] and size [4,2].',
  ],
  [
    'a slice from before its tensor',
    (t: any) => tf.slice(t.x, [-1, 0], [1, 2]),
    'slice: expected begins of 0 or more (slice() does not support negative begin indexing.), got [-1,0].',
  ],
  [
    'a slice of more axes',
    (t: any) => tf.slice(t.x, [0, 0, 0], [1, 1, 1]),
    'slice: expected at most 2 axes, got [0,0,0].',
  ],
  [
    'concat of other rows',
    (t: any) => tf.concat([t.x, t.y]),
    'concat: expected tensors that differ along axis 0 alone, got float32[2,3] and float32[2,4].',
  ],
  [
    'concat along no axis',
    (t: any) => tf.concat([t.x, t.x], 2),
    'concat: expected an axis from -2 to 1, got 2.',
  ],
  [
    'concat of two dtypes',
    (t: any) => tf.concat([t.x, t.i]),
    'concat: expected tensors of one dtype (tf.cast converts), got float32[2,3] and int32[2,3].',
  ],
  [
    'stack of two dtypes',
    (t: any) => tf.stack([t.x, t.i]),
    'stack: expected tensors of one dtype (tf.cast converts), got float32[2,3] and int32[2,3].',
  ],
  [
    'stack of two shapes',
    (t: any) => tf.stack([t.x, t.y]),
    'stack: expected tensors of one shape, got float32[2,3] and float32[2,4].',
  ],
  [
    'gather along no axis',
    (t: any) => tf.gather(t.x, tf.tensor1d([0], 'int32'), 2),
    'gather: expected an axis from -2 to 1, got 2.',
  ],
  [
    'a negative pad',
    (t: any) =>
      tf.pad(t.x, [
        [-1, 0],
        [0, 0],
      ]),
    'pad: expected dimensions that are integers, 0 or more, got [-1,0,0,0].',
  ],
  [
    'a pad of one axis of two',
    (t: any) => tf.pad(t.x, [[1, 0]] as any),
    'pad: expected paddings before and behind each of 2 axes, got [1,0].',
  ],
  [
    'an axis twice in a transpose',
    (t: any) => tf.transpose(t.x, [0, 0]),
    'transpose: expected axes below 2, each once, got [0,0].',
  ],
  [
    'a negative number of tiles',
    (t: any) => tf.tile(t.x, [-1, 1]),
    'tile: expected dimensions that are integers, 0 or more, got [-1,1].',
  ],
  [
    'splits that are too large',
    (t: any) => tf.split(t.x, [4, -1], 1),
    'split: expected sizes that add up to 3, got [4,-1].',
  ],
  [
    'a new axis in front of the first',
    (t: any) => tf.expandDims(t.x, -4),
    'expandDims: expected an axis from -3 to 2, got -4.',
  ],
  [
    'a shape of fractions',
    (t: any) => tf.reshape(t.x, [2.5, 2.4]),
    'reshape: expected dimensions that are integers, 0 or more, got [2.5,2.4].',
  ],
  [
    'an axis that is summed twice',
    (t: any) => tf.sum(t.x, [0, 0]),
    'sum: expected axes that differ, got [0,0].',
  ],
  ['a sum along no axis', (t: any) => tf.cumsum(t.x, 2), 'cumsum: expected an axis from -2 to 1, got 2.'],
  ['a part of an element', (t: any) => tf.topk(t.x, 1.5).values, 'topK: expected k from 0 to 3, got 1.5.'],
  [
    'a segment id for other rows',
    (t: any) => tf.unsortedSegmentSum(t.x, tf.tensor1d([0, 1, 2], 'int32'), 3),
    'unsortedSegmentSum: expected one segment id for each row, got float32[2,3] and int32[3].',
  ],
  [
    'a negative number of segments',
    (t: any) => tf.unsortedSegmentSum(t.x, tf.tensor1d([0, 1], 'int32'), -1),
    'unsortedSegmentSum: expected a number of segments, 0 or more, got -1.',
  ],
  [
    'a product of batches that differ',
    () => tf.matMul(tf.zeros([2, 2, 3]), tf.zeros([3, 3, 2])),
    'matMul: expected shapes that broadcast, got [2] and [3], of 2 and 3 in dimension 0.',
  ],
  [
    'arithmetic on truth values',
    (t: any) => tf.mul(tf.greater(t.x, 0), tf.less(t.x, 1)),
    'mul: expected float32 or int32 (tf.cast converts), got bool[2,3] and bool[2,3].',
  ],
  [
    'a range of integers in halves',
    () => tf.range(0, 4, 0.5, 'int32'),
    'range: expected a start and a step that are integers, as dtype int32 has them, got 0 and 0.5.',
  ],
  [
    'a norm with a scale of another width',
    (t: any) => ops.layerNorm(t.x, tf.ones([2]), null, { epsilon: 1 }),
    'layerNorm: expected x of rank 1 or more, and 1 weights of the size of its last axis, got float32[2,3] and float32[2].',
  ],
  [
    'labels of another shape',
    (t: any) => ops.softmaxCrossEntropy(t.x, t.i),
    'softmaxCrossEntropy: expected logits float32[...,V] of V classes, 1 or more, and labels int32[...], got float32[2,3] and int32[2,3].',
  ],
  [
    'an attention mask of another shape',
    (t: any) => ops.attention(t.q, t.q, t.q, { mask: t.x }),
    'attention: expected shapes that broadcast, got [2,3] and [1,1,4,4], of 2 and 4 in dimension 2.',
  ],
  [
    'a filter of other channels',
    () =>
      tf
        .engine()
        .runKernel(
          'Conv2D',
          { x: tf.zeros([1, 2, 3, 1]), filter: tf.zeros([2, 2, 2, 2]) },
          { strides: 1, pad: 'same' },
        ) as any,
    "conv2d: expected as many channels as the filter's axis 2 has, got float32[1,2,3,1] and float32[2,2,2,2].",
  ],
  [
    'a key of another length',
    (t: any) => ops.randomUniform(t.i, [2]),
    'randomUniform: expected a key int32[2], got int32[2,3].',
  ],
])('%s is refused', (_, f, message) => {
  expect(messageOf(f, misfits)).toBe(`${message} (in layer 'lm/x')`);
});

test('the innermost layer is named', () => {
  const f = (t: any) => withScope('lm/x/inner', () => bandOf(t.x));
  expect(messageOf(f, { x })).toContain("'MatrixBandPart' (in layer 'lm/x/inner').");
});

test('an error leaves the tracer ready for the next program', () => {
  expect(() => traceProgram((t: any) => bandOf(tf.neg(t.x)), { x })).toThrow();
  const { graph } = traceProgram((t: any) => tf.exp(t.x), { x });
  expect(graph.nodes.map((node) => node.op)).toEqual(['Exp']);
});

test('a nested trace leaves the outer one intact', () => {
  const { graph } = traceProgram(
    (t: any) => {
      const y = tf.exp(t.x);
      expect(traceProgram((inner: any) => tf.neg(inner.x), { x }).graph.nodes.length).toBe(1);
      return tf.square(y);
    },
    { x },
  );
  expect(graph.nodes.map((node) => node.op)).toEqual(['Exp', 'Square']);
});

test('outside of any function there is nothing that could compute', () => {
  expect(() => tf.neg(tf.tensor1d([1]))).toThrow(
    "The operation 'Neg' was called outside of a function that is compiled, and no backend that computes is loaded. " +
      "Call it in the function given to jit or compile, or import '@tensorflow/tfjs-backend-cpu' first.",
  );
});

test('a tensor made on the host is a constant of the program', () => {
  const { graph } = traceProgram((t: any) => tf.add(t.x, tf.tensor([1, 2, 3])), { x });
  expect(graph.nodes[0]!.inputs[1]!.data).toEqual(Float32Array.of(1, 2, 3));
});

test('tidy keeps tensors that the program needs', async () => {
  const f = (t: { x: Tensor }) => tf.tidy(() => tf.square(tf.tidy(() => tf.neg(t.x))));
  const { graph } = traceProgram(f, { x });
  expect(graph.nodes.map((node) => node.op)).toEqual(['Neg', 'Square']);
});

test('a missing device names the package to install', async () => {
  const failure = compile((t: any) => t.x, { x }, { device: 'gpu' });
  await expect(failure).rejects.toThrow(
    /^--device=gpu needs the package @tensorflow\/tfjs-node-gpu, which could not be loaded \(.*[^.]\)\. Install it with `npm install @tensorflow\/tfjs-node-gpu@4\.22\.0` on a machine with CUDA 11 and cuDNN 8, or use --device=cpu\.$/,
  );
});

test('a constant that the host works out is in a program once, and not at all where only shapes are asked for', async () => {
  let made = 0;
  const table = () =>
    ops.hostConstant('table', { shape: [3], dtype: 'float32' }, () => {
      made++;
      return Float32Array.of(1, 2, 3);
    });
  const f = ({ x }: { x: Tensor }) => tf.add(tf.mul(x, table()), table());
  expect(traceProgram(f, { x }, { abstract: true }).outputs).toEqual(x);
  expect(made).toBe(0);
  const executable = await compile(f, { x });
  expect(made).toBe(1);
  const ones = { ...x, data: new Float32Array(6).fill(1) };
  expect([...((await executable.run({ x: ones })) as HostTensor).data]).toEqual([2, 4, 6, 2, 4, 6]);
  await executable.dispose();
  // Another program, another table: none outlives the trace that it was made for.
  traceProgram(f, { x });
  expect(made).toBe(2);
});

test('where only shapes are asked for, large constants are let go; equal elements are still simplified away', () => {
  const size = 8192;
  const shapeOnly = (f: (x: Tensor) => Tensor) =>
    traceProgram((inputs: any) => f(inputs), spec([size]), { abstract: true }).graph;
  const table = Float32Array.from({ length: size }, (_, i) => i);
  expect(shapeOnly((t) => tf.mul(t, tf.tensor1d(table))).nodes[0]!.inputs[1]).toEqual({
    id: expect.any(Number),
    ...spec([size]),
  });
  const neutral = (t: Tensor) => tf.add(tf.mul(tf.neg(t), tf.ones([size])), tf.zeros([size]));
  expect(costAnalysis(neutral, spec([size])).byOp).toEqual({
    Neg: { count: 1, flops: size, bytes: 8 * size },
  });
});

test('tfjs may count the data of a trace, as it does in its checks for leaks', () => {
  const counts: number[] = [];
  const count = () => counts.push(tf.backend().numDataIds());
  traceProgram(
    ({ x }: any) => {
      count();
      const kept = tf.tensor([1, 2, 3]);
      count();
      tf.exp(x).dispose();
      kept.dispose();
      count();
      return x;
    },
    { x } as never,
  );
  expect(counts.map((each) => each - counts[0]!)).toEqual([0, 1, 0]);
});

test('a program keeps no memory for a large constant of one number', async () => {
  const values = new Float32Array(1 << 16).fill(0.5);
  const signed = new Float32Array(1 << 16);
  signed[7] = -0;
  const { graph } = traceProgram(
    ({ x }: { x: tf.Tensor }) => [
      tf.mul(x, tf.tensor1d(values)),
      tf.mul(x, tf.tensor1d(signed)),
      tf.mul(x, tf.ones([1 << 16])),
    ],
    { x: { shape: [1 << 16], dtype: 'float32' } },
  );
  const constants = graph.nodes.flatMap(({ inputs }) => inputs.flatMap(({ data }) => data ?? []));
  // Of the zeros, one has a sign of its own.
  expect(constants).toEqual([signed]);
  const filled = graph.nodes.filter(({ op }) => op === 'Fill').map(({ attrs }) => attrs.value);
  expect(filled).toEqual([0.5, 1]);
});
