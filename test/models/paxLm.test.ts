/** @file Pax's language models: values against plain loops, and what each option makes of the variables. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import { listVariables } from '../../src/layers/index.js';
import { LanguageModel, type PaxLmOptions, paxLm } from '../../src/models/index.js';
import { expectClose, initialTheta, ints, randomTheta, run } from '../layers/helpers.js';
import { attention, layerNorm, type Matrix, matrix, multiply, plus, transposed } from '../layers/plain.js';

const [B, T, V, D, HEADS] = [1, 5, 7, 8, 2];
const IDS = [3, 1, 4, 1, 5];
const options = { vocabSize: V, modelDims: D, numLayers: 2, numHeads: HEADS, packedInput: false };

const model = (values: Partial<PaxLmOptions> = {}) =>
  build(LanguageModel.config({ lmTpl: paxLm({ ...options, ...values }) }));

const variables = (values: Partial<PaxLmOptions> = {}): string[] =>
  listVariables(model({ numLayers: 1, ...values })).map(({ path, shape }) => `${path.slice(3)} ${shape}`);

/** Sines, then cosines, of position over timescales from 1 to 10000. */
function sinusoids(t: number): number[] {
  const angles = Array.from({ length: D / 2 }, (_, i) => t * 10_000 ** (-i / (D / 2 - 1)));
  return [...angles.map(Math.sin), ...angles.map(Math.cos)];
}

/** The forward pass of Pax's default network by plain loops: logits of one sequence. */
function paxForward(theta: Record<string, Tensor>, ids: number[]): Matrix {
  const data = (path: string): number[] => Array.from(theta[`lm/${path}`]!.dataSync());
  const addTo = (x: Matrix, bias: number[]): Matrix => x.map((row) => row.map((v, i) => v + bias[i]!));
  const norm = (x: Matrix, path: string): Matrix =>
    layerNorm(
      x,
      data(`${path}/scale`).map((s) => 1 + s),
      data(`${path}/bias`),
      1e-6,
    );
  const table = transposed(matrix(data('softmax/logits_ffn/linear/w'), V));
  let x = ids.map((id, t) => {
    const positions = sinusoids(t);
    return table[id]!.map((value, i) => value * Math.sqrt(D) + positions[i]!);
  });
  for (let l = 0; l < options.numLayers; l++) {
    const at = (name: string): string => `transformer/x_layers_${l}/${name}`;
    const a = norm(x, at('layer_norm'));
    const qkv = matrix(data(at('self_attention/combined_qkv/w')), D);
    const [q, k, v] = [0, 1, 2].map((i) => multiply(a, qkv.slice(i * D, (i + 1) * D)));
    const depth = D / HEADS;
    const scales = data(at('self_attention/per_dim_scale/per_dim_scale')).map(
      (s) => Math.log(1 + Math.exp(s)) / (Math.LN2 * Math.sqrt(depth)),
    );
    const scaled = q!.map((row) => row.map((value, i) => value * scales[i % depth]!));
    const seen = { heads: HEADS, scale: 1, visible: (t: number, s: number) => s <= t, logitCap: 50 };
    const post = transposed(matrix(data(at('self_attention/post/w')), D));
    x = plus(x, multiply(attention(scaled, k!, v!, seen), post));
    const layer = (inputs: Matrix, name: string, columns: number): Matrix =>
      addTo(
        multiply(inputs, matrix(data(at(`ff_layer/${name}/linear/w`)), columns)),
        data(at(`ff_layer/${name}/bias/b`)),
      );
    const hidden = layer(norm(x, at('ff_layer/layer_norm')), 'ffn_layer1', 4 * D);
    const relu = hidden.map((row) => row.map((value) => Math.max(value, 0)));
    x = plus(x, layer(relu, 'ffn_layer2', D));
  }
  const logits = addTo(multiply(norm(x, 'final_ln'), transposed(table)), data('softmax/logits_ffn/bias/b'));
  return logits.map((row) => row.map((logit) => 30 * Math.tanh(logit / 30)));
}

test('logits are those of plain loops: scaled embeddings, sinusoids, capped logits, ReLU', () => {
  const lm = model();
  // Large enough that both caps matter.
  const theta = randomTheta(lm, 11, 4);
  const batch = {
    ids: ints(IDS, [B, T]),
    labels: ints(IDS, [B, T]),
    weights: tf.ones([B, T]) as Tensor,
  };
  const logits = run(theta, () => lm.computePredictions(batch).logits);
  const expected = paxForward(theta, IDS).flat();
  expect(Math.max(...expected.map(Math.abs))).toBeGreaterThan(15);
  expectClose(logits, expected, 2e-4);
});

