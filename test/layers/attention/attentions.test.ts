/** @file DotProductAttention against plain loops, its masks, and decoding step by step. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  AttentionProjection,
  CombinedQKVProjectionLayer,
  DotProductAttention,
  decodeStateSpecs,
  listVariables,
} from '../../../src/layers/index.js';
import { checkGradients, expectClose, ints, randomTheta, run, stateOf, tensor } from '../helpers.js';
import {
  type AttentionOptions,
  attention,
  type Matrix,
  matrix,
  multiply,
  plus,
  transposed,
} from '../plain.js';

const [B, T, D, N, H] = [2, 4, 6, 2, 3];

/** The layer without the trained scale, which Pax has by default. */
function plainConfig(values: Partial<Config<DotProductAttention>> = {}): Config<DotProductAttention> {
  return DotProductAttention.config({
    inputDim: D,
    hiddenDim: N * H,
    numHeads: N,
    internalEnablePerDimScale: false,
    ...values,
  });
}

type Values = Record<string, Tensor>;

/** The same by plain loops, for one batch row. */
function reference(theta: Values, x: Matrix, options: Omit<AttentionOptions, 'heads'>): Matrix {
  const project = (name: string): Matrix => {
    const w = matrix(theta[`${name}/w`]!.dataSync(), N * H);
    const out = multiply(x, w);
    const b = theta[`${name}/b`]?.dataSync();
    return b ? out.map((row) => row.map((value, i) => value + b[i]!)) : out;
  };
  const [q, k, v] = ['query', 'key', 'value'].map(project);
  const encoded = attention(q!, k!, v!, { heads: N, ...options });
  const out = multiply(encoded, transposed(matrix(theta['post/w']!.dataSync(), N * H)));
  const b = theta['post/b']?.dataSync();
  return b
    ? plus(
        out,
        out.map(() => [...b]),
      )
    : out;
}

const rowsOf = (x: Tensor): Matrix[] => {
  const all = matrix(x.dataSync(), D);
  return Array.from({ length: B }, (_, b) => all.slice(b * T, (b + 1) * T));
};

const causal = (t: number, s: number): boolean => s <= t;

test('variables have Pax’s names and shapes', () => {
  const separate = build(DotProductAttention.config({ inputDim: D, hiddenDim: N * H, numHeads: N }));
  expect(listVariables(separate).map(({ path, shape }) => `${path} ${shape}`)).toEqual([
    `key/w ${[D, N, H]}`,
    `key/b ${[N, H]}`,
    `query/w ${[D, N, H]}`,
    `query/b ${[N, H]}`,
    `value/w ${[D, N, H]}`,
    `value/b ${[N, H]}`,
    `post/w ${[D, N, H]}`,
    `post/b ${[D]}`,
    `per_dim_scale/per_dim_scale ${[H]}`,
  ]);
  const combined = build(plainConfig({ combineQkv: true, useBias: false }));
  expect(listVariables(combined).map(({ path, shape }) => `${path} ${shape}`)).toEqual([
    `combined_qkv/w ${[3, D, N, H]}`,
    `post/w ${[D, N, H]}`,
  ]);
});

test.each([true, false])('agrees with plain loops, causal and not, useBias %s', (useBias) => {
  const layer = build(plainConfig({ useBias }));
  const theta = randomTheta(layer);
  const x = tensor([B, T, D]);
  const scale = 1 / Math.sqrt(H);
  for (const visible of [causal, () => true]) {
    const outputs = run(theta, () => layer.fprop(x, { seen: { causal: visible === causal } }));
    expect(outputs.shape).toEqual([B, T, D]);
    expectClose(
      outputs,
      rowsOf(x)
        .flatMap((row) => reference(theta, row, { scale, visible }))
        .flat(),
    );
  }
  checkGradients(layer, [x], (input) => layer.fprop(input!, { seen: { causal: true } }), { probes: 4 });
});

test('vectors of another rank are an error', () => {
  const layer = build(plainConfig());
  const x = tensor([B * T, D]);
  expect(() => run(randomTheta(layer), () => layer.fprop(x))).toThrow(
    'model (DotProductAttention): expected vectors [B, T, 6], got [8, 6].',
  );
});

test('combined projections equal separate ones', () => {
  const separate = build(plainConfig());
  const combined = build(plainConfig({ combineQkv: true }));
  const theta = randomTheta(separate);
  const stacked = (name: string): Tensor =>
    tf.stack(['query', 'key', 'value'].map((part) => theta[`${part}/${name}`]!));
  const both = {
    'combined_qkv/w': stacked('w'),
    'combined_qkv/b': stacked('b'),
    'post/w': theta['post/w']!,
    'post/b': theta['post/b']!,
  };
  const x = tensor([B, T, D]);
  expectClose(
    run(both, () => combined.fprop(x, { seen: { causal: true } })),
    run(theta, () => separate.fprop(x, { seen: { causal: true } })).dataSync(),
  );
  checkGradients(combined, [x], (input) => combined.fprop(input!, { seen: { causal: true } }), {
    probes: 6,
  });
});

