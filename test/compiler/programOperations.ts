/** @file Operations of random programs on numbers: of one value, of two that broadcast, and of shapes. */
import { ops, type Tensor, tf } from '../../src/compiler/index.js';
import { computedIndices, integers, scalarInt, truths } from './discreteOperations.js';

/** What a step may look at. All values stay within about -2.5 and 2.5, so that no error is blown up. */
export interface Place {
  readonly x: Tensor;
  /** Broadcasts with x. */
  readonly y: Tensor;
  readonly n: number;
  /** An axis of x; 0 for a scalar. */
  readonly axis: number;
  readonly inputs: Inputs<Tensor>;
}

export interface Inputs<T> {
  readonly floats: readonly T[];
  /** NaN, infinities, zeros of both signs, the smallest and the largest numbers: float32 [16]. */
  readonly special: T;
  readonly ids: T;
  readonly key: T;
}

const half = (x: Tensor): Tensor => tf.mul(x, 0.5);

export const smooth: Record<string, (x: Tensor) => Tensor> = {
  neg: (x) => tf.neg(x),
  tanh: (x) => tf.tanh(x),
  sigmoid: (x) => tf.sigmoid(x),
  square: (x) => half(tf.square(x)),
  exp: (x) => half(tf.exp(half(x))),
  expm1: (x) => tf.expm1(half(x)),
  log1p: (x) => tf.log1p(tf.square(x)),
  sqrt: (x) => half(tf.sqrt(tf.add(tf.square(x), 1))),
  rsqrt: (x) => tf.rsqrt(tf.add(tf.square(x), 1)),
  reciprocal: (x) => tf.reciprocal(tf.add(tf.square(x), 1)),
  sin: (x) => tf.sin(x),
  cos: (x) => tf.cos(x),
  softplus: (x) => half(tf.softplus(x)),
  erf: (x) => tf.erf(x),
  elu: (x) => tf.elu(x),
  gelu: (x) => ops.gelu(x),
  geluTanh: (x) => ops.gelu(x, { approximate: true }),
  pow: (x) => half(tf.pow(tf.add(tf.square(x), 0.5), 0.75)),
  // What the passes remove or merge.
  same: (x) => tf.clone(x),
  addZero: (x) => tf.add(tf.sub(x, tf.zerosLike(x)), 0),
  timesOne: (x) => tf.div(tf.mul(tf.onesLike(x), x), 1),
  factors: (x) => tf.mul(tf.mul(tf.neg(x), 0.5), 1.5),
  fill: (x) => half(tf.add(x, tf.fill(x.shape, 0.25))),
  cast: (x) => tf.cast(x, 'float32'),
  twice: (x) => tf.sub(tf.tanh(x), half(tf.tanh(x))),
};

export const pairs: Record<string, (x: Tensor, y: Tensor) => Tensor> = {
  add: (x, y) => half(tf.add(x, y)),
  sub: (x, y) => half(tf.sub(y, x)),
  mul: (x, y) => half(tf.mul(x, y)),
  div: (x, y) => tf.div(x, tf.add(tf.square(y), 1)),
  squaredDifference: (x, y) => tf.tanh(tf.squaredDifference(x, y)),
  addN: (x, y) => tf.mul(tf.addN([tf.sub(x, y), tf.add(x, y), tf.mul(x, y)]), 0.25),
};

