/** @file Variants of attention as subclasses that override one part, each against plain loops, whole and token by token. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { ops, type Tensor, tf } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import {
  DotProductAttention,
  decodeStateSpecs,
  GroupedQueryAttention,
  listVariables,
  positionsOf,
  type Theta,
  type Visibility,
} from '../../../src/layers/index.js';
import { checkGradients, expectClose, ints, randomTheta, run, stateOf, tensor } from '../helpers.js';
import { attention, type Matrix, matrix, multiply, transposed } from '../plain.js';

const [B, T, D, N, H] = [2, 5, 6, 4, 3];
const dims = {
  inputDim: D,
  hiddenDim: N * H,
  numHeads: N,
  useBias: false,
  internalEnablePerDimScale: false,
};

/** Of the keys that may be seen, a query sees the last `window`. */
class LocalAttention extends DotProductAttention.with({ window: z.int().positive() }) {
  protected override dotAtten(query: Tensor, key: Tensor, value: Tensor, seen: Visibility): Tensor {
    return super.dotAtten(query, key, value, { ...seen, window: { before: this.hp.window - 1 } });
  }
}

/** A trained number for each head and distance up to 3 is added to the logits (Raffel et al., 2020). */
class RelativeAttention extends DotProductAttention {
  declare readonly theta: Theta<'rel_bias'>;
  protected override setup(): void {
    super.setup();
    this.createVariable('rel_bias', { shape: [4, N] });
  }
  protected override dotAtten(query: Tensor, key: Tensor, value: Tensor, seen: Visibility): Tensor {
    const { queries, keys } = positionsOf(seen, query.shape[1]!, key.shape[1]!);
    const distance = tf.abs(tf.sub(tf.expandDims(queries, 2), tf.expandDims(keys, 1)));
    const buckets = tf.minimum(distance, tf.scalar(3, 'int32'));
    const bias = tf.transpose(ops.embeddingLookup(this.theta.rel_bias, buckets as Tensor), [0, 3, 1, 2]);
    return super.dotAtten(query, key, value, { ...seen, bias });
  }
}

/** A trained number for each head and key is added to the logits. */
class BiasedAttention extends DotProductAttention {
  declare readonly theta: Theta<'key_bias'>;
  protected override setup(): void {
    super.setup();
    this.createVariable('key_bias', { shape: [N, T] });
  }
  protected override attenLogits(query: Tensor, key: Tensor): Tensor {
    return tf.add(ops.attentionLogits(query, key), tf.reshape(this.theta.key_bias, [1, N, 1, T]));
  }
}

type Values = Record<string, Tensor>;

const projected = (theta: Values, name: string, x: Matrix): Matrix => {
  const [, heads, depth] = theta[`${name}/w`]!.shape as [number, number, number];
  return multiply(x, matrix(theta[`${name}/w`]!.dataSync(), heads * depth));
};

/** Attention of one row by plain loops; keys and values of fewer heads are repeated. */
function reference(theta: Values, x: Matrix, visible: (t: number, s: number) => boolean, from = x): number[] {
  const repeat = (rows: Matrix): Matrix =>
    rows.map((row) => {
      const groups = row.length / H;
      return Array.from({ length: N * H }, (_, i) => {
        const head = Math.floor(Math.floor(i / H) / (N / groups));
        return row[head * H + (i % H)]!;
      });
    });
  const [q, k, v] = [
    projected(theta, 'query', x),
    repeat(projected(theta, 'key', from)),
    repeat(projected(theta, 'value', from)),
  ];
  const encoded = attention(q, k, v, { heads: N, scale: H ** -0.5, visible });
  return multiply(encoded, transposed(matrix(theta['post/w']!.dataSync(), N * H))).flat();
}

const rowsOf = (x: Tensor): Matrix[] => {
  const length = x.shape[1]!;
  const all = matrix(x.dataSync(), D);
  return Array.from({ length: B }, (_, b) => all.slice(b * length, (b + 1) * length));
};

