/** @file LoRA: formulas, models that get it by one change of their config, and weights merged with it. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build, deepCopy } from '../../../src/hparams/index.js';
import {
  addLora,
  DotProductAttention,
  Linear,
  LORA_VARIABLES,
  LoraAttentionProjection,
  LoraCombinedQKVProjectionLayer,
  LoraLinear,
  listVariables,
  mergeLora,
  StackedTransformer,
  StackedTransformerRepeated,
  TransformerFeedForward,
} from '../../../src/layers/index.js';
import { gpt2Lm, LanguageModel, llamaLm } from '../../../src/models/index.js';
import { checkLayers, expectNear, layerCase } from '../contract.js';
import { floats } from '../engineComparison.js';
import { expectClose, randomTheta, run, tensor } from '../helpers.js';

const heads = { inputDim: 6, numHeads: 2, dimPerHead: 3, rank: 2 };

checkLayers('LoRA', [
  layerCase({
    title: 'LoraLinear',
    config: LoraLinear.config({ inputDims: 4, outputDims: 3, rank: 2, alpha: 3 }),
    inputs: { x: floats([2, 5, 4]) },
    call: (layer, { x }) => layer.fprop(x!),
    variables: { w: [4, 3], lora_a: [4, 2], lora_b: [2, 3] },
  }),
  layerCase({
    title: 'LoraAttentionProjection',
    config: LoraAttentionProjection.config(heads),
    inputs: { x: floats([2, 5, 6]) },
    call: (layer, { x }) => layer.fprop(x!),
    variables: { w: [6, 2, 3], b: [2, 3], lora_a: [6, 2], lora_b: [2, 2, 3] },
  }),
  layerCase({
    title: 'LoraAttentionProjection back',
    config: LoraAttentionProjection.config({ ...heads, isOutputProjection: true, useBias: false }),
    inputs: { x: floats([2, 5, 2, 3]) },
    call: (layer, { x }) => layer.fprop(x!),
    variables: { w: [6, 2, 3], lora_a: [2, 3, 2], lora_b: [2, 6] },
  }),
  layerCase({
    title: 'LoraCombinedQKVProjectionLayer',
    config: LoraCombinedQKVProjectionLayer.config(heads),
    inputs: { x: floats([2, 5, 6]) },
    call: (layer, { x }) => tf.concat(layer.fprop(x!), -1),
    variables: { w: [3, 6, 2, 3], b: [3, 2, 3], lora_a: [3, 6, 2], lora_b: [3, 2, 2, 3] },
  }),
]);

test('the change is α / r times the product of its factors, and begins at 0', () => {
  const layer = build(LoraLinear.config({ inputDims: 4, outputDims: 3, rank: 2, alpha: 6 }));
  const theta = randomTheta(layer);
  const x = tensor([5, 4]);
  const plain = tf.matMul(x, theta.w!);
  const moved = tf.mul(tf.matMul(tf.matMul(x, theta.lora_a!), theta.lora_b!), 3);
  const outputs = (values: Record<string, Tensor>) => run(values, () => layer.fprop(x));
  expectNear(outputs(theta), tf.add(plain, moved), 1e-6);
  expectNear(outputs({ ...theta, lora_b: tf.zeros([2, 3]) }), plain, 1e-6);
  expectClose(
    run(theta, () => layer.fprop(tensor([4]))),
    run(theta, () => layer.fprop(tensor([1, 4]))).dataSync(),
  );
});

const stack = { numLayers: 1, modelDims: 6, hiddenDims: 8, numHeads: 2 };
const models = {
  plain: () => StackedTransformer.config({ ...stack, numLayers: 2 }),
  repeated: () => StackedTransformerRepeated.config({ ...stack, xTimes: 3 }),
  combined: () => {
    const config = StackedTransformer.config(stack);
    config.transformerLayerParamsTpl.trAttenTpl.combineQkv = true;
    config.transformerLayerParamsTpl.trFflayerTpl.useGatedActivation = true;
    return config;
  },
};

test.each(Object.entries(models))('merged weights compute the same without LoRA: %s', (_, make) => {
  const before = make();
  const after = deepCopy(before);
  expect(addLora(after, { rank: 2, alpha: 4 })).toBeGreaterThan(0);
  const [plain, adapted] = [build(before), build(after)];
  const paths = (layer: typeof plain) => listVariables(layer).map(({ path }) => path);
  const pattern = new RegExp(`^${LORA_VARIABLES}$`);
  expect(
    paths(adapted)
      .filter((path) => !pattern.test(path))
      .sort(),
  ).toEqual(paths(plain).sort());
  const theta = randomTheta(adapted);
  const merged = mergeLora(adapted, theta);
  expect(Object.keys(merged).sort()).toEqual(paths(plain).sort());
  const x = tensor([2, 4, 6]);
  const outputs = (layer: typeof plain, values: Record<string, Tensor>) =>
    run(values, () => layer.fprop(x, { seen: { causal: true } }));
  expectNear(outputs(plain, merged), outputs(adapted, theta), 1e-5);
});

test('targets: attention, feed-forward layers, or both; embeddings and softmax stay as they are', () => {
  const variables = (targets: 'all' | 'attention' | 'mlp') => {
    const lmTpl = gpt2Lm({ vocabSize: 7, modelDims: 4, numLayers: 1, numHeads: 2, maxSeqLength: 3 });
    const config = LanguageModel.config({ lmTpl });
    addLora(config, { targets });
    return listVariables(build(config))
      .map(({ path }) => path)
      .filter((path) => path.includes('lora'))
      .map((path) => path.replace('lm/transformer/x_layers_0/', ''));
  };
  const both = (paths: string[]) => paths.flatMap((path) => [`${path}/lora_a`, `${path}/lora_b`]);
  const attention = both(['query', 'key', 'value', 'post'].map((name) => `self_attention/${name}`));
  const mlp = both(['ffn_layer1', 'ffn_layer2'].map((name) => `ff_layer/${name}/linear`));
  expect(variables('attention').sort()).toEqual([...attention].sort());
  expect(variables('mlp').sort()).toEqual([...mlp].sort());
  expect(variables('all').sort()).toEqual([...attention, ...mlp].sort());
});

test('the published counts of a Llama of 7 billion parameters with LoRA', () => {
  const lmTpl = llamaLm({
    vocabSize: 32_000,
    modelDims: 4096,
    numLayers: 32,
    numHeads: 32,
    numKvHeads: 32,
    hiddenDims: 11_008,
  });
  const config = LanguageModel.config({ lmTpl });
  addLora(config, { rank: 8 });
  const counts = { lora: 0, all: 0 };
  for (const { path, shape } of listVariables(build(config))) {
    const size = shape.reduce((a, b) => a * b, 1);
    counts.all += size;
    if (path.includes('lora')) counts.lora += size;
  }
  expect(counts).toEqual({ lora: 19_988_480, all: 6_758_404_096 });
});

test('factors are held in float32, as they are trained, beside weights in bfloat16', () => {
  const model = StackedTransformer.config({ ...stack, dtype: 'bfloat16' });
  addLora(model, { rank: 2 });
  for (const { path, storage } of listVariables(build(model)))
    expect(storage, path).toBe(/lora_[ab]$/.test(path) ? undefined : 'bfloat16');
});

test('layers of a class of their own stay, and a config without transformers is an error', () => {
  class Doubled extends Linear {}
  const config = TransformerFeedForward.config({ inputDims: 4, hiddenDims: 8 });
  config.fflayerTpl.linearTpl = Doubled.config() as never;
  expect(() => addLora(config)).toThrow(
    'addLora() found no projection of attention or feed-forward layers in this config.',
  );
  expect(() => addLora(DotProductAttention.config(), { targets: 'mlp' })).toThrow(
    'addLora() found no projection of mlp in this config.',
  );
});