test('the trained scale of queries starts as 1 / sqrt(H) and is softplus of its variable', () => {
  const layer = build(plainConfig({ internalEnablePerDimScale: true, useBias: false }));
  const theta = randomTheta(layer);
  const x = tensor([B, T, D]);
  const p = theta['per_dim_scale/per_dim_scale']!.dataSync();
  // Folded into the query weights, the trained scale leaves the plain layer.
  const wq = theta['query/w']!.dataSync().map(
    (w, i) => (w * Math.log(1 + Math.exp(p[i % H]!))) / Math.log(2) / Math.sqrt(H),
  );
  const folded = { ...theta, 'query/w': tf.tensor(wq, [D, N, H]) };
  expectClose(
    run(theta, () => layer.fprop(x, { seen: { causal: true } })),
    rowsOf(x)
      .flatMap((row) => reference(folded, row, { scale: 1, visible: causal }))
      .flat(),
  );
  checkGradients(layer, [x], (input) => layer.fprop(input!, { seen: { causal: true } }), { probes: 3 });
  const start = { ...theta, 'per_dim_scale/per_dim_scale': tf.zeros([H]) };
  expectClose(
    run(start, () => layer.fprop(x, { seen: { causal: true } })),
    rowsOf(x)
      .flatMap((row) => reference(theta, row, { scale: H ** -0.5, visible: causal }))
      .flat(),
  );
});

test.each([
  ['no scale', { internalEnableQueryScale: false }, 1],
  ['logits by head dims', { internalEnableQueryScale: false, scaleLogitsByHeadDims: true }, 3 ** -0.5],
  ['query by hiddenDim / numHeads', { dimPerHead: 3, hiddenDim: 8 }, 4 ** -0.5],
  ['query by dimPerHead', { dimPerHead: 3, hiddenDim: 8, scaleQueryByDimPerHead: true }, 3 ** -0.5],
] as const)('scaling: %s', (_, values, scale) => {
  const layer = build(plainConfig(values));
  const theta = randomTheta(layer);
  const x = tensor([B, T, D]);
  expectClose(
    run(theta, () => layer.fprop(x)),
    rowsOf(x)
      .flatMap((row) => reference(theta, row, { scale, visible: () => true }))
      .flat(),
  );
});

test('attenLogitCap bounds the logits before masks are added', () => {
  const layer = build(plainConfig({ attenLogitCap: 0.2 }));
  const theta = randomTheta(layer, 7, 1);
  const x = tensor([B, T, D]);
  const options = { scale: H ** -0.5, visible: causal, logitCap: 0.2 };
  expectClose(
    run(theta, () => layer.fprop(x, { seen: { causal: true } })),
    rowsOf(x)
      .flatMap((row) => reference(theta, row, options))
      .flat(),
  );
  checkGradients(layer, [x], (input) => layer.fprop(input!, { seen: { causal: true } }), { probes: 3 });
});

test('padding and other segments are hidden', () => {
  const layer = build(plainConfig());
  const theta = randomTheta(layer);
  const x = tensor([B, T, D]);
  const scale = H ** -0.5;
  const padded = run(theta, () =>
    layer.fprop(x, { seen: { paddings: tf.tensor2d([0, 0, 1, 0, 0, 0, 0, 1], [B, T]) } }),
  );
  const paddedAt = [2, 3];
  expectClose(
    padded,
    rowsOf(x)
      .flatMap((row, b) => reference(theta, row, { scale, visible: (_, s) => s !== paddedAt[b] }))
      .flat(),
  );
  const segments = [
    [1, 1, 2, 2],
    [1, 2, 2, 2],
  ];
  const ids = ints(segments.flat(), [B, T]);
  const packed = run(theta, () =>
    layer.fprop(x, { seen: { causal: true, segments: { queries: ids, keys: ids } } }),
  );
  const sees = (b: number) => (t: number, s: number) => s <= t && segments[b]![t] === segments[b]![s];
  expectClose(
    packed,
    rowsOf(x)
      .flatMap((row, b) => reference(theta, row, { scale, visible: sees(b) }))
      .flat(),
  );
});

