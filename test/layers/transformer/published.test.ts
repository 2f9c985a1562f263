/** @file Sums and sizes of Pax's own models of experts, of encoder and decoder, and of repeated layers. */
import { describe, expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build, type Config, deepCopyWith } from '../../../src/hparams/index.js';
import {
  GELU,
  GroupedQueryAttention,
  GShardSharedEmbeddingSoftmax,
  NClassMajorSharedEmbeddingSoftmax,
  RelativeBias,
  RmsNorm,
  SharedEmbeddingSoftmax,
  type StackedTransformer,
  StackedTransformerRepeated,
  TransformerEncoderDecoder,
  TransformerFeedForwardMoe,
  TransformerLm,
} from '../../../src/layers/index.js';
import { paxLm } from '../../../src/models/index.js';
import { ints, run } from '../helpers.js';
import { gradientNorm, parameterCount, sineTheta } from '../sineFill.js';

/** Ids (7 i + 3) mod `classes` in rows of `columns`, and those of the next places. */
function tokens(columns: number, classes: number) {
  const ids = ints(
    Array.from({ length: 2 * (columns + 1) }, (_, i) => (7 * i + 3) % classes),
    [2, columns + 1],
  );
  const from = (begin: number): Tensor => tf.slice(ids, [0, begin], [2, columns]);
  return { ids: from(0), classIds: from(1) };
}

test('an encoder and a decoder in a sequence model', () => {
  const config = TransformerEncoderDecoder.config({ modelDims: 16 });
  config.softmaxTpl = SharedEmbeddingSoftmax.config({ numClasses: 12, scaleSqrtDepth: true });
  for (const stack of [config.encoderStackedTransformerTpl, config.decoderStackedTransformerTpl])
    Object.assign(stack, { numLayers: 2, hiddenDims: 64, numHeads: 2 });
  const model = build(config);
  expect(parameterCount(model)).toBe(15_676);
  const source = {
    ids: sourceIds(),
    paddings: tf.tensor2d([0, 0, 0, 0, 1, 0, 0, 0, 0, 0], [2, 5]) as Tensor,
  };
  const paddings = tf.tensor2d([0, 0, 0, 0, 0, 0, 0, 1], [2, 4]) as Tensor;
  const { ids, classIds } = tokens(4, 12);
  const classWeights = tf.sub(1, paddings) as Tensor;
  const loss = (theta: Record<string, Tensor>) =>
    run(theta, () => model.fprop(source, { ids, paddings }, { classIds, classWeights }), { doEval: true });
  const theta = sineTheta(model);
  const { totalLoss, totalWeight } = loss(theta);
  expect(totalWeight.dataSync()[0]).toBe(7);
  expect(totalLoss.dataSync()[0]).toBeCloseTo(2.481028, 5);
  expect(gradientNorm(theta, (values) => loss(values).totalLoss)).toBeCloseTo(1.347424, 4);
});

const sourceIds = () =>
  ints(
    Array.from({ length: 10 }, (_, i) => (7 * i + 3) % 12),
    [2, 5],
  );

/** lm_cloud's tiny model: 2 layers, depth 16, hidden 64, 2 heads, vocabulary 32. */
const tiny = () =>
  paxLm({ vocabSize: 32, modelDims: 16, numLayers: 2, numHeads: 2, activation: 'GELU', packedInput: false });

/** The loss of the tiny model's tokens, and the norm of its gradient. */
function lossOf(config: Config<TransformerLm>) {
  const model = build(config);
  const { ids, classIds } = tokens(8, 32);
  const labels = { classIds, classWeights: tf.ones([2, 8]) as Tensor };
  const output = (theta: Record<string, Tensor>) =>
    run(theta, () => model.fprop({ ids }, labels), { doEval: true });
  const theta = sineTheta(model);
  const { totalLoss, auxLoss } = output(theta);
  return {
    total: totalLoss.dataSync()[0],
    aux: auxLoss?.dataSync()[0],
    norm: gradientNorm(theta, (values) => output(values).totalLoss),
  };
}