export const shapes: Record<string, (place: Place) => Tensor | Tensor[]> = {
  flatten: ({ x }) => tf.reshape(x, [-1]),
  reshape: ({ x, axis }) => tf.reshape(x, [x.shape[axis] ?? 1, -1]),
  expandDims: ({ x, axis }) => tf.expandDims(x, axis),
  squeeze: ({ x }) => tf.squeeze(x),
  transpose: ({ x }) => tf.transpose(x),
  rotate: ({ x, n }) =>
    tf.transpose(
      x,
      x.shape.map((_, i) => (i + n) % x.rank),
    ),
  slice: ({ x, n }) => {
    if (x.rank === 0) return x;
    const begin = x.shape.map((dim, i) => (n + i) % dim);
    return tf.slice(
      x,
      begin,
      x.shape.map((dim, i) => Math.max(1, dim - begin[i]! - (n % 2))),
    );
  },
  split: ({ x, axis, n }) => {
    const dim = x.shape[axis] ?? 1;
    if (dim < 2) return x;
    const first = 1 + (n % (dim - 1));
    const [a, b] = tf.split(x, [first, dim - first], axis);
    return n % 2 ? tf.concat([b!, a!], axis) : [a!, b!];
  },
  reverse: ({ x, axis }) => (x.rank === 0 ? x : tf.reverse(x, axis)),
  pad: ({ x, n }) =>
    x.rank === 0
      ? x
      : tf.pad(
          x,
          x.shape.map((_, i): [number, number] => [(n + i) % 2, n % 3 === 0 ? 1 : 0]),
        ),
  tile: ({ x, n }) =>
    x.rank === 0
      ? x
      : tf.tile(
          x,
          x.shape.map((_, i) => 1 + ((n + i) % 2)),
        ),
  broadcast: ({ x, n }) => tf.broadcastTo(x, [2 + (n % 2), ...x.shape]),
  stack: ({ x, axis }) => tf.stack([x, tf.neg(x)], axis),
  unstack: ({ x, axis }) => (x.rank === 0 ? x : tf.unstack(x, axis)),
  sum: ({ x, axis, n }) => tf.mul(tf.sum(x, x.rank ? axis : undefined, n % 2 === 0), 0.25),
  mean: ({ x, axis, n }) => tf.mean(x, x.rank ? axis : undefined, n % 2 === 0),
  meanAll: ({ x }) => tf.mean(x),
  softmax: ({ x }) => (x.rank === 0 ? x : tf.softmax(x)),
  logSoftmax: ({ x }) => (x.rank === 0 ? x : tf.mul(tf.logSoftmax(x), 0.3)),
  logSumExp: ({ x, axis }) => (x.rank === 0 ? x : tf.mul(tf.logSumExp(x, axis), 0.3)),
  cumsum: ({ x, axis, n }) => (x.rank === 0 ? x : tf.tanh(tf.cumsum(x, axis, n % 2 === 0, n % 3 === 0))),
  layerNorm: ({ x }) => (x.rank === 0 ? x : tf.tanh(ops.layerNorm(x, null, null, { epsilon: 0.1 }))),
  rmsNorm: ({ x }) => (x.rank === 0 ? x : tf.tanh(ops.rmsNorm(x, null, { epsilon: 0.1 }))),
  gram: ({ x, n }) => (x.rank < 2 ? x : tf.tanh(tf.mul(tf.matMul(x, x, n % 2 === 0, n % 2 === 1), 0.1))),
  product: ({ x, n }) => {
    if (x.rank < 2) return x;
    const swap = x.shape.map((_, i) => (i < x.rank - 2 ? i : 2 * x.rank - 3 - i));
    const y = tf.transpose(tf.tanh(x), swap);
    return tf.tanh(tf.mul(n % 2 ? tf.matMul(x, y) : tf.matMul(y, x), 0.125));
  },
  spread: ({ x, y, n }) => {
    // A product whose batch dimensions broadcast, of operands that are views.
    if (x.rank < 2 || y.rank < 1) return x;
    const inner = x.shape.at(n % 2 ? -2 : -1)!;
    const b = tf.reshape(tf.tile(tf.reshape(y, [-1]), [inner]), [1, inner, y.size]);
    if (y.size > 6) return x;
    return tf.tanh(tf.mul(tf.matMul(x.rank === 2 ? tf.expandDims(x, 0) : x, b, n % 2 === 1), 0.2));
  },
  attention: ({ x, n }) => {
    if (x.rank < 2) return x;
    const [time, depth] = x.shape.slice(-2) as [number, number];
    const heads = depth % 2 === 0 ? 2 : 1;
    const q = tf.reshape(x, [-1, time, heads, depth / heads]);
    const window = n % 4 === 3 ? { before: n % 7 } : {};
    const options = { causal: n % 2 === 1, window, logitCap: n % 5 === 0 ? 2 : 0 };
    const mask = tf.tensor2d(
      Array.from({ length: time * time }, (_, i) => ((i * n) % 3) - 1),
      [time, time],
    );
    const y = ops.attention(q, tf.tanh(q), tf.neg(q), n % 3 === 0 ? { ...options, mask } : options);
    return tf.reshape(half(y), x.shape);
  },
  conv2d: ({ x, y, n }) => {
    if (x.rank < 2) return x;
    const image = imageOf(x);
    const window = [1 + (n % 3), 1 + ((n + 1) % 2)] as const;
    const filter = filled(tf.tanh(y), [...window, image.shape[3]!, 1 + (n % 2)]);
    // Dilated, in strides, or neither.
    const [strides, dilations] = [n % 3 === 1 ? 2 : 1, n % 3 === 2 ? 2 : 1];
    return tf.tanh(tf.mul(tf.conv2d(image, filter, strides, 'same', 'NHWC', dilations), 0.2));
  },
  depthwise: ({ x, y, n }) => {
    if (x.rank < 2) return x;
    const image = imageOf(x);
    const filter = filled(tf.tanh(y), [1 + (n % 2), 2, image.shape[3]!, 1 + (n % 3)]);
    return half(tf.depthwiseConv2d(image, filter, n % 4 === 0 ? 2 : 1, 'same'));
  },
  averages: ({ x, n }) => (x.rank < 2 ? x : tf.avgPool(imageOf(x), 1 + (n % 3), 1 + (n % 2), 'same')),
  crossEntropy: ({ x, n }) => {
    // tfjs has no one-hot of depth 1.
    if (x.rank === 0 || x.shape.at(-1) === 1) return x;
    const [depth, lead] = [x.shape.at(-1)!, x.shape.slice(0, -1)];
    const labels = tf.reshape(
      tf.mod(tf.range(n, n + x.size / depth, 1, 'int32'), tf.scalar(depth, 'int32')),
      lead,
    );
    return tf.mul(ops.softmaxCrossEntropy(x, labels), 0.3);
  },
  strides: ({ x, n }) => {
    if (x.rank === 0) return x;
    const step = n % 3 === 0 ? -1 : 2;
    const begin = x.shape.map((dim) => (step < 0 ? dim - 1 : 0));
    const end = x.shape.map((dim) => (step < 0 ? -dim - 1 : dim));
    const steps = x.shape.map(() => step);
    return tf.stridedSlice(x, begin, end, steps);
  },
  oneHot: ({ x, inputs }) => {
    if (x.rank === 0 || x.shape[0] === 1) return x;
    const hot = tf.oneHot(inputs.ids as tf.Tensor1D, x.shape[0]!);
    return x.rank === 2 ? tf.tanh(tf.matMul(tf.cast(hot, 'float32'), x)) : tf.mean(hot);
  },
  gather: ({ x, inputs }) =>
    x.rank === 0 ? x : tf.gather(x, tf.minimum(inputs.ids, tf.scalar(x.shape[0]! - 1, 'int32')) as any),
  lookup: ({ x, inputs }) =>
    x.rank !== 2 ? x : ops.embeddingLookup(x, tf.mod(inputs.ids, tf.scalar(x.shape[0]!, 'int32'))),
  dropout: ({ x, n, inputs }) => half(ops.dropout(x, ops.foldIn(inputs.key, n), 0.75)),
  // Parts without elements, and what is made of them.
  empty: ({ x, axis }) => (x.rank === 0 ? x : emptyPart(x, axis)),
  besideEmpty: ({ x, axis, n }) => {
    if (x.rank === 0) return x;
    const nothing = emptyPart(x, axis);
    return n % 2 ? tf.concat([nothing, x, nothing], axis) : tf.concat([x, nothing], axis);
  },
  padEmpty: ({ x, axis, n }) => {
    if (x.rank === 0) return x;
    const pads = x.shape.map((_, i): [number, number] => (i === axis ? [1 + (n % 2), 0] : [0, 0]));
    return tf.pad(emptyPart(x, axis), pads, 0.5);
  },
  reduceEmpty: ({ x, axis, n }) => {
    if (x.rank === 0) return x;
    const nothing = emptyPart(x, axis);
    if (n % 3 === 0) return tf.sum(nothing, axis, n % 2 === 0);
    return flat(
      (y) => tf.tanh(n % 3 === 1 ? tf.max(y, axis) : tf.cast(tf.prod(y, axis), 'float32')),
      nothing,
    );
  },
  productOverNothing: ({ x, n }) => {
    if (x.rank !== 2) return x;
    const nothing = emptyPart(x, n % 2);
    return tf.add(tf.matMul(nothing, nothing, n % 2 === 0, n % 2 === 1), 0.25);
  },
  gatherNothing: ({ x, inputs }) =>
    x.rank === 0 ? x : tf.sum(tf.gather(x, tf.slice(inputs.ids, [0], [0]) as any), 0),
  // Indices that the program works out, in each way that a lowering may fuse.
  gatherComputed: ({ x, axis, n, inputs }) => {
    if (x.rank === 0) return x;
    const indices = computedIndices(inputs.ids, x.shape[axis]!, n);
    return half(tf.gather(x, indices as any, axis));
  },
  lookupComputed: ({ x, n, inputs }) =>
    x.rank !== 2 ? x : half(ops.embeddingLookup(x, computedIndices(inputs.ids, x.shape[0]!, n))),
  integers: ({ x, n, inputs }) => {
    const other = tf.add(tf.reverse(inputs.ids), scalarInt(1));
    const whole = integers[n % integers.length]!(tf.sub(inputs.ids, scalarInt(2)), other);
    return tf.mul(tf.tanh(tf.mul(tf.sum(tf.cast(whole, 'float32')), 0.1)), tf.mean(x));
  },
  truths: ({ x, n, inputs }) => {
    const [a, b] = [
      tf.greater(inputs.ids, scalarInt(1)),
      tf.equal(tf.mod(inputs.ids, scalarInt(2)), scalarInt(0)),
    ];
    const truth = truths[n % truths.length]!(a, b);
    return tf.mul(tf.mean(tf.cast(truth, 'float32')), tf.tanh(tf.mean(x)));
  },
  // Kinks and jumps only at inputs: a value that differs in its last bit must not take another branch.
  where: ({ x, n, inputs }) => {
    const leaf = inputs.floats[n % inputs.floats.length]!;
    return broadcasts(leaf.shape, x.shape) ? tf.where(tf.greater(leaf, 0), x, tf.neg(x)) : x;
  },
  relu: ({ n, inputs }) => tf.relu(inputs.floats[n % inputs.floats.length]!),
  clip: ({ n, inputs }) => tf.clipByValue(inputs.floats[n % inputs.floats.length]!, -1, 1.5),
  kinks: ({ n, inputs }) => kinks[n % kinks.length]!(inputs.floats[n % inputs.floats.length]!),
  largestNear: ({ n, inputs }) => {
    const leaf = inputs.floats[n % inputs.floats.length]!;
    return leaf.rank < 2 ? leaf : tf.maxPool(imageOf(leaf), [2, 1 + (n % 3)], 1 + (n % 2), 'same');
  },
  extremes: ({ n, inputs }) => {
    const leaf = inputs.floats[n % inputs.floats.length]!;
    const other = inputs.floats[(n + 1) % inputs.floats.length]!;
    if (!broadcasts(leaf.shape, other.shape)) return tf.max(leaf);
    return n % 2 ? tf.maximum(leaf, other) : tf.minimum(leaf, other);
  },
  // tfjs has no gradients of these.
  largest: ({ x, n, inputs }) => {
    const { values, indices } = tf.topk(table(inputs, n), 1 + (n % 2));
    return tf.mul(tf.sum(tf.add(values, tf.cast(indices, 'float32'))), tf.mul(tf.mean(x), 0.1));
  },
  prod: ({ x, n, inputs }) => tf.mul(tf.tanh(tf.sum(tf.prod(half(table(inputs, n)), 0))), tf.mean(x)),
  places: ({ x, n, inputs }) => {
    const at = n % 2 ? tf.argMax(table(inputs, n), -1) : tf.argMin(table(inputs, n), 0);
    return tf.mul(tf.cast(tf.floorDiv(at, tf.scalar(2, 'int32')), 'float32'), tf.mean(x));
  },
  truth: ({ x, n, inputs }) => {
    const large = tf.greater(table(inputs, n), 1);
    const found = n % 3 ? tf.any(large, 0) : tf.all(large, 0);
    if (!broadcasts(found.shape, x.shape)) return x;
    return tf.where(tf.logicalOr(found, tf.isNaN(x)), tf.neg(x), x);
  },
};

