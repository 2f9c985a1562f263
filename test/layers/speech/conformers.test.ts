/** @file Conformer blocks by the contract of layers, and against the paper's equations. */
import '@tensorflow/tfjs-backend-cpu';
import { describe, expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build, type ConfigValues } from '../../../src/hparams/index.js';
import {
  Conformer,
  ConvolutionalStem,
  DotProductAttentionWithContext,
  DotProductAttentionWithContextXL,
  listVariables,
  SelfAttentionWithNormAndResidual,
  selected,
} from '../../../src/layers/index.js';
import { checkLayers, expectNear, layerCase } from '../contract.js';
import { floats, given } from '../engineComparison.js';
import { randomTheta, run, tensor } from '../helpers.js';

const small = (values: Partial<ConfigValues<Conformer>> = {}) =>
  Conformer.config({
    ...{ modelDims: 4, attenNumHeads: 2, kernelSize: 3, ffnDimMultiplier: 2 },
    ...(values as object),
  });

/** Of two rows, the second ends in padding. */
const paddings = given('int32', [0, 0, 0, 0, 0, 0, 0, 0, 1, 1], [2, 5]);
const block = (title: string, config: ReturnType<typeof small>) =>
  layerCase({
    title,
    config,
    inputs: { x: floats([2, 5, 4]), paddings },
    call: (layer, { x, paddings }) => layer.fprop(x!, tf.cast(paddings!, 'float32') as Tensor),
    probes: 1,
  });

const xl = SelfAttentionWithNormAndResidual.config({
  selfAttenTpl: DotProductAttentionWithContextXL.config({
    ...{ relPosEmbDim: 4, leftContext: 2, rightContext: 1 },
  }),
});

checkLayers('Conformer', [
  block('as by default', small()),
  block(
    'convolution first, no feed-forward',
    small({ layerOrder: 'conv_before_mhsa', fflayerStartTpl: null, fflayerEndTpl: null }),
  ),
  block(
    'attention to a context, shared feed-forward, no norm at the end',
    small({ layerOrder: 'mhsa', transAttenTpl: xl, fflayerWeightSharing: true, finalLnTpl: null }),
  ),
  layerCase({
    title: 'SelfAttentionWithNormAndResidual, norm of the sum',
    config: SelfAttentionWithNormAndResidual.config({
      ...{ preLayerNorm: false, residualWeight: 0.5, inputWeight: 2 },
      selfAttenTpl: DotProductAttentionWithContext.config({ inputDim: 4, hiddenDim: 4, leftContext: 2 }),
    }),
    inputs: { x: floats([2, 5, 4]) },
    probes: 1,
    call: (layer, { x }) => layer.fprop(x!),
  }),
  layerCase({
    title: 'ConvolutionalStem',
    config: ConvolutionalStem.config({ inputDims: 4, outputDims: 3 }),
    inputs: { x: floats([2, 5, 4]), paddings },
    probes: 1,
    call: (layer, { x, paddings }) => layer.fprop(x!, tf.cast(paddings!, 'float32') as Tensor).features,
  }),
]);

