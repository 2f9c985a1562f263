/** @file A training step of a small transformer: its loss, and its weights after a step of Adam's first. */
import {
  type HostTensor,
  ops,
  type Precision,
  type Tensor,
  tf,
  valueAndGrad,
  withPrecision,
} from '../../../../src/compiler/index.js';
import { floats, host, ints } from '../../values.js';

const [BATCH, TIME, HEADS, WIDTH, WORDS] = [3, 37, 2, 48, 61];

type Weights<T> = Readonly<Record<'words' | 'places' | 'scale' | 'qkv' | 'out' | 'up' | 'down', T>>;
interface Inputs<T> {
  readonly weights: Weights<T>;
  readonly ids: T;
  readonly labels: T;
  readonly key: T;
}

const weight = (shape: number[], seed: number): HostTensor => floats(shape, -0.15, 0.15, seed);

export const trainingInputs: Inputs<HostTensor> = {
  weights: {
    words: weight([WORDS, WIDTH], 1),
    places: weight([TIME, WIDTH], 2),
    scale: floats([WIDTH], 0.5, 1.5, 3),
    qkv: weight([WIDTH, 3 * WIDTH], 4),
    out: weight([WIDTH, WIDTH], 5),
    up: weight([WIDTH, 4 * WIDTH], 6),
    down: weight([4 * WIDTH, WIDTH], 7),
  },
  ids: ints([BATCH, TIME], 0, WORDS, 8),
  labels: ints([BATCH, TIME], 0, WORDS, 9),
  key: host([2], [3, 4], 'int32'),
};

/** x [rows, width] times w. */
const times = (x: Tensor, w: Tensor): Tensor => tf.matMul(x as tf.Tensor2D, w as tf.Tensor2D);

function loss({ words, places, scale, qkv, out, up, down }: Weights<Tensor>, inputs: Inputs<Tensor>): Tensor {
  const embedded = tf.add(ops.embeddingLookup(words, inputs.ids), places);
  let x: Tensor = tf.reshape(ops.dropout(embedded, inputs.key, 0.9), [BATCH * TIME, WIDTH]);
  const [q, k, v] = tf
    .split(times(ops.layerNorm(x, scale, null, { epsilon: 1e-6 }), qkv), 3, 1)
    .map((part) => tf.reshape(part, [BATCH, TIME, HEADS, WIDTH / HEADS])) as [Tensor, Tensor, Tensor];
  const attended = ops.attention(q, k, v, { causal: true });
  x = tf.add(x, times(tf.reshape(attended, [BATCH * TIME, WIDTH]), out));
  x = tf.add(x, times(ops.gelu(times(ops.rmsNorm(x, scale, { epsilon: 1e-6 }), up)), down));
  const logits = tf.matMul(x as tf.Tensor2D, words as tf.Tensor2D, false, true);
  return tf.mean(ops.softmaxCrossEntropy(logits, tf.reshape(inputs.labels, [BATCH * TIME])));
}

/** The loss, the gradients and the new weights, with products in this precision. */
export const trainingStep = (precision: Precision) => (inputs: Inputs<Tensor>) => {
  const { value, grads } = valueAndGrad(
    (weights: Weights<Tensor>) => ({ value: withPrecision(precision, () => loss(weights, inputs)), aux: [] }),
    inputs.weights,
  );
  const step = (w: Tensor, g: Tensor): Tensor =>
    tf.sub(w, tf.mul(0.01, tf.div(g, tf.add(tf.sqrt(tf.square(g)), 1e-3))));
  const names = Object.keys(grads) as (keyof Weights<Tensor>)[];
  const updated = names.map((name) => step(inputs.weights[name], grads[name]));
  return { value, grads, updated };
};