/** Checks that the layer's next tokens, taken in parts of these sizes, are those of the whole sequence. */
function expectDecodes(layer: DotProductAttention, theta: Values, x: Tensor, whole: Tensor, parts: number[]) {
  const decodeState = stateOf(decodeStateSpecs(layer, B, T), 7);
  let begin = 0;
  for (const steps of parts) {
    const tokens = tf.slice(x, [0, begin, 0], [B, steps, D]);
    const at = tf.scalar(begin, 'int32');
    const out = run(theta, () => layer.extendStep(tokens, { timeStep: at }), { decodeState, doEval: true });
    expectClose(out, tf.slice(whole, [0, begin, 0], [B, steps, D]).dataSync());
    begin += steps;
  }
}

const causal = (t: number, s: number): boolean => s <= t;

test.each([1, 2, 4])('grouped queries: %i heads of keys and values', (numKvHeads) => {
  const layer = build(GroupedQueryAttention.config({ ...dims, numKvHeads }));
  expect(listVariables(layer).map(({ path, shape }) => `${path} ${shape}`)).toEqual([
    `key/w ${[D, numKvHeads, H]}`,
    `query/w ${[D, N, H]}`,
    `value/w ${[D, numKvHeads, H]}`,
    `post/w ${[D, N, H]}`,
  ]);
  const theta = randomTheta(layer);
  const x = tensor([B, T, D]);
  const whole = run(theta, () => layer.fprop(x, { seen: { causal: true } }));
  expectClose(
    whole,
    rowsOf(x).flatMap((row) => reference(theta, row, causal)),
  );
  expectDecodes(layer, theta, x, whole, [1, 3, 1]);
  expect(decodeStateSpecs(layer, B, T)['kv_cache/key_state']!.shape).toEqual([B, numKvHeads, T, H]);
  checkGradients(layer, [x], (input) => layer.fprop(input!, { seen: { causal: true } }), { probes: 3 });
});

test('groups of queries are of one size', () => {
  expect(() => build(GroupedQueryAttention.config({ ...dims, numKvHeads: 3 }))).toThrow(
    'model (GroupedQueryAttention): numHeads 4 is not a multiple of numKvHeads 3.',
  );
});

test('a mask of its own: local attention', () => {
  const layer = build(LocalAttention.config({ ...dims, window: 2 }));
  const theta = randomTheta(layer);
  const x = tensor([B, T, D]);
  const whole = run(theta, () => layer.fprop(x, { seen: { causal: true } }));
  expectClose(
    whole,
    rowsOf(x).flatMap((row) => reference(theta, row, (t, s) => s <= t && s > t - 2)),
  );
  expectDecodes(layer, theta, x, whole, [2, 1, 2]);
});

test('a bias by the distance of positions decodes what it trains, and restarts in each packed sequence', () => {
  const layer = build(RelativeAttention.config(dims));
  const theta = { ...randomTheta(layer), rel_bias: tensor([4, N], 7) };
  const x = tensor([B, T, D]);
  const whole = run(theta, () => layer.fprop(x, { seen: { causal: true } }));
  expectDecodes(layer, theta, x, whole, [2, 1, 2]);
  expectDecodes(layer, theta, x, whole, [1, 1, 1, 1, 1]);
  checkGradients(layer, [x], (input) => layer.fprop(input!, { seen: { causal: true } }), { probes: 3 });
  const ofBoth = (values: number[]) => ({ queries: ints(values, [1, T]), keys: ints(values, [1, T]) });
  const packed = run(theta, () =>
    layer.fprop(x, {
      seen: {
        causal: true,
        segments: ofBoth([0, 0, 1, 1, 1]),
        positions: ofBoth([0, 1, 0, 1, 2]),
      },
    }),
  );
  const [first, second] = [tf.slice(x, [0, 0, 0], [B, 2, D]), tf.slice(x, [0, 2, 0], [B, 3, D])];
  const apart = [first, second].map((part) =>
    run(theta, () => layer.fprop(part, { seen: { causal: true } })),
  );
  expectClose(packed, tf.concat(apart, 1).dataSync());
});

