/** @file The contract of layers, held to layers that keep it, and to a mixer that breaks it. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import {
  BaseMixer,
  DotProductAttention,
  Embedding,
  FeedForward,
  FullSoftmax,
  GELU,
  type MixerArgs,
} from '../../src/layers/index.js';
import {
  checkDecoding,
  checkFiniteDifferences,
  checkLayers,
  checkMixers,
  checkPacking,
  checkPadding,
  checkRows,
  expectNear,
  layerCase,
  mixerCase,
} from './contract.js';
import { floats, given, ids } from './engineComparison.js';
import { run } from './helpers.js';
import { gradientNorm, parameterCount, sineInput, sineTheta, sums } from './sineFill.js';

checkLayers('maps', [
  layerCase({
    title: 'FeedForward',
    config: FeedForward.config({ inputDims: 3, outputDims: 2, activationTpl: GELU.config() }),
    inputs: { x: floats([2, 4, 3]) },
    call: (layer, { x }) => layer.fprop(x!),
    variables: { 'linear/w': [3, 2], 'bias/b': [2] },
  }),
  layerCase({
    title: 'Embedding',
    config: Embedding.config({ numClasses: 5, inputDims: 2 }),
    inputs: { ids: ids([2, 3], 5) },
    call: (layer, t) => layer.embLookup(t.ids!),
  }),
  layerCase({
    title: 'FullSoftmax of given labels',
    config: FullSoftmax.config({ inputDims: 3, numClasses: 2 }),
    inputs: { x: floats([2, 3]), labels: given('int32', [1, 0], [2]) },
    call: (layer, { x, labels }) =>
      layer.fprop(x!, tf.onesLike(tf.cast(labels!, 'float32')), labels!).perExampleXent,
  }),
]);

checkMixers('attention', [
  mixerCase({
    title: 'plain',
    config: DotProductAttention.config({ inputDim: 4, hiddenDim: 4, numHeads: 2 }),
  }),
]);

test('the published sum of attention under the sine fill', () => {
  const layer = build(DotProductAttention.config({ inputDim: 16, hiddenDim: 16, numHeads: 2 }));
  expect(parameterCount(layer)).toBe(1096);
  const theta = sineTheta(layer);
  const outputs = (theta: Record<string, Tensor>) =>
    run(theta, () => layer.fprop(sineInput([2, 8, 16]), { seen: { causal: true } }), { doEval: true });
  expect(sums(outputs(theta)).q).toBeCloseTo(2.156556, 5);
  expect(gradientNorm(theta, (values) => tf.sum(outputs(values)))).toBeGreaterThan(0);
});

/** Sees the next position, other rows and other segments. */
class Leaking extends BaseMixer {
  fprop(x: Tensor, _args?: MixerArgs): Tensor {
    return tf.add(tf.mean(x, [0, 1], true), tf.zerosLike(tf.floor(x)));
  }
  extendStep(x: Tensor): Tensor {
    return this.fprop(x);
  }
}

test('tensors are near by their largest magnitude', () => {
  const [a, b] = [tf.tensor1d([1000, 0.001]), tf.tensor1d([1000, 0])];
  expectNear(a, b, 1e-5);
  expect(() => expectNear(a, b, 1e-7, 'these')).toThrow(
    /^these: element 1 is 0.001\d+, expected 0 \(largest 1000\)$/,
  );
});

test('a mixer that leaks fails each check', () => {
  const each = { title: 'leaking', config: Leaking.config({ inputDim: 2 }) };
  expect(() => checkDecoding(each)).toThrow('decoding and training: element 0');
  expect(() => checkPacking(each)).toThrow('a packed row and its sequences alone: element 0');
  expect(() => checkPadding(each)).toThrow('padding that holds 0: element 0');
});

test('a layer whose rows or gradients are wrong fails', () => {
  const config = Leaking.config({ inputDim: 2 });
  const inputs = { x: floats([2, 3, 2]) };
  const leaking = layerCase({ title: '', config, inputs, call: (layer, { x }) => layer.fprop(x!) });
  expect(() => checkRows(leaking)).toThrow('a batch and its examples alone: element 0');
  // tfjs has no gradient through floor, and none is what this function has.
  const stepped = layerCase({ title: '', config, inputs, call: (_, { x }) => tf.floor(tf.mul(x!, 1e3)) });
  expect(() => checkFiniteDifferences(stepped)).toThrow(/^input 0\[0\]: gradient 0, finite differences/);
});
