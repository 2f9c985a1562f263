/** @file Prefix tuning: its formula, what sees it, and models that get it by one change of their config. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build, deepCopy } from '../../../src/hparams/index.js';
import {
  addPrefix,
  DotProductAttention,
  GroupedQueryAttention,
  KeyValuePrefix,
  Linear,
  listVariables,
  PREFIX_VARIABLES,
  StackedTransformer,
  type Visibility,
} from '../../../src/layers/index.js';
import { expectNear } from '../contract.js';
import { ints, randomTheta, run, tensor } from '../helpers.js';

const [B, T, D, N, H, P] = [2, 5, 4, 2, 2, 3];
const dims = { inputDim: D, hiddenDim: N * H, numHeads: N, useBias: false, internalEnablePerDimScale: false };

/** The same by one product with all keys, where `sees` says what a query sees of the sequence. */
function reference(
  theta: Record<string, Tensor>,
  x: Tensor,
  sees: (b: number, t: number, s: number) => boolean,
): Tensor {
  const heads = (name: string): Tensor =>
    tf.transpose(
      tf.reshape(tf.matMul(tf.reshape(x, [B * T, D]), tf.reshape(theta[`${name}/w`]!, [D, N * H])), [
        ...[B, T, N, H],
      ]),
      [0, 2, 1, 3],
    );
  const leading = (name: string): Tensor =>
    tf.tile(tf.expandDims(tf.transpose(theta[`prefix/${name}`]!, [1, 0, 2]), 0), [B, 1, 1, 1]);
  const [key, value] = ['key', 'value'].map((name) => tf.concat([leading(name), heads(name)], 2));
  const mask = Array.from({ length: B * T * (P + T) }, (_, i) => {
    const [b, t, s] = [Math.floor(i / (T * (P + T))), Math.floor(i / (P + T)) % T, (i % (P + T)) - P];
    return s < 0 || sees(b, t, s) ? 0 : -1e9;
  });
  const products = tf.mul(tf.matMul(heads('query'), key!, false, true), H ** -0.5);
  const weights = tf.softmax(tf.add(products, tf.tensor4d(mask, [B, 1, T, P + T])));
  const sums = tf.reshape(tf.transpose(tf.matMul(weights, value!), [0, 2, 1, 3]), [B * T, N * H]);
  return tf.reshape(tf.matMul(sums, tf.reshape(theta['post/w']!, [D, N * H]), false, true), [B, T, D]);
}

const segments = [0, 0, 1, 1, 1, 0, 1, 1, 2, 2];
const padded = [0, 1, 0, 0, 0, 0, 0, 0, 0, 1];
const ofBoth = { queries: ints(segments, [B, T]), keys: ints(segments, [B, T]) };
test.each<[string, Visibility, (b: number, t: number, s: number) => boolean]>([
  ['all keys', {}, () => true],
  ['causal', { causal: true }, (_, t, s) => s <= t],
  ['padding', { paddings: tf.tensor2d(padded, [B, T]) }, (b, _, s) => !padded[b * T + s]],
  [
    'packed rows',
    { causal: true, segments: ofBoth },
    (b, t, s) => s <= t && segments[b * T + t] === segments[b * T + s],
  ],
  [
    'packed rows with padding in a window',
    { segments: ofBoth, paddings: tf.tensor2d(padded, [B, T]), window: { before: 1, after: 2 } },
    (b, t, s) =>
      t - s <= 1 && s - t <= 2 && segments[b * T + t] === segments[b * T + s] && !padded[b * T + s],
  ],
  [
    'a prefix of the sequence, valid keys, a bias',
    {
      ...{ causal: true, prefix: ints([3, 0], [B]), visible: tf.scalar(T, 'int32') },
      bias: tf.tensor4d([0, 0, 0, 0, Number.NEGATIVE_INFINITY], [1, 1, 1, T]),
    },
    (b, t, s) => (s <= t || s < [3, 0][b]!) && s < 4,
  ],
])('all queries see the prefix beside %s', (_, seen, sees) => {
  const prefixTpl = KeyValuePrefix.config({ prefixLength: P });
  const layer = build(DotProductAttention.config({ ...dims, prefixTpl }));
  const theta = randomTheta(layer);
  const x = tensor([B, T, D]);
  expectNear(
    run(theta, () => layer.fprop(x, { seen })),
    reference(theta, x, sees),
    1e-5,
  );
});

test('attentions of a model get it, and its variables alone are added', () => {
  const before = StackedTransformer.config({ numLayers: 2, modelDims: 8, hiddenDims: 8, numHeads: 4 });
  before.transformerLayerParamsTpl.trAttenTpl = GroupedQueryAttention.config({ numKvHeads: 2 });
  const after = deepCopy(before);
  expect(addPrefix(after, { prefixLength: P })).toBe(1);
  const shapes = (config: typeof before) =>
    listVariables(build(config)).map(({ path, shape }) => `/${path} ${shape}`);
  const [plain, adapted] = [shapes(before), shapes(after)];
  const added = adapted.filter((each) => !plain.includes(each));
  expect(added).toEqual(
    [0, 1].flatMap((i) =>
      ['key', 'value'].map((name) => `/x_layers_${i}/self_attention/prefix/${name} ${[P, 2, 2]}`),
    ),
  );
  const pattern = new RegExp(`^${PREFIX_VARIABLES} `);
  expect(adapted.filter((each) => pattern.test(each))).toEqual(added);
  expect(adapted.filter((each) => !pattern.test(each))).toEqual(plain);
});

test('a config without attention is an error', () => {
  expect(() => addPrefix(Linear.config({ inputDims: 2, outputDims: 2 }))).toThrow(
    'addPrefix() found no dot-product attention in this config.',
  );
});
