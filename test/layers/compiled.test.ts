/** @file Every layer compiled, forward and backward, against the eager oracle. */
import { expect, test } from 'vitest';
import { compile, type HostTensor, sizeOf, type Tensor, tf } from '../../src/compiler/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import {
  AddResidual,
  type BaseLayer,
  Bias,
  Conv2D,
  CubedReLU,
  DotProductAttention,
  Dropout,
  Einsum,
  ELU,
  Embedding,
  Exp,
  FeedForward,
  GELU,
  GlobalPooling,
  GroupNorm,
  LayerNorm,
  LeakyReLU,
  Linear,
  listVariables,
  Pooling,
  PositionalEmbedding,
  ReLU,
  ReLU6,
  RmsNorm,
  RmsNormNoScale,
  RotaryPositionalEmbedding,
  runInContext,
  Sequential,
  SharedEmbeddingSoftmax,
  Sigmoid,
  SiLU,
  SineReLU,
  Softplus,
  SpectralNorm,
  SquaredReLU,
  StackedTransformer,
  Tanh,
  TrainablePositionalEmbedding,
  Transformer,
  TransformerFeedForward,
  TransformerLm,
  WeightNormLinear,
} from '../../src/layers/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { longTest } from '../longTest.js';
import { expectAllSame, floats, ids as integers, type Subject, type Tensors } from './engineComparison.js';

type Inputs = Subject['inputs'];

/** A layer with generic values. */
const subject = (title: string, layer: BaseLayer, inputs: Inputs, call: Subject['call']): Subject => ({
  ...{ title, inputs, call },
  params: Object.fromEntries(
    listVariables(layer).map(({ path, shape }, i) => [path, floats(shape, i + 5, 0.5)]),
  ),
});

const [B, T, D, V] = [2, 4, 6, 7];
const x = () => ({ x: floats([B, T, D], 3, 2) });
type Simple = BaseLayer & { fprop(x: Tensor): Tensor };
const simple: [string, Config<Simple>][] = [
  ['Linear', Linear.config({ inputDims: D, outputDims: 3 })],
  ['Bias', Bias.config({ dims: D })],
  ['FeedForward', FeedForward.config({ inputDims: D, outputDims: 3 })],
  ['LayerNorm', LayerNorm.config({ dim: D })],
  ['LayerNorm without bias', LayerNorm.config({ dim: D, useBias: false, directScale: true })],
  ['RmsNorm', RmsNorm.config({ dim: D })],
  ['RmsNormNoScale', RmsNormNoScale.config({ dim: D })],
  ['Einsum', Einsum.config({ eqn: '...td,dnh->...tnh', wShape: [D, 2, 3], useBias: true })],
  ['WeightNormLinear', WeightNormLinear.config({ inputDims: D, outputDims: 3 })],
  [
    'WeightNormLinear by SpectralNorm',
    WeightNormLinear.config({ inputDims: D, outputDims: 3, weightNormTpl: SpectralNorm.config() }),
  ],
  [
    'Chain',
    AddResidual.config({ layers: [Tanh.config(), Linear.config({ inputDims: D, outputDims: D })] }) as never,
  ],
  ['GroupNorm', GroupNorm.config({ dim: D, numGroups: 2 })],
  ['GroupNorm of what came before', GroupNorm.config({ dim: D, numGroups: 3, cumulative: true })],
  [
    'Sequential',
    Sequential.config({ layers: [Linear.config({ inputDims: D, outputDims: 3 }), Tanh.config()] }),
  ],
  ['Dropout', Dropout.config({ keepProb: 0.5 })],
  [
    'TransformerFeedForward',
    TransformerFeedForward.config({ inputDims: D, hiddenDims: 5, useGatedActivation: true }),
  ],
  ...[
    CubedReLU,
    ELU,
    Exp,
    GELU,
    LeakyReLU,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    SineReLU,
    Softplus,
    SquaredReLU,
    Tanh,
  ].map((cls): [string, Config<Simple>] => [cls.name, cls.config()]),
];

