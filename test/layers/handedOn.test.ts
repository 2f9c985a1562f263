/** @file Fields that a stack of transformer layers hands to inner layers: which of their fields follow each. */
import { expect, test } from 'vitest';
import { build } from '../../src/hparams/index.js';
import { type BaseLayer, StackedTransformer } from '../../src/layers/index.js';

/** The plain fields of all layers, by path and name. */
function fieldsOf(layer: BaseLayer, path = ''): Map<string, unknown> {
  const own = Object.entries(layer.hp).filter(([, value]) => typeof value !== 'object');
  const inner = [...layer.children].flatMap(([name, child]) => [...fieldsOf(child, `${path}${name}/`)]);
  return new Map([...own.map(([name, value]) => [`${path}${name}`, value] as const), ...inner]);
}

const values = { numLayers: 1, modelDims: 4, hiddenDims: 6, numHeads: 2 };
const fieldsWith = (changed: object) => fieldsOf(build(StackedTransformer.config({ ...values, ...changed })));
const before = fieldsWith({});

/** The fields of inner layers that differ, by the layer and in the order of the layers. */
function followers(changed: object): Record<string, unknown> {
  const differing = [...fieldsWith(changed)].filter(
    ([name, value]) => name.includes('/') && before.get(name) !== value,
  );
  return Object.fromEntries(differing.map(([name, value]) => [name.replace('x_layers_0/', ''), value]));
}

/** One value for several fields of one layer. */
const all = (value: unknown, names: string): Record<string, unknown> =>
  Object.fromEntries(names.split(' ').map((name) => [name, value]));

const projections = (field: string) =>
  ['key', 'query', 'value', 'post'].map((name) => `self_attention/${name}/${field}`);
const residual = (probability: number) => ({
  ...all(probability, 'residualDropoutProb ff_layer/residualDropoutProb'),
  ...all(1 - probability, 'residual_dropout/keepProb ff_layer/residual_dropout/keepProb'),
});
const relu = (probability: number) => ({
  ...all(probability, 'reluDropoutProb ff_layer/reluDropoutProb'),
  'ff_layer/relu_dropout/keepProb': 1 - probability,
});
const attention = (probability: number) => ({
  ...all(probability, 'attenDropoutProb self_attention/attenDropoutProb'),
  'self_attention/atten_dropout/keepProb': 1 - probability,
});
const dimPerHead = (size: number) =>
  all(
    size,
    [
      'self_attention/per_dim_scale/dim',
      'self_attention/kv_cache/dimPerHead',
      ...projections('dimPerHead'),
    ].join(' '),
  );

test.each<[object, Record<string, unknown>]>([
  [
    { modelDims: 8 },
    {
      ...all(
        8,
        'inputDims layer_norm/dim self_attention/inputDim self_attention/hiddenDim ff_layer/inputDims',
      ),
      ...all(8, projections('inputDim').join(' ')),
      ...dimPerHead(4),
      ...all(8, 'ff_layer/layer_norm/dim ff_layer/ffn_layer1/inputDims ff_layer/ffn_layer1/linear/inputDims'),
      ...all(
        8,
        'ff_layer/ffn_layer2/outputDims ff_layer/ffn_layer2/linear/outputDims ff_layer/ffn_layer2/bias/dims',
      ),
    },
  ],
  [
    { hiddenDims: 10 },
    {
      ...all(
        10,
        'hiddenDims ff_layer/hiddenDims ff_layer/ffn_layer1/outputDims ff_layer/ffn_layer1/bias/dims',
      ),
      ...all(
        10,
        'ff_layer/ffn_layer1/linear/outputDims ff_layer/ffn_layer2/inputDims ff_layer/ffn_layer2/linear/inputDims',
      ),
    },
  ],
  [
    { numHeads: 1 },
    {
      ...all(
        1,
        [
          'numHeads',
          'self_attention/numHeads',
          'self_attention/kv_cache/numHeads',
          ...projections('numHeads'),
        ].join(' '),
      ),
      ...dimPerHead(4),
    },
  ],
  [{ dimPerHead: 5 }, { ...all(5, 'dimPerHead self_attention/dimPerHead'), ...dimPerHead(5) }],
  [{ dropoutProb: 0.125 }, { ...residual(0.125), ...relu(0.125), ...attention(0.125) }],
  [{ attenDropoutProb: 0.25 }, attention(0.25)],
  [{ residualDropoutProb: 0.25 }, residual(0.25)],
  [{ reluDropoutProb: 0.25 }, relu(0.25)],
  [
    { dropoutProb: 0.125, attenDropoutProb: 0, reluDropoutProb: 0.5 },
    { ...residual(0.125), ...relu(0.5) },
  ],
  [{ inputDropoutProb: 0.25 }, { 'input_dropout/keepProb': 0.75 }],
])('%j', (changed, expected) => {
  expect(followers(changed)).toEqual(expected);
});

test('each further layer is as the first', () => {
  const more = fieldsWith({ numLayers: 3 });
  for (const [name, value] of before)
    for (const i of [0, 1, 2])
      if (name.startsWith('x_layers_0/'))
        expect([name, more.get(name.replace('_0', `_${i}`))]).toEqual([name, value]);
});