describe('lm_cloud', () => {
  test('layers apart', () => {
    const { total, norm } = lossOf(tiny());
    expect(total).toBeCloseTo(3.139874, 5);
    expect(norm).toBeCloseTo(0.964885, 4);
  });

  test('repeated layers, whose variables are filled as one', () => {
    const config = tiny();
    const { numLayers, ...rest } = fieldsOf(config.stackedTransformerTpl);
    config.stackedTransformerTpl = StackedTransformerRepeated.config({ xTimes: numLayers, ...rest });
    const { total, norm } = lossOf(config);
    expect(total).toBeCloseTo(3.142024, 5);
    expect(norm).toBeCloseTo(0.979736, 4);
  });

  test('a z-loss of the softmax', () => {
    const config = tiny();
    config.softmaxTpl.zLossWeight = 0.01;
    const { total, aux, norm } = lossOf(config);
    expect(total).toBeCloseTo(3.270812, 5);
    expect(aux).toBeCloseTo(0.130938, 5);
    expect(norm).toBeCloseTo(0.966292, 4);
  });
});

const fieldsOf = ({
  numLayers,
  hiddenDims,
  numHeads,
  transformerLayerParamsTpl,
}: Config<StackedTransformer>) => ({
  ...{ numLayers, hiddenDims, numHeads, transformerLayerParamsTpl },
});

/** Blocks of two layers of GLaM and Grok: gated GELU without biases, root mean square norms, embeddings for logits. */
function gatedLm(dims: { vocabSize: number; modelDims: number; numHeads: number; xTimes: number }) {
  const { xTimes, numHeads, ...rest } = dims;
  const norm = () => RmsNorm.config();
  const config = TransformerLm.config({ ...rest, positionEmbTpl: null, finalLnTpl: norm() });
  config.softmaxTpl = NClassMajorSharedEmbeddingSoftmax.config({ hasBias: false });
  const stack = StackedTransformerRepeated.config({ xTimes, numLayers: 2, hiddenDims: 32_768, numHeads });
  const layer = stack.transformerLayerParamsTpl;
  layer.lnTpl = norm();
  Object.assign(layer.trAttenTpl, { useBias: false, internalEnablePerDimScale: false });
  const gated = { useGatedActivation: true, activationTpl: GELU.config() };
  Object.assign(layer.trFflayerTpl, { lnTpl: norm(), hasBias: false, ...gated });
  stack.moeLayerTpl = TransformerFeedForwardMoe.config({ lnTpl: norm(), activationTpl: GELU.config() });
  stack.numExperts = 8;
  config.stackedTransformerTpl = stack;
  return { config, stack, layer };
}

describe('sizes of published models of experts', () => {
  test('MoELarge', () => {
    const options = {
      vocabSize: 51_200,
      modelDims: 4096,
      numLayers: 12,
      numHeads: 32,
      trainablePositions: 2048,
    };
    const config = paxLm({ ...options, activation: 'GELU' });
    const experts = { moeLayers: Array.from({ length: 12 }, (_, i) => i), numExperts: 16, numGroups: 16 };
    config.stackedTransformerTpl = deepCopyWith(config.stackedTransformerTpl, experts);
    expect(parameterCount(build(config))).toBe(26_794_257_920);
  });

  test('GLaM64B64EProxy_EP, whose experts have no gate', () => {
    const { config, stack, layer } = gatedLm({
      ...{ vocabSize: 51_200, modelDims: 8192, numHeads: 64, xTimes: 4 },
    });
    config.softmaxTpl = GShardSharedEmbeddingSoftmax.config();
    Object.assign(layer.trAttenTpl, { relativeBiasTpl: RelativeBias.config(), attentionExtraLogit: 0 });
    stack.moeLayers = [0];
    expect(parameterCount(build(config))).toBe(22_968_426_496);
  });

  test.each([
    ['Grok', 32, 315_684_952_064],
    ['Grok_Proxy', 8, 79_525_222_400],
  ])('%s', (_, xTimes, size) => {
    const { config, stack, layer } = gatedLm({ vocabSize: 131_072, modelDims: 6144, numHeads: 48, xTimes });
    const attention = { numKvHeads: 8, internalEnablePerDimScale: false };
    layer.trAttenTpl = GroupedQueryAttention.config(attention);
    stack.moeLayerTpl.useGatedActivation = true;
    stack.moeLayers = [0, 1];
    expect(parameterCount(build(config))).toBe(size);
  });
});