/** No elements along an axis. */
const emptyPart = (x: Tensor, axis: number): Tensor =>
  tf.slice(
    x,
    x.shape.map((dim, i) => (i === axis ? dim >> 1 : 0)),
    x.shape.map((dim, i) => (i === axis ? 0 : dim)),
  );

/** Steps that take tensors without elements; others pass them on. */
export const takesEmpty = new Set([
  ...Object.keys(smooth),
  ...Object.keys(pairs),
  'expandDims',
  'transpose',
  'rotate',
  'reverse',
  'stack',
  'broadcast',
  'softmax',
  'cumsum',
  'layerNorm',
  'rmsNorm',
]);

/** A batch of images [B, H, W, C], of a tensor of rank 2 to 4. */
const imageOf = (x: Tensor): any =>
  x.rank === 4 ? x : tf.reshape(x, x.rank === 3 ? [1, ...x.shape] : [1, ...x.shape, 1]);

/** A tensor of this shape with the elements of y, over and over. */
function filled(y: Tensor, shape: number[]): any {
  const size = shape.reduce((a, b) => a * b, 1);
  const elements = tf.tile(tf.reshape(y, [-1]), [Math.ceil(size / y.size)]);
  return tf.reshape(tf.slice(elements, [0], [size]), shape);
}