test('dropout of attention weights: none in evaluation, unbiased in training', () => {
  const layer = build(plainConfig({ attenDropoutProb: 0.5, attenLogitCap: 2 }));
  const plain = build(plainConfig({ attenLogitCap: 2 }));
  const theta = randomTheta(layer);
  const x = tensor([B, T, D]);
  const expected = run(theta, () => plain.fprop(x, { seen: { causal: true } })).dataSync();
  expectClose(
    run(theta, () => layer.fprop(x, { seen: { causal: true } }), { doEval: true }),
    expected,
  );
  const samples = 600;
  const mean = new Float64Array(expected.length);
  for (let i = 0; i < samples; i++) {
    const out = run(theta, () => layer.fprop(x, { seen: { causal: true } }), {
      prngKey: ints([i, 5], [2]),
    }).dataSync();
    out.forEach((value, k) => {
      mean[k]! += value / samples;
    });
  }
  expectClose(tf.tensor(Float32Array.from(mean)), expected, 0.08);
  checkGradients(layer, [x], (input) => layer.fprop(input!, { seen: { causal: true } }), {
    prngKey: ints([3, 4], [2]),
    probes: 3,
  });
});

test.each([
  ['plain', {}],
  ['rotary', { useRotaryPositionEmb: true }],
  ['trained scale', { internalEnablePerDimScale: true }],
  ['combined', { combineQkv: true, attenLogitCap: 1 }],
] as const)('extendStep equals fprop position by position: %s', (_, values) => {
  const layer = build(plainConfig({ dimPerHead: 4, hiddenDim: 8, ...values }));
  const theta = randomTheta(layer);
  const x = tensor([B, T, D]);
  const whole = run(theta, () => layer.fprop(x, { seen: { causal: true } }));
  // One slot more than there are tokens: unused slots must not count.
  const specs = decodeStateSpecs(layer, B, T + 1);
  expect(specs).toEqual({
    'kv_cache/key_state': { shape: [B, N, T + 1, 4], dtype: 'float32', isPerToken: true },
    'kv_cache/value_state': { shape: [B, N, T + 1, 4], dtype: 'float32', isPerToken: true },
  });
  const newState = () => stateOf(specs, 7);
  const decodeState = newState();
  for (let t = 0; t < T; t++) {
    const token = tf.slice(x, [0, t, 0], [B, 1, D]);
    const out = run(theta, () => layer.extendStep(token, { timeStep: tf.scalar(t, 'int32') }), {
      decodeState,
    });
    expectClose(out, tf.slice(whole, [0, t, 0], [B, 1, D]).dataSync());
  }
  // The same in two parts.
  const filled = newState();
  for (const [begin, steps] of [
    [0, 2],
    [2, T - 2],
  ] as const) {
    const tokens = tf.slice(x, [0, begin, 0], [B, steps, D]);
    const at = tf.scalar(begin, 'int32');
    const out = run(theta, () => layer.extendStep(tokens, { timeStep: at }), { decodeState: filled });
    expectClose(out, tf.slice(whole, [0, begin, 0], [B, steps, D]).dataSync());
  }
  for (const name of Object.keys(specs)) expectClose(filled[name]!, decodeState[name]!.dataSync());
});

test('what decodes in bfloat16 may keep its state so', () => {
  const specs = decodeStateSpecs(build(plainConfig({ fpropDtype: 'bfloat16' })), 1, 2);
  expect(Object.values(specs).map(({ roundedTo }) => roundedTo)).toEqual(['bfloat16', 'bfloat16']);
});

test('projections count fans by their axes where asked', () => {
  const fansOf = (config: Config<AttentionProjection> | Config<CombinedQKVProjectionLayer>) => {
    const { fanInAxes, fanOutAxes } = listVariables(build(config as Config<AttentionProjection>))[0]!;
    return { fanInAxes, fanOutAxes };
  };
  const dims = { inputDim: D, numHeads: N, dimPerHead: H, explicitFanInFanOutAxes: true };
  expect(fansOf(AttentionProjection.config(dims))).toEqual({ fanInAxes: [0], fanOutAxes: [1, 2] });
  expect(fansOf(AttentionProjection.config({ ...dims, isOutputProjection: true }))).toEqual({
    fanInAxes: [1, 2],
    fanOutAxes: [0],
  });
  expect(fansOf(CombinedQKVProjectionLayer.config(dims))).toEqual({ fanInAxes: [1], fanOutAxes: [2, 3] });
});

test('heads that do not divide the depth are an error', () => {
  expect(() => build(DotProductAttention.config({ inputDim: 6, hiddenDim: 7, numHeads: 2 }))).toThrow(
    'model (DotProductAttention): hiddenDim 7 is not a multiple of numHeads 2; set dimPerHead.',
  );
});
