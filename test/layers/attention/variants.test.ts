/** @file Variants of attention: the contract of mixers, figures of Pax under the sine fill, and errors. */
import { expect, test } from 'vitest';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  Alibi,
  DotProductAttention,
  DotProductAttentionWithContext,
  DotProductAttentionWithContextXL,
  GroupedQueryAttention,
  KeyValuePrefix,
  LatentAttention,
  LocalSelfAttention,
  LocalSelfAttentionAlibi,
  LocalSelfAttentionRelativeBias,
  LocalSelfAttentionXL,
  listVariables,
  MultiQueryDotProductAttention,
  RelativeBias,
  RmsNorm,
  WindowCache,
} from '../../../src/layers/index.js';
import { checkMixers, mixerCase } from '../contract.js';
import { run } from '../helpers.js';
import { parameterCount, sineInput, sineTheta, sums } from '../sineFill.js';

const dims = { inputDim: 4, hiddenDim: 4, numHeads: 2 };
const plain = { ...dims, internalEnablePerDimScale: false };
const buckets = { relativeAttentionNumBuckets: 6, relativeAttentionMaxDistance: 8 };
const latent = {
  ...{ inputDim: 4, numHeads: 2, kvLoraRank: 3 },
  ...{ qkNopeHeadDim: 2, qkRopeHeadDim: 2, vHeadDim: 3 },
};

checkMixers('attention', [
  mixerCase({
    title: 'convolutions, norms before the rotation, sinks, a gate, a prefix',
    config: DotProductAttention.config({
      ...{
        ...plain,
        dconvQkv: true,
        lnTpl: RmsNorm.config(),
        normBeforeRotary: true,
        useRotaryPositionEmb: true,
      },
      ...{ useSinks: true, useOutputGate: true, prefixTpl: KeyValuePrefix.config({ prefixLength: 2 }) },
    }),
  }),
  mixerCase({
    title: "T5's bias, an extra logit",
    config: DotProductAttention.config({
      ...plain,
      relativeBiasTpl: RelativeBias.config(buckets),
      attentionExtraLogit: 0.5,
    }),
  }),
  mixerCase({
    title: "T5's bias below a cap, grouped queries, dropout, a window",
    config: GroupedQueryAttention.config({
      ...dims,
      ...{
        numKvHeads: 1,
        attenLogitCap: 1.5,
        attenDropoutProb: 0.3,
        scaleLogitsByHeadDims: true,
        useSinks: true,
      },
      ...{ windowSize: 3, cacheTpl: WindowCache.config(), dconvQkv: true, lnTpl: RmsNorm.config() },
      relativeBiasTpl: RelativeBias.config({ ...buckets, bidirectional: true }),
      prefixTpl: KeyValuePrefix.config({ prefixLength: 3 }),
    }),
  }),
  mixerCase({
    title: 'ALiBi of three heads, multi-query, in a ring',
    config: MultiQueryDotProductAttention.config({
      ...{ ...plain, numHeads: 3, dimPerHead: 2, windowSize: 4, cacheTpl: WindowCache.config() },
      relativeBiasTpl: Alibi.config(),
    }),
  }),
  mixerCase({
    title: 'XL in a context, in a ring, capped',
    config: DotProductAttentionWithContextXL.config({
      ...{ ...dims, relPosEmbDim: 5, leftContext: 3, attenLogitCap: 2 },
      cacheTpl: WindowCache.config(),
    }),
  }),
  mixerCase({
    title: 'local with a bias',
    config: LocalSelfAttentionRelativeBias.config({
      ...plain,
      leftContext: 3,
      rightContext: 1,
      blockSize: 2,
    }),
  }),
  mixerCase({ title: 'latent', config: LatentAttention.config({ ...latent, qLoraRank: 3 }) }),
]);

const pax = { inputDim: 16, hiddenDim: 16, numHeads: 2 };
test.each<[string, Config<DotProductAttention>, number, number]>([
  ['plain', DotProductAttention.config(pax), 1096, 2.156556],
  [
    'relative bias of 4 buckets',
    DotProductAttention.config({
      ...pax,
      relativeBiasTpl: RelativeBias.config({
        relativeAttentionNumBuckets: 4,
        relativeAttentionMaxDistance: 8,
      }),
    }),
    1104,
    2.157545,
  ],
  ['multi-query', MultiQueryDotProductAttention.config(pax), 816, 1.642914],
  [
    'grouped queries, rotated',
    GroupedQueryAttention.config({
      ...{ inputDim: 16, hiddenDim: 32, numHeads: 4, numKvHeads: 2, useRotaryPositionEmb: true },
      internalEnablePerDimScale: false,
    }),
    1616,
    1.753122,
  ],
])('the figures of Pax: %s', (_, config, parameters, q) => {
  const layer = build(config);
  const outputs = run(sineTheta(layer), () => layer.fprop(sineInput([2, 8, 16]), { seen: { causal: true } }));
  expect(parameterCount(layer)).toBe(parameters);
  expect(sums(outputs).q).toBeCloseTo(q, 5);
});

