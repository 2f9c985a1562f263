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

/** A GRU over 64 steps, its gates in PyTorch's order; its last state is classified. */
const gru: Model = {
  shape: [16, 64, 512],
  params: {
    'input.w': [512, 1536],
    'input.b': [1536],
    'state.w': [512, 1536],
    'state.b': [1536],
    ...head(512),
  },
  logits(p, x) {
    const [rows, steps, width] = x.shape as [number, number, number];
    const read = tf.reshape(linear(tf.reshape(x, [-1, width]), p, 'input'), [rows, steps, 3 * width]);
    let h: Tensor = tf.zeros([rows, width]);
    for (const at of tf.unstack(read, 1)) {
      const [r, z, n] = tf.split(at, 3, 1) as [Tensor, Tensor, Tensor];
      const [hr, hz, hn] = tf.split(linear(h, p, 'state'), 3, 1) as [Tensor, Tensor, Tensor];
      const update = tf.sigmoid(tf.add(z, hz));
      const next = tf.tanh(tf.add(n, tf.mul(tf.sigmoid(tf.add(r, hr)), hn)));
      h = tf.add(next, tf.mul(update, tf.sub(h, next)));
    }
    return linear(h, p, 'head');
  },
};

/** Depths of the U-Net's sides of 64, 32 and 16. */
const UNET = [32, 64, 128] as const;

/** A U-Net: two 3x3 convolutions with group norm at each side, transposed convolutions upwards, then the mean of all places. */
const unet: Model = {
  shape: [8, 64, 64, 3],
  params: {
    ...Object.fromEntries(
      (
        [
          ['down0', 3, 32],
          ['down1', 32, 64],
          ['down2', 64, 128],
          ['up1', 128, 64],
          ['up0', 64, 32],
        ] as const
      ).flatMap(([name, from, to]) =>
        [from, to].flatMap((depth, i) => [
          [`${name}.${i}.w`, [3, 3, depth, to]],
          [`${name}.${i}.scale`, [to]],
          [`${name}.${i}.b`, [to]],
        ]),
      ),
    ),
    ...Object.fromEntries(
      [0, 1].flatMap((i) => [
        [`grow${i}.w`, [2, 2, UNET[i]!, UNET[i + 1]!]],
        [`grow${i}.b`, [UNET[i]!]],
      ]),
    ),
    ...head(32),
  },
  logits(p, x) {
    const normed = (y: Tensor, name: string): Tensor => {
      const [rows, height, width, depth] = y.shape as [number, number, number, number];
      const groups = tf.reshape(y, [rows, height, width, 8, depth / 8]);
      const { mean, variance } = tf.moments(groups, [1, 2, 4], true);
      const unit = tf.reshape(tf.mul(tf.sub(groups, mean), tf.rsqrt(tf.add(variance, 1e-5))), y.shape);
      return tf.add(tf.mul(unit, p[`${name}.scale`]!), p[`${name}.b`]!);
    };
    const twice = (y: Tensor, name: string): Tensor =>
      [0, 1].reduce((z, i) => tf.relu(normed(conv(z, p[`${name}.${i}.w`]!), `${name}.${i}`)), y);
    const grown = (y: Tensor, i: number): Tensor => {
      const [rows, height, width] = y.shape as [number, number, number];
      const shape = [rows, 2 * height, 2 * width, UNET[i]!] as [number, number, number, number];
      const larger = tf.conv2dTranspose(y as Image, p[`grow${i}.w`] as Image, shape, 2, 'valid');
      return tf.add(larger, p[`grow${i}.b`]!);
    };
    const pooled = (y: Tensor): Tensor => tf.maxPool(y as Image, 2, 2, 'valid');
    const first = twice(x, 'down0');
    const second = twice(pooled(first), 'down1');
    const third = twice(pooled(second), 'down2');
    const up = twice(tf.concat([second, grown(third, 1)], 3), 'up1');
    return classify(twice(tf.concat([first, grown(up, 0)], 3), 'up0'), p);
  },
};

export const models: Readonly<Record<string, Model>> = {
  conv: convStack,
  mobile: mobileBlock,
  resnet: resnetBlock,
  mlp,
  lstm,
  gru,
  unet,
};

/** Mean cross-entropy for labels [B]. */
export const lossOf = (model: Model, params: Tensors, x: Tensor, labels: Tensor): Tensor => {
  const logits = model.logits(params, x);
  return tf.neg(tf.mean(tf.sum(tf.mul(tf.logSoftmax(logits), tf.oneHot(labels as tf.Tensor1D, CLASSES)), 1)));
};