const feedForward = [
  'ff_layer/layer_norm/scale 8',
  'ff_layer/layer_norm/bias 8',
  'ff_layer/ffn_layer1/linear/w 8,32',
  'ff_layer/ffn_layer1/bias/b 32',
  'ff_layer/ffn_layer2/linear/w 32,8',
  'ff_layer/ffn_layer2/bias/b 8',
];

test('variables by default: one for query, key and value, no biases but in feed-forward layers and softmax', () => {
  const layer = [
    'layer_norm/scale 8',
    'layer_norm/bias 8',
    'self_attention/combined_qkv/w 3,8,2,4',
    'self_attention/post/w 8,2,4',
    'self_attention/per_dim_scale/per_dim_scale 4',
    ...feedForward,
  ];
  expect(variables()).toEqual([
    ...layer.map((variable) => `transformer/x_layers_0/${variable}`),
    'final_ln/scale 8',
    'final_ln/bias 8',
    'softmax/logits_ffn/linear/w 8,7',
    'softmax/logits_ffn/bias/b 7',
  ]);
});

test.each<[string, Partial<PaxLmOptions>, string[], string[]]>([
  [
    'separate projections with biases',
    { combineQkv: false, useBias: true },
    [
      ...['key', 'query', 'value'].flatMap((name) => [
        `transformer/x_layers_0/self_attention/${name}/w 8,2,4`,
        `transformer/x_layers_0/self_attention/${name}/b 2,4`,
      ]),
      'transformer/x_layers_0/self_attention/post/b 8',
    ],
    ['transformer/x_layers_0/self_attention/combined_qkv/w 3,8,2,4'],
  ],
  [
    'trained positions, no trained scale of queries, no bias of the softmax',
    { trainablePositions: 9, perDimScale: false, softmaxBias: false },
    ['position_emb/emb_var 9,8'],
    ['transformer/x_layers_0/self_attention/per_dim_scale/per_dim_scale 4', 'softmax/logits_ffn/bias/b 7'],
  ],
  ['an embedding of its own', { separateEmbedding: true }, ['embedding_lookup/emb_var 7,8'], []],
  [
    'a gate',
    { useGatedActivation: true, activation: 'SiLU' },
    [
      'transformer/x_layers_0/ff_layer/ffn_layer1_gate/linear/w 8,32',
      'transformer/x_layers_0/ff_layer/ffn_layer1_gate/bias/b 32',
    ],
    [],
  ],
  [
    'RMS norms',
    { normalization: 'RmsNorm' },
    [],
    [
      'transformer/x_layers_0/layer_norm/bias 8',
      'transformer/x_layers_0/ff_layer/layer_norm/bias 8',
      'final_ln/bias 8',
    ],
  ],
  ['rotary positions, which train nothing', { useRotaryPositionEmb: true }, [], []],
])('%s', (_, values, added, gone) => {
  const [before, after] = [variables(), variables(values)];
  expect(after.filter((variable) => !before.includes(variable)).sort()).toEqual([...added].sort());
  expect(before.filter((variable) => !after.includes(variable)).sort()).toEqual([...gone].sort());
});

const deviation = (tensor: Tensor): number => {
  const data = [...tensor.dataSync()];
  return Math.sqrt(data.reduce((sum, x) => sum + x * x, 0) / data.length);
};

test('the softmax starts at 1 / sqrt(modelDims), the rest at Xavier’s limits; initStd is for all', () => {
  const sizes = { vocabSize: 300, modelDims: 64, numLayers: 1, numHeads: 4 };
  const post = 'lm/transformer/x_layers_0/self_attention/post/w';
  const [byDefault, gaussian] = [{}, { initStd: 0.006, trainablePositions: 100 }].map((values) =>
    initialTheta(build(LanguageModel.config({ lmTpl: paxLm({ ...sizes, ...values }) }))),
  );
  expect(deviation(byDefault!['lm/softmax/logits_ffn/linear/w']!)).toBeCloseTo(1 / 8, 2);
  // Xavier's limit is sqrt(6 / (fan in + fan out)), and a uniform deviation is the limit over sqrt(3).
  expect(deviation(byDefault![post]!)).toBeCloseTo(Math.sqrt(2 / (64 * 4 + 64 * 16)), 3);
  for (const path of [post, 'lm/softmax/logits_ffn/linear/w', 'lm/position_emb/emb_var']) {
    expect(Math.abs(deviation(gaussian![path]!) / 0.006 - 1), path).toBeLessThan(0.05);
  }
});