test('variables have the names of Pax, or of the reference', () => {
  const named = (layer: Parameters<typeof listVariables>[0]): string[] =>
    listVariables(layer).map(({ path, shape }) => `${path} ${shape}`);
  const all = DotProductAttention.config({
    ...plain,
    useBias: false,
    dconvQkv: true,
    lnTpl: RmsNorm.config(),
  });
  all.relativeBiasTpl = RelativeBias.config();
  expect(named(build(all)).slice(4)).toEqual([
    ...['q', 'k', 'v'].flatMap((x) => [0, 1, 2].map((i) => `dconv_${x}/dconv_${i} 2,2`)),
    'layer_norm_q/scale 2',
    'layer_norm_k/scale 2',
    'relative_bias/wrb 2,32',
  ]);
  const xl = LocalSelfAttentionXL.config({ ...plain, relPosEmbDim: 6 });
  expect(named(build(xl))).toEqual(expect.arrayContaining(['u 2,2', 'v 2,2', 'pos_proj/w 6,2,2']));
  expect(named(build(LatentAttention.config({ ...latent, qLoraRank: 3 })))).toEqual([
    'q_a_proj/w 4,3',
    'q_a_layernorm/scale 3',
    'q_b_proj/w 3,2,4',
    'kv_a_proj_with_mqa/w 4,5',
    'kv_a_layernorm/scale 3',
    'kv_b_proj/w 3,2,5',
    'o_proj/w 4,2,3',
  ]);
});

test('a context is the window of the same size, whichever class has it', () => {
  const x = sineInput([2, 8, 16]);
  const context = { leftContext: 3, rightContext: 1 };
  const layers = [
    DotProductAttentionWithContext.config({ ...pax, ...context }),
    LocalSelfAttention.config({ ...pax, ...context, blockSize: 4 }),
  ].map((config) => build(config as Config<DotProductAttention>));
  const whole = build(DotProductAttention.config(pax));
  const theta = sineTheta(whole);
  const expected = run(theta, () => whole.fprop(x, { seen: { window: { before: 2, after: 1 } } })).dataSync();
  for (const layer of layers) expect(run(theta, () => layer.fprop(x)).dataSync()).toEqual(expected);
  const slopes = build(LocalSelfAttentionAlibi.config({ ...pax, ...context }));
  const other = run(theta, () => slopes.fprop(x)).dataSync();
  expect(other.some((value, i) => Math.abs(value - expected[i]!) > 1e-4)).toBe(true);
});

test('the slopes of ALiBi, also of heads that are no power of two', () => {
  const slopes = (numHeads: number) => build(Alibi.config({ numHeads })).slopes();
  expect(slopes(8)).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((i) => 2 ** -i));
  expect(slopes(3)).toEqual([2 ** -4, 2 ** -8, 2 ** -2]);
});

test('what cannot be is an error before anything trains', () => {
  const told = (config: Config<DotProductAttention | RelativeBias>): string => {
    try {
      build(config);
    } catch (error) {
      return (error as Error).message.split('\n')[0]!;
    }
    return 'built';
  };
  expect(told(DotProductAttention.config({ ...dims, useSinks: true, attentionExtraLogit: 0 }))).toBe(
    'Building DotProductAttention failed: model (DotProductAttention): attentionExtraLogit is constant, useSinks trains it: expected one of them.',
  );
  expect(told(LocalSelfAttentionRelativeBias.config({ ...dims, leftContext: 3 }))).toBe(
    'Building LocalSelfAttentionRelativeBias failed: model (LocalSelfAttentionRelativeBias): leftContext 3, rightContext null and blockSize null size the variable: expected numbers, and blocks of 2 or more.',
  );
  expect(told(RelativeBias.config({ relativeAttentionMaxDistance: 16, numHeads: 1 }))).toBe(
    'Building RelativeBias failed: model (RelativeBias): relativeAttentionMaxDistance 16 is within the 16 buckets of one distance each that 32 buckets have; expected more distance, or at least 2 buckets.',
  );
  const convolved = build(DotProductAttention.config({ ...pax, dconvQkv: true }));
  const x = sineInput([1, 2, 16]);
  expect(() =>
    run(sineTheta(convolved), () => convolved.fprop(x, { keyVec: sineInput([1, 3, 16]) })),
  ).toThrow(
    'model (DotProductAttention): dconvQkv is for self-attention: query, key and value vectors are one tensor.',
  );
});