const called = (inputs: () => Inputs, configs: readonly [string, Config<Simple>][]): Subject[] =>
  configs.map(([title, config]) => {
    const layer = build(config);
    return subject(title, layer, inputs(), (t) => layer.fprop(t.x!));
  });

const ofImages: [string, Config<Simple>][] = [
  ['Conv2D', Conv2D.config({ filterShape: [3, 2, 4, 5], filterStride: [2, 1], bias: true })],
  ['Conv2D, dilated', Conv2D.config({ filterShape: [2, 3, 4, 3], dilations: [2, 2], padding: 'VALID' })],
  ['GroupNorm', GroupNorm.config({ dim: 4, numGroups: 2 })],
  ['Pooling', Pooling.config({ windowShape: [3, 2], windowStride: [2, 2] })],
  ['Pooling by the mean', Pooling.config({ windowShape: [2, 3], poolingType: 'AVG' })],
  ['GlobalPooling', GlobalPooling.config({ poolingDims: [1, 2], poolingType: 'AVG', keepdims: true })],
];

/** A layer whose class says what it is. */
const of = (layer: BaseLayer, inputs: Inputs, call: Subject['call']): Subject =>
  subject(layer.constructor.name, layer, inputs, call);

function paddedPoolings(): Subject[] {
  const images = { x: floats([2, 6, 4, 3], 3, 2) };
  const paddings = () => tf.tensor2d([0, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1], [2, 6]);
  return (['MAX', 'AVG'] as const).flatMap((poolingType) => {
    const layer = build(Pooling.config({ windowShape: [2, 2], poolingType }));
    const all = build(GlobalPooling.config({ poolingDims: [1, 2], poolingType }));
    return [
      of(layer, images, (t) => layer.fprop(t.x!, paddings())),
      of(all, images, (t) => all.fprop(t.x!, tf.reshape(paddings(), [2, 6, 1, 1]))),
    ];
  });
}

function positions(): Subject[] {
  const rotary = build(RotaryPositionalEmbedding.config({ embeddingDims: D }));
  const heads = { x: floats([B, T, 2, D]), at: integers([B, T], 9) };
  const sinusoids = build(PositionalEmbedding.config({ embeddingDims: D }));
  const trained = build(TrainablePositionalEmbedding.config({ embeddingDims: D, maxSeqLength: 9 }));
  return [
    of(rotary, heads, (t) => tf.add(rotary.fprop(t.x!), rotary.fprop(t.x!, t.at))),
    of(sinusoids, { x: floats([T, D]), at: integers([T], 9) }, (t) =>
      tf.mul(t.x!, tf.add(sinusoids.fprop(T), sinusoids.atPositions(t.at!))),
    ),
    of(trained, { at: integers([T], 9) }, (t) => tf.add(trained.fprop(T), trained.atPositions(t.at!))),
  ];
}

/** An embedding of many duplicates. */
function embedding(): Subject {
  const layer = build(Embedding.config({ numClasses: V, inputDims: D, scaleSqrtDepth: true }));
  return of(layer, { ids: integers([8, 16], V) }, (t) => layer.embLookup(t.ids!));
}

function attentions(): Subject[] {
  const fields = { inputDim: D, hiddenDim: 8, numHeads: 2 };
  const configs = {
    causal: fields,
    'combined, capped, plain scale': {
      ...{ ...fields, combineQkv: true, attenLogitCap: 1, internalEnablePerDimScale: false },
    },
    'rotary, dropout': { ...fields, useRotaryPositionEmb: true, attenDropoutProb: 0.3 },
  };
  return Object.entries(configs).map(([title, values]) => {
    const layer = build(DotProductAttention.config(values));
    return subject(`attention, ${title}`, layer, x(), (t) => layer.fprop(t.x!, { seen: { causal: true } }));
  });
}

const transformers = (): Subject[] =>
  (['pre', 'primer_hybrid', 'post', 'post_skip'] as const).map((normPolicy) => {
    const layer = build(Transformer.config({ inputDims: D, hiddenDims: 5, numHeads: 2, normPolicy }));
    return subject(normPolicy, layer, x(), (t) => layer.fprop(t.x!, { seen: { causal: true } }));
  });