/** f(x) with a gradient of zero, where tfjs has none. */
const flat = (f: (x: Tensor) => Tensor, x: Tensor): Tensor =>
  tf.customGrad((y: any) => ({ value: f(y), gradFunc: () => tf.zerosLike(x) }))(x);

/** Numbers without a gradient. */
const table = ({ ids }: Inputs<Tensor>, n: number): Tensor =>
  tf.reshape(tf.cast(ids, 'float32'), n % 2 ? [2, 2] : [4]);

/** What has a kink or a jump. */
const kinks: readonly ((leaf: Tensor) => Tensor)[] = [
  tf.abs,
  tf.sign,
  tf.floor,
  tf.ceil,
  tf.round,
  (leaf) => tf.leakyRelu(leaf, 0.3),
  (leaf) => tf.div(tf.relu6(tf.mul(leaf, 4)), 4),
  (leaf) => tf.where(tf.isFinite(leaf), leaf, tf.zerosLike(leaf)),
  (leaf) => (leaf.rank === 0 ? leaf : tf.min(leaf, 0)),
  (leaf) => tf.mul(leaf, tf.cast(tf.notEqual(tf.round(leaf), tf.round(tf.neg(leaf))), 'float32')),
];

export const broadcasts = (a: readonly number[], b: readonly number[]): boolean =>
  Array.from({ length: Math.min(a.length, b.length) }, (_, i) => [a.at(-1 - i)!, b.at(-1 - i)!]).every(
    ([x, y]) => x === y || x === 1 || y === 1,
  );
