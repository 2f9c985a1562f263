/** @file Models beyond GPT, of bench:beyond-gpt: their loss and its gradients, as bench/peers/torch_beyond.py has them. */
import { type Tensor, tf } from '../src/compiler/index.js';

const CLASSES = 10;

/** Tensors by name. */
export type Tensors = Readonly<Record<string, Tensor>>;

/** A classifier. */
export interface Model {
  /** Of the inputs. */
  readonly shape: readonly number[];
  /** Of the parameters. */
  readonly params: Readonly<Record<string, readonly number[]>>;
  logits(params: Tensors, x: Tensor): Tensor;
}

type Image = tf.Tensor4D;

const conv = (x: Tensor, w: Tensor, stride = 1): Tensor =>
  tf.conv2d(x as Image, w as Image, stride, w.shape[0] === 1 ? 'valid' : 'same');

const linear = (x: Tensor, p: Tensors, name: string): Tensor =>
  tf.add(tf.matMul(x, p[`${name}.w`]!), p[`${name}.b`]!);

const classify = (x: Tensor, p: Tensors): Tensor => linear(tf.mean(x, [1, 2]), p, 'head');

/** Weights [...filter, a, b] and biases of layers of these depths, by names with numbers. */
function layers(name: string, depths: readonly number[], filter: readonly number[]): Model['params'] {
  const entries = depths.slice(1).flatMap((depth, i) => [
    [`${name}${i}.w`, [...filter, depths[i]!, depth]],
    [`${name}${i}.b`, [depth]],
  ]);
  return Object.fromEntries(entries);
}

const head = (features: number): Model['params'] => ({ 'head.w': [features, CLASSES], 'head.b': [CLASSES] });

/** Four 3x3 convolutions, a pooling between, then the mean of all places. */
const convStack: Model = {
  shape: [64, 32, 32, 3],
  params: { ...layers('conv', [3, 64, 64, 128, 128], [3, 3]), ...head(128) },
  logits(p, x) {
    let y = x;
    for (let i = 0; i < 4; i++) {
      y = tf.relu(tf.add(conv(y, p[`conv${i}.w`]!), p[`conv${i}.b`]!));
      if (i === 1) y = tf.maxPool(y as Image, 2, 2, 'valid');
    }
    return classify(y, p);
  },
};

/** MobileNet's: three times a depthwise 3x3 convolution and a 1x1 one. */
const mobileBlock: Model = {
  shape: [32, 32, 32, 64],
  params: {
    ...Object.fromEntries(
      [64, 128, 128].flatMap((depth, i) => [
        [`depthwise${i}.w`, [3, 3, depth, 1]],
        [`depthwise${i}.b`, [depth]],
      ]),
    ),
    ...layers('pointwise', [64, 128, 128, 256], [1, 1]),
    ...head(256),
  },
  logits(p, x) {
    let y = x;
    for (let i = 0; i < 3; i++) {
      const filter = p[`depthwise${i}.w`] as Image;
      const each = tf.depthwiseConv2d(y as Image, filter, 1 + (i % 2), [
        [0, 0],
        [1, 1],
        [1, 1],
        [0, 0],
      ]);
      y = tf.relu(tf.add(each, p[`depthwise${i}.b`]!));
      y = tf.relu(tf.add(conv(y, p[`pointwise${i}.w`]!), p[`pointwise${i}.b`]!));
    }
    return classify(y, p);
  },
};

/** Two residual blocks, the second of half the side and twice the depth; batch norm of the batch's own moments. */
const resnetBlock: Model = {
  shape: [32, 28, 28, 64],
  params: {
    'first0.w': [3, 3, 64, 64],
    'first1.w': [3, 3, 64, 64],
    'second0.w': [3, 3, 64, 128],
    'second1.w': [3, 3, 128, 128],
    'shortcut.w': [1, 1, 64, 128],
    ...Object.fromEntries(
      [64, 64, 128, 128].flatMap((depth, i) => [
        [`norm${i}.scale`, [depth]],
        [`norm${i}.b`, [depth]],
      ]),
    ),
    ...head(128),
  },
  logits(p, x) {
    const normed = (y: Tensor, i: number): Tensor => {
      const { mean, variance } = tf.moments(y, [0, 1, 2]);
      const unit = tf.mul(tf.sub(y, mean), tf.rsqrt(tf.add(variance, 1e-5)));
      return tf.add(tf.mul(unit, p[`norm${i}.scale`]!), p[`norm${i}.b`]!);
    };
    const inner = tf.relu(normed(conv(x, p['first0.w']!), 0));
    const y = tf.relu(tf.add(x, normed(conv(inner, p['first1.w']!), 1)));
    const half = tf.relu(normed(conv(y, p['second0.w']!, 2), 2));
    const sum = tf.add(conv(y, p['shortcut.w']!, 2), normed(conv(half, p['second1.w']!), 3));
    return classify(tf.relu(sum), p);
  },
};

/** 784-1024-1024-10. */
const mlp: Model = {
  shape: [128, 784],
  params: { ...layers('hidden', [784, 1024, 1024], []), ...head(1024) },
  logits: (p, x) => linear(tf.relu(linear(tf.relu(linear(x, p, 'hidden0')), p, 'hidden1')), p, 'head'),
};

/** An LSTM over 32 steps; its last state is classified. */
const lstm: Model = {
  shape: [32, 32, 256],
  params: { 'input.w': [256, 1024], 'input.b': [1024], state: [256, 1024], ...head(256) },
  logits(p, x) {
    const [rows, steps, width] = x.shape as [number, number, number];
    const read = tf.reshape(linear(tf.reshape(x, [-1, width]), p, 'input'), [rows, steps, 4 * width]);
    let h: Tensor = tf.zeros([rows, width]);
    let c = h;
    for (const at of tf.unstack(read, 1)) {
      const [i, f, g, o] = tf.split(tf.add(at, tf.matMul(h, p.state!)), 4, 1) as [
        Tensor,
        Tensor,
        Tensor,
        Tensor,
      ];
      c = tf.add(tf.mul(tf.sigmoid(f), c), tf.mul(tf.sigmoid(i), tf.tanh(g)));
      h = tf.mul(tf.sigmoid(o), tf.tanh(c));
    }
    return linear(h, p, 'head');
  },
};

export const models: Readonly<Record<string, Model>> = {
  conv: convStack,
  mobile: mobileBlock,
  resnet: resnetBlock,
  mlp,
  lstm,
};

/** Mean cross-entropy for labels [B]. */
export const lossOf = (model: Model, params: Tensors, x: Tensor, labels: Tensor): Tensor => {
  const logits = model.logits(params, x);
  return tf.neg(tf.mean(tf.sum(tf.mul(tf.logSoftmax(logits), tf.oneHot(labels as tf.Tensor1D, CLASSES)), 1)));
};