function lm(): Config<TransformerLm> {
  return TransformerLm.config({
    vocabSize: V,
    modelDims: D,
    packedInput: true,
    usePaddings: true,
    stackedTransformerTpl: StackedTransformer.config({
      numLayers: 2,
      hiddenDims: 5,
      numHeads: 2,
      dropoutProb: 0.1,
    }),
    softmaxTpl: SharedEmbeddingSoftmax.config({ zLossWeight: 0.1, scaleSqrtDepth: true }),
  });
}

function languageModels(): Subject[] {
  const lms = {
    'GPT-2': gpt2Lm({ vocabSize: V, modelDims: D, numLayers: 2, numHeads: 2, maxSeqLength: T }),
    'packed, padded, dropout, sinusoids': lm(),
  };
  const batch = {
    ...{ ids: integers([B, T], V), labels: integers([B, T], V) },
    ...{ segmentIds: integers([B, T], 2), segmentPos: integers([B, T], T) },
  };
  return Object.entries(lms).map(([title, lmTpl]) => {
    const model = build(LanguageModel.config({ lmTpl }));
    return subject(`LanguageModel, ${title}`, model, batch, (t) => {
      const full = { ...t, weights: tf.ones([B, T]), paddings: tf.zeros([B, T]) };
      return model.fprop(full as Tensors)[0].total_loss![0];
    });
  });
}

longTest('layers and language models, in one program', () =>
  expectAllSame([
    ...called(x, simple),
    ...called(() => ({ x: floats([2, 7, 6, 4], 3, 2) }), ofImages),
    ...[...paddedPoolings(), ...positions(), embedding(), ...attentions(), ...transformers()],
    ...languageModels(),
  ]),
);

test('decoding step by step, compiled once for all steps', async () => {
  const lmTpl = gpt2Lm({ vocabSize: V, modelDims: D, numLayers: 2, numHeads: 2, maxSeqLength: T });
  const model = build(LanguageModel.config({ lmTpl }));
  const theta: Inputs = Object.fromEntries(
    listVariables(model).map(({ path, shape }, i) => [path, floats(shape, i + 5, 0.5)]),
  );
  const ids = integers([B, T], V);
  const whole = await compile(
    ({ theta, ids }) =>
      runInContext({ theta, doEval: true }, () => {
        const ones = tf.ones([B, T]);
        return { logits: model.computePredictions({ ids, labels: ids, weights: ones }).logits };
      }),
    { theta, ids } as never,
    { engine: 'eager' },
  );
  const expected = ((await whole.run({ theta, ids } as never)) as unknown as { logits: HostTensor }).logits
    .data;
  const specs = model.initialDecodeState(B, T);
  const step = await compile(
    ({ theta, ids, timeStep, state }) =>
      runInContext({ theta, doEval: true, decodeState: state }, () => ({
        logits: model.extendStep(ids, { timeStep }),
        state,
      })),
    {
      theta,
      ids: { shape: [B], dtype: 'int32' },
      timeStep: { shape: [], dtype: 'int32' },
      state: specs,
    } as never,
    { numThreads: 1 },
  );
  let state: unknown = Object.fromEntries(
    Object.entries(specs).map(([path, spec]) => [
      path,
      { ...spec, data: new Float32Array(sizeOf(spec.shape)) },
    ]),
  );
  for (let t = 0; t < T; t++) {
    const token = { shape: [B], dtype: 'int32', data: Int32Array.of(ids.data[t]!, ids.data[T + t]!) };
    const timeStep = { shape: [], dtype: 'int32', data: Int32Array.of(t) };
    const result = (await step.run({ theta, ids: token, timeStep, state } as never)) as unknown as {
      logits: HostTensor;
      state: unknown;
    };
    state = result.state;
    for (let b = 0; b < B; b++) {
      for (let v = 0; v < V; v++) {
        expect(result.logits.data[b * V + v]!).toBeCloseTo(expected[(b * T + t) * V + v]!, 4);
      }
    }
  }
  await step.dispose();
});