describe('Conformer', () => {
  test('is its four halves and a norm', () => {
    const layer = build(small());
    const theta = randomTheta(layer);
    const x = tensor([2, 5, 4]);
    const of = (path: string): Tensor => {
      const value = theta[path];
      if (!value) throw new Error(`no ${path} among ${Object.keys(theta).join(', ')}`);
      return value;
    };
    const norm = (x: Tensor, path: string): Tensor => {
      const { mean, variance } = tf.moments(x, -1, true);
      const z = tf.mul(tf.sub(x, mean), tf.rsqrt(tf.add(variance, 1e-6)));
      return tf.add(tf.mul(z, tf.add(of(`${path}/scale`), 1)), of(`${path}/bias`));
    };
    const map = (x: Tensor, path: string): Tensor => {
      const rows = tf.reshape(x, [10, -1]) as tf.Tensor2D;
      const product = tf.matMul(rows, of(`${path}/linear/w`) as tf.Tensor2D);
      return tf.reshape(tf.add(product, of(`${path}/bias/b`)), [2, 5, -1]);
    };
    const swish = (x: Tensor): Tensor => tf.mul(x, tf.sigmoid(x));
    const half = (x: Tensor, path: string): Tensor => {
      const hidden = swish(map(norm(x, `${path}/layer_norm`), `${path}/ffn_layer1`));
      return tf.add(x, tf.mul(0.5, map(hidden, `${path}/ffn_layer2`)));
    };
    const attention = (x: Tensor): Tensor => {
      const path = 'trans_atten/self_atten';
      const normed = norm(x, 'trans_atten/norm');
      const heads = (name: string): Tensor => {
        const w = tf.reshape(of(`${path}/${name}/w`), [4, 4]) as tf.Tensor2D;
        const all = tf.matMul(tf.reshape(normed, [10, 4]) as tf.Tensor2D, w);
        const biased = tf.add(all, tf.reshape(of(`${path}/${name}/b`), [4]));
        return tf.transpose(tf.reshape(biased, [2, 5, 2, 2]), [0, 2, 1, 3]);
      };
      const scale = tf.div(tf.softplus(of(`${path}/per_dim_scale/per_dim_scale`)), Math.SQRT2 * Math.LN2);
      const logits = tf.matMul(tf.mul(heads('query'), scale), heads('key'), false, true);
      const context = tf.transpose(tf.matMul(tf.softmax(logits), heads('value')), [0, 2, 1, 3]);
      // The map from heads has its outputs first.
      const out = tf.reshape(of(`${path}/post/w`), [4, 4]) as tf.Tensor2D;
      const mapped = tf.matMul(tf.reshape(context, [10, 4]) as tf.Tensor2D, out, false, true);
      return tf.add(x, tf.reshape(tf.add(mapped, of(`${path}/post/b`)), [2, 5, 4]));
    };
    const state = { 'lconv/conv_norm/moving_variance': tf.fill([4], 0.7) };
    const values = { ...theta, ...state };
    const convolution = (x: Tensor): Tensor => {
      const normed = norm(x, 'lconv/ln');
      const gated = tf.mul(
        map(normed, 'lconv/linear_start_act'),
        tf.sigmoid(map(normed, 'lconv/linear_start_gated')),
      );
      const padded = tf.pad(gated, [
        [0, 0],
        [1, 1],
        [0, 0],
      ]);
      const taps = tf.unstack(of('lconv/depthwise_conv1d/w'), 0);
      const terms = taps.map((w, k) => tf.mul(tf.slice(padded, [0, k, 0], [2, 5, 4]), w));
      const convolved = terms.reduce((a, b) => tf.add(a, b));
      const centred = tf.sub(convolved, of('lconv/conv_norm/moving_mean'));
      const scaled = tf.mul(
        tf.mul(centred, 1 / Math.sqrt(0.7 + 1e-3)),
        tf.add(of('lconv/conv_norm/gamma'), 1),
      );
      const z = tf.add(scaled, of('lconv/conv_norm/beta'));
      return tf.add(x, map(swish(z), 'lconv/linear_end'));
    };
    const expected = norm(half(convolution(attention(half(x, 'fflayer_start'))), 'fflayer_end'), 'final_ln');
    const outputs = run(values, () => layer.fprop(x), { doEval: true });
    expectNear(outputs, expected, 1e-5, 'the block and its equations');
  });

  test('does not see padding, whatever it holds', () => {
    const layer = build(small());
    const theta = { ...randomTheta(layer), 'lconv/conv_norm/moving_variance': tf.ones([4]) };
    const x = tensor([2, 5, 4]);
    const isFrame = tf.tensor3d([1, 1, 1, 0, 0], [1, 5, 1]);
    const junk = tf.where(tf.greater(isFrame, 0), x, tf.scalar(Number.NaN)) as Tensor;
    const marks = tf.sub(1, tf.squeeze(isFrame, [2])) as Tensor;
    for (const doEval of [true, false]) {
      const outputs = run(theta, () => layer.fprop(junk, marks), { doEval });
      const short = run(theta, () => layer.fprop(tf.slice(x, [0, 0, 0], [2, 3, 4])), { doEval });
      expectNear(tf.slice(outputs, [0, 0, 0], [2, 3, 4]), short, 1e-5, `doEval ${doEval}`);
    }
    const sum = (x: Tensor): Tensor =>
      run(theta, () => tf.sum(selected(layer.fprop(x, marks), tf.greater(isFrame, 0))), { doEval: true });
    expect([...tf.grad(sum)(junk).dataSync()].every(Number.isFinite)).toBe(true);
  });

  test('shares the feed-forward layer where told', () => {
    const paths = listVariables(build(small({ fflayerWeightSharing: true }))).map(({ path }) => path);
    expect(paths.filter((path) => path.startsWith('fflayer_end'))).toEqual([]);
    expect(() => build(small({ fflayerWeightSharing: true, fflayerStartTpl: null }))).toThrow(
      /^Building Conformer failed: model \(Conformer\): fflayerWeightSharing: expected a fflayerStartTpl to share, got null\.\n/,
    );
  });

  test('has one probability of dropout, or one for each part', () => {
    expect(() => build(small({ dropoutProb: 0.1, attenDropout: 0.2 }))).toThrow(
      /^Building Conformer failed: model \(Conformer\): attenDropout: expected dropoutProb 0\.1, or null for it, got 0\.2\.\n/,
    );
    const layer = build(small({ dropoutProb: 0.1, attenDropout: 0.1 }));
    expect(() => run(randomTheta(layer), () => layer.fprop(tensor([2, 5, 4])))).toThrow(/no prngKey/);
  });

  test('refuses a visibility without attention', () => {
    const layer = build(small({ layerOrder: 'conv' }));
    expect(() =>
      run(randomTheta(layer), () => layer.fprop(tensor([2, 5, 4]), undefined, { causal: true })),
    ).toThrow(/^model \(Conformer\): layerOrder is 'conv': there is no attention for a visibility\.$/);
  });
});