test.each([
  ['a prefix', { causal: true, prefix: ints([3, 0], [B]) }],
  [
    'a prefix, padding and segments',
    { causal: true, prefix: ints([3, 0], [B]), paddings: true, segments: true },
  ],
  [
    'a prefix within a window, of rows of different lengths',
    { causal: true, prefix: ints([3, 5], [B]), window: { before: 1, after: 2 }, visible: ints([5, 4], [B]) },
  ],
  ['padding of its own', { paddings: true }],
  ['a window and padding', { window: { before: 1, after: 2 }, paddings: true }],
])('visibility: %s', (_, { paddings, segments, ...given }: any) => {
  const layer = build(DotProductAttention.config(dims));
  const theta = randomTheta(layer);
  const x = tensor([B, T, D]);
  const padded = [0, 0, 0, 1, 0, 0, 1, 0, 0, 0];
  const ids = [0, 0, 0, 0, 1, 2, 2, 2, 2, 2];
  const ofBoth = { queries: ints(ids, [B, T]), keys: ints(ids, [B, T]) };
  const seen: Visibility = {
    ...given,
    ...(paddings && { paddings: tf.tensor2d(padded, [B, T]) }),
    ...(segments && { segments: ofBoth }),
  };
  const prefixes = given.prefix?.dataSync();
  const lengths = given.visible?.dataSync() ?? [T, T];
  const sees = (b: number) => (t: number, s: number) => {
    const place = t + lengths[b] - T;
    const isCausal = !given.causal || s <= place || (prefixes && s < prefixes[b]);
    const isNear = !given.window || (place - s <= 1 && s - place <= 2);
    const isOwn = !segments || ids[b * T + t] === ids[b * T + s];
    return Boolean(isCausal && isNear && isOwn && s < lengths[b] && !(paddings && padded[b * T + s]));
  };
  expectClose(
    run(theta, () => layer.fprop(x, { seen })),
    rowsOf(x).flatMap((row, b) => reference(theta, row, sees(b))),
  );
  checkGradients(layer, [x], (input) => layer.fprop(input!, { seen }), { probes: 2 });
});

test('vectors of another sequence: cross-attention', () => {
  const layer = build(DotProductAttention.config(dims));
  const theta = randomTheta(layer);
  const [x, source] = [tensor([B, T, D]), tensor([B, 3, D], 5)];
  expectClose(
    run(theta, () => layer.fprop(x, { keyVec: source })),
    rowsOf(x).flatMap((row, b) => reference(theta, row, () => true, rowsOf(source)[b])),
  );
  const combined = build(DotProductAttention.config({ ...dims, combineQkv: true }));
  expect(() => run(randomTheta(combined), () => combined.fprop(x, { keyVec: source }))).toThrow(
    'model (DotProductAttention): combineQkv is for self-attention: query, key and value vectors are one tensor.',
  );
  expect(() => build(GroupedQueryAttention.config({ ...dims, numKvHeads: 2, combineQkv: true }))).toThrow(
    'model (GroupedQueryAttention): combineQkv has one variable for 4 heads of queries and 2 of keys.',
  );
});

test('logits of its own, with dropout, masks and gradients', () => {
  const layer = build(BiasedAttention.config({ ...dims, attenDropoutProb: 0.4 }));
  const theta = { ...randomTheta(layer), key_bias: tf.zeros([N, T]) as Tensor };
  const x = tensor([B, T, D]);
  const whole = (values: Values) =>
    run(values, () => layer.fprop(x, { seen: { causal: true } }), { doEval: true });
  expectClose(
    whole(theta),
    rowsOf(x).flatMap((row) => reference(theta, row, causal)),
  );
  // A key that no head cares for is as good as hidden.
  const bias = Float32Array.from({ length: N * T }, (_, i) => (i % T === 1 ? -1e4 : 0));
  const without = { ...theta, key_bias: tf.tensor(bias, [N, T]) };
  expectClose(
    tf.slice(whole(without), [0, 2, 0], [B, T - 2, D]),
    rowsOf(x).flatMap((row) =>
      reference(without, row, (t, s) => s <= t && (s !== 1 || t === 1)).slice(2 * D),
    ),
  );
  expectDecodes(layer, without, x, whole(without), [T]);
  checkGradients(layer, [x], (input) => layer.fprop(input!, { seen: { causal: true } }), {
    prngKey: ints([1, 2], [2]),
    probes: 3,
  });
});
