/** @file LanguageModel: the GPT-2 config against plain loops, metrics, packing, padding, decoding. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build, type Config, derive, validate } from '../../src/hparams/index.js';
import {
  Embedding,
  FullSoftmax,
  listVariables,
  PositionalEmbedding,
  StackedTransformer,
  TransformerLm,
} from '../../src/layers/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import {
  checkSlope,
  expectClose,
  initialTheta,
  ints,
  randomTheta,
  run,
  stateOf,
  tensor,
} from '../layers/helpers.js';
import {
  attention,
  gelu,
  layerNorm,
  type Matrix,
  matrix,
  multiply,
  plus,
  softmax,
  transposed,
} from '../layers/plain.js';

const [B, T, V, D, HEADS, LAYERS] = [2, 5, 7, 8, 2, 2];
const IDS = [3, 1, 4, 1, 5, 2, 6, 5, 3, 0];
const LABELS = [1, 4, 1, 5, 2, 6, 5, 3, 0, 6];
const WEIGHTS = [1, 1, 1, 1, 1, 1, 0.5, 1, 0, 0];

const gpt = (values = {}) =>
  gpt2Lm({ vocabSize: V, modelDims: D, numLayers: LAYERS, numHeads: HEADS, maxSeqLength: T, ...values });

const batchOf = (extra: Record<string, Tensor> = {}) => ({
  ids: ints(IDS, [B, T]),
  labels: ints(LABELS, [B, T]),
  weights: tf.tensor2d(WEIGHTS, [B, T]),
  paddings: tf.zeros([B, T]) as Tensor,
  ...extra,
});

type Values = Record<string, Tensor>;

/** nanoGPT's forward pass by plain loops: logits of one sequence. */
function nanoGpt(theta: Values, ids: number[]): Matrix {
  const data = (path: string): ArrayLike<number> => theta[`lm/${path}`]!.dataSync();
  const table = matrix(data('softmax/w'), D);
  const positions = matrix(data('position_emb/emb_var'), D);
  let x = ids.map((id, t) => table[id]!.map((value, i) => value + positions[t]![i]!));
  for (let l = 0; l < LAYERS; l++) {
    const at = (name: string): string => `transformer/x_layers_${l}/${name}`;
    const a = layerNorm(x, data(at('layer_norm/scale')), null, 1e-5);
    const heads = (name: string): Matrix => matrix(data(at(`self_attention/${name}/w`)), D);
    const [q, k, v] = ['query', 'key', 'value'].map((name) => multiply(a, heads(name)));
    const options = {
      heads: HEADS,
      scale: 1 / Math.sqrt(D / HEADS),
      visible: (t: number, s: number) => s <= t,
    };
    x = plus(x, multiply(attention(q!, k!, v!, options), transposed(heads('post'))));
    const b = layerNorm(x, data(at('ff_layer/layer_norm/scale')), null, 1e-5);
    const hidden = multiply(b, matrix(data(at('ff_layer/ffn_layer1/linear/w')), 4 * D)).map((row) =>
      row.map(gelu),
    );
    x = plus(x, multiply(hidden, matrix(data(at('ff_layer/ffn_layer2/linear/w')), D)));
  }
  return multiply(layerNorm(x, data('final_ln/scale'), null, 1e-5), transposed(table));
}

const model = (lmTpl: Config<TransformerLm> = gpt()) => build(LanguageModel.config({ lmTpl }));

test('variables of a GPT-2 model: Pax’s paths, no biases, one table', () => {
  const layer = (l: number) => [
    `lm/transformer/x_layers_${l}/layer_norm/scale 8`,
    `lm/transformer/x_layers_${l}/self_attention/key/w 8,2,4`,
    `lm/transformer/x_layers_${l}/self_attention/query/w 8,2,4`,
    `lm/transformer/x_layers_${l}/self_attention/value/w 8,2,4`,
    `lm/transformer/x_layers_${l}/self_attention/post/w 8,2,4`,
    `lm/transformer/x_layers_${l}/ff_layer/layer_norm/scale 8`,
    `lm/transformer/x_layers_${l}/ff_layer/ffn_layer1/linear/w 8,32`,
    `lm/transformer/x_layers_${l}/ff_layer/ffn_layer2/linear/w 32,8`,
  ];
  expect(listVariables(model()).map(({ path, shape }) => `${path} ${shape}`)).toEqual([
    'lm/position_emb/emb_var 5,8',
    ...layer(0),
    ...layer(1),
    'lm/final_ln/scale 8',
    'lm/softmax/w 7,8',
  ]);
});

test('GPT-2 initialisation: 0.02, smaller where branches join the residual stream, norms at 1', () => {
  const wide = model(gpt2Lm({ vocabSize: 50, modelDims: 64, numLayers: 8, numHeads: 4, maxSeqLength: 40 }));
  const theta = initialTheta(wide);
  for (const [path, value] of Object.entries(theta)) {
    const data = [...value.dataSync()];
    if (path.endsWith('/scale')) {
      expect(new Set(data)).toEqual(new Set([1]));
      continue;
    }
    const sd = Math.sqrt(data.reduce((sum, x) => sum + x * x, 0) / data.length);
    const expected = /post\/w|ffn_layer2/.test(path) ? 0.02 / 4 : 0.02;
    expect(Math.abs(sd / expected - 1), path).toBeLessThan(0.05);
  }
});

test('logits and loss are those of nanoGPT', () => {
  const lm = model();
  const theta = randomTheta(lm, 11, 0.8);
  const rows = [IDS.slice(0, T), IDS.slice(T)].map((ids) => nanoGpt(theta, ids));
  const [predictions, [metrics, perExample]] = run(theta, () => {
    const out = lm.computePredictions(batchOf());
    return [out, lm.computeLoss(out, batchOf())] as const;
  });
  expect(predictions.logits.shape).toEqual([B, T, V]);
  expectClose(predictions.logits, rows.flat(2), 5e-5);
  const xents = rows.flat().map((logits, i) => -Math.log(softmax(logits)[LABELS[i]!]!));
  const totalWeight = WEIGHTS.reduce((a, b) => a + b, 0);
  const loss = xents.reduce((sum, x, i) => sum + x * WEIGHTS[i]!, 0) / totalWeight;
  const hits = rows.flat().map((logits, i) => Number(logits.indexOf(Math.max(...logits)) === LABELS[i]));
  const accuracy = hits.reduce((sum, hit, i) => sum + hit * WEIGHTS[i]!, 0) / totalWeight;
  const expected: Record<string, [number, number]> = {
    total_loss: [loss, totalWeight],
    avg_xent: [loss, totalWeight],
    aux_loss: [0, 1],
    log_pplx: [loss, totalWeight],
    fraction_of_correct_next_step_preds: [accuracy, totalWeight],
    num_predictions: [totalWeight, 1],
  };
  expect(Object.keys(metrics)).toEqual(Object.keys(expected));
  for (const [name, [value, weight]] of Object.entries(expected)) {
    expectClose(metrics[name]![0], [value], 5e-5);
    expectClose(metrics[name]![1], [weight]);
  }
  const score = (b: number): number => {
    let sum = 0;
    for (let i = b * T; i < (b + 1) * T; i++) sum -= xents[i]! * WEIGHTS[i]!;
    return sum;
  };
  expect(Object.keys(perExample)).toEqual(['labels', 'scores']);
  expectClose(perExample.scores!, [score(0), score(1)], 5e-5);
});

/** A model with every optional part that GPT-2 leaves out. */
function fullConfig(): Config<TransformerLm> {
  const stack = StackedTransformer.config({ numLayers: 1, hiddenDims: 6, numHeads: 2 });
  stack.transformerLayerParamsTpl.trAttenTpl.useRotaryPositionEmb = true;
  const config = TransformerLm.config({
    vocabSize: V,
    modelDims: D,
    stackedTransformerTpl: stack,
    separateEmbeddingTpl: Embedding.config({ scaleSqrtDepth: true }),
    softmaxTpl: FullSoftmax.config({ zLossWeight: 0.1, softCapLogits: 3 }),
  });
  return config;
}

test.each([
  ['GPT-2', gpt()],
  ['all parts', fullConfig()],
])('the gradient is the slope of the loss: %s', (_, config) => {
  const lm = model(config);
  checkSlope((moved) => run(moved, () => lm.fprop(batchOf())[0].total_loss![0]), randomTheta(lm, 5, 0.6));
});

test.each([
  ['GPT-2', gpt()],
  ['all parts', fullConfig()],
  ['sinusoids', derive(gpt(), (p) => void (p.positionEmbTpl = PositionalEmbedding.config()))],
  ['no positions', derive(gpt(), (p) => void (p.positionEmbTpl = null))],
])('extendStep gives the logits of the whole pass, step by step: %s', (_, config) => {
  const lm = model(config);
  const theta = randomTheta(lm, 5, 0.6);
  const whole = run(theta, () => lm.computePredictions(batchOf()).logits);
  const decodeState = stateOf(lm.initialDecodeState(B, T));
  expect(Object.keys(decodeState)[0]).toBe('lm/transformer/x_layers_0/self_attention/kv_cache/key_state');
  for (let t = 0; t < T; t++) {
    const ids = ints([IDS[t]!, IDS[T + t]!], [B]);
    const logits = run(theta, () => lm.extendStep(ids, { timeStep: tf.scalar(t, 'int32') }), {
      decodeState,
      doEval: true,
    });
    expect(logits.shape).toEqual([B, V]);
    expectClose(logits, tf.slice(whole, [0, t, 0], [B, 1, V]).dataSync(), 3e-5);
  }
  const filled = Object.fromEntries(
    Object.entries(decodeState).map(([path, { shape }]) => [path, tf.zeros([...shape]) as Tensor]),
  );
  for (const [begin, steps] of [
    [0, 2],
    [2, T - 2],
  ] as const) {
    const ids = tf.slice(ints(IDS, [B, T]), [0, begin], [B, steps]);
    const logits = run(theta, () => lm.extendStep(ids, { timeStep: tf.scalar(begin, 'int32') }), {
      decodeState: filled,
      doEval: true,
    });
    expect(logits.shape).toEqual([B, steps, V]);
    expectClose(logits, tf.slice(whole, [0, begin, 0], [B, steps, V]).dataSync(), 3e-5);
  }
  for (const [path, state] of Object.entries(decodeState)) expectClose(filled[path]!, state.dataSync(), 3e-5);
});

test('auxiliary losses enter the total, and aux_loss reports them', () => {
  const lm = model(fullConfig());
  const [metrics] = run(randomTheta(lm), () => lm.fprop(batchOf()));
  const value = (name: string): number => metrics[name]![0].dataSync()[0]!;
  expect(value('aux_loss')).toBeGreaterThan(0.1);
  expect(value('total_loss')).toBeCloseTo(value('avg_xent') + value('aux_loss'), 5);
});

test('a packed row gives what its sequences give alone', () => {
  const packed = derive(gpt(), (p) => void (p.packedInput = true));
  const lm = model(packed);
  const theta = randomTheta(lm, 5, 0.6);
  const batch = batchOf({
    segmentIds: ints([1, 1, 1, 2, 2, 1, 1, 2, 2, 2], [B, T]),
    segmentPos: ints([0, 1, 2, 0, 1, 0, 1, 0, 1, 2], [B, T]),
  });
  const logits = run(theta, () => lm.computePredictions(batch).logits);
  const parts = [
    [3, 1, 4],
    [1, 5],
    [2, 6],
    [5, 3, 0],
  ];
  expectClose(logits, parts.flatMap((ids) => nanoGpt(theta, ids)).flat(), 5e-5);
  expect(() => run(theta, () => lm.computePredictions(batchOf()))).toThrow(
    "model (LanguageModel): the batch has no 'segmentIds'. It has: ids, labels, weights, paddings.",
  );
});

test('usePaddings hides padding wherever it stands; a bidirectional model sees both sides', () => {
  const config = derive(gpt(), (p) => {
    p.usePaddings = true;
    p.modelType = 'bidirectional';
  });
  const lm = model(config);
  const theta = randomTheta(lm, 5, 0.6);
  const paddings = tf.tensor2d([0, 0, 1, 0, 0, 0, 0, 0, 0, 1], [B, T]);
  const logits = (ids: number[]): number[] => [
    ...run(
      theta,
      () => lm.computePredictions(batchOf({ ids: ints(ids, [B, T]), paddings })).logits,
    ).dataSync(),
  ];
  const base = logits(IDS);
  const hidden = logits(IDS.map((id, i) => (i === 2 || i === 9 ? 0 + ((id + 1) % V) : id)));
  const differs = (a: number[], b: number[]): number[] =>
    [...Array(B * T).keys()].filter(
      (i) => a.slice(i * V, i * V + V).join() !== b.slice(i * V, i * V + V).join(),
    );
  expect(differs(base, hidden)).toEqual([]);
  const last = logits(IDS.map((id, i) => (i === 4 ? (id + 1) % V : id)));
  // Position 2 is padding, which sees others and is seen by none.
  expect(differs(base, last)).toEqual([0, 1, 3, 4]);
  expect(() =>
    run(theta, () => lm.extendStep(ints([0, 1], [B]), { timeStep: tf.scalar(0, 'int32') }), {
      decodeState: {},
    }),
  ).toThrow(
    "lm (TransformerLm): decodes step by step: expected modelType 'causal' or 'prefix', got 'bidirectional'.",
  );
});

test('dropout of a GPT-2 model needs a key in training and none in evaluation', () => {
  const lm = model(gpt({ dropoutProb: 0.2 }));
  const theta = randomTheta(lm, 5, 0.6);
  const loss = (options: object): number =>
    run(theta, () => lm.fprop(batchOf())[0].total_loss![0], options).dataSync()[0]!;
  const plain = run(theta, () => model().fprop(batchOf())[0].total_loss![0]).dataSync()[0]!;
  expect(loss({ doEval: true })).toBe(plain);
  expect(loss({ prngKey: ints([1, 2], [2]) })).not.toBe(plain);
  expect(loss({ prngKey: ints([1, 2], [2]) })).toBe(loss({ prngKey: ints([1, 2], [2]) }));
  expect(() => loss({})).toThrow(
    'lm/transformer/input_dropout (Dropout): draws random numbers, and the context has no prngKey.',
  );
});

test('returnPredictions adds logits and predicted ids to the per-example output', () => {
  const lm = build(LanguageModel.config({ lmTpl: gpt(), returnPredictions: true }));
  const [, perExample] = run(randomTheta(lm), () => lm.fprop(batchOf()));
  expect(Object.keys(perExample)).toEqual(['labels', 'scores', 'logits', 'predicted_ids']);
});

test('what a batch or a config lacks is said', () => {
  const lm = model();
  const { labels: _, ...rest } = batchOf();
  expect(() => run(randomTheta(lm), () => lm.computePredictions({ ...rest, label: tensor([1]) }))).toThrow(
    "model (LanguageModel): the batch has no 'labels'. Did you mean 'label'? It has: ids, weights, paddings, label.",
  );
  const config = derive(gpt(), (p) => void (p.softmaxTpl = FullSoftmax.config()));
  expect(() => model(config)).toThrow(
    "lm (TransformerLm): softmaxTpl is a FullSoftmax, which can't embed tokens; set separateEmbeddingTpl, or use " +
      'SharedEmbeddingSoftmax or NClassMajorSharedEmbeddingSoftmax.',
  );
});

test('weights of examples, strict accuracy and that of yes and no', () => {
  const [yes, no] = [2, 5] as const;
  const config = LanguageModel.config({
    ...{ lmTpl: gpt(), returnPredictions: true, applyEvalSampleWeights: true },
    ...{ reportStrictAcc: true, boolqYnTokens: [yes, no] },
  });
  const lm = build(config);
  const theta = randomTheta(lm, 11, 0.8);
  // Row 0 is answered at place 3, row 1 nowhere: its answer's place has no weight.
  const weights = [0, 0, 0, 1, 0, 1, 0, 0, 0, 0];
  const [, { logits: all }] = run(theta, () =>
    lm.fprop(batchOf({ evalSampleWeights: tf.tensor1d([1, 1]) as Tensor })),
  );
  const logits = matrix(all!.dataSync(), V);
  const argMax = logits.map((row) => row.indexOf(Math.max(...row)));
  const metricsOf = (labels: number[], examples: number[]) =>
    run(theta, () =>
      lm.fprop({
        ...batchOf({ labels: ints(labels, [B, T]), weights: tf.tensor2d(weights, [B, T]) }),
        evalSampleWeights: tf.tensor1d(examples) as Tensor,
      }),
    )[0];
  const valuesOf = (labels: number[], examples: number[]) => {
    const { acc_strict, boolq_acc, num_predictions } = metricsOf(labels, examples);
    return [acc_strict!, boolq_acc!, num_predictions!].map((metric) => metric.map((x) => x.dataSync()[0]!));
  };
  const likelier = logits[3]![yes]! > logits[3]![no]! ? yes : no;
  const labelled = (at3: number, at5: number) =>
    LABELS.map((label, i) => (i === 3 ? at3 : i === 5 ? at5 : label));
  // All weighed tokens right: strictly right; other tokens are no answers.
  expect(valuesOf(labelled(argMax[3]!, argMax[5]!), [1, 1])[0]).toEqual([1, 2]);
  expect(valuesOf(labelled((argMax[3]! + 1) % V, argMax[5]!), [1, 1])[0]).toEqual([0.5, 2]);
  expect(valuesOf(labelled((argMax[3]! + 1) % V, argMax[5]!), [0, 1])).toEqual([
    [1, 1],
    expect.anything(),
    [1, 1],
  ]);
  expect(valuesOf(labelled(likelier, 0), [1, 1])[1]).toEqual([0.5, 2]);
  expect(valuesOf(labelled(likelier === yes ? no : yes, 0), [1, 1])[1]).toEqual([0, 2]);
  expect(valuesOf(labelled(likelier, 0), [1, 0])[1]).toEqual([1, 1]);
  // Without weights of examples, those count that have a weighed token.
  const { applyEvalSampleWeights: _, ...others } = { ...config };
  const plain = build(LanguageModel.config({ ...others, lmTpl: gpt() }));
  const [{ acc_strict }] = run(theta, () =>
    plain.fprop(
      batchOf({
        labels: ints(labelled(argMax[3]!, argMax[5]!), [B, T]),
        weights: tf.tensor2d([0, 0, 0, 1, 0, 0, 0, 0, 0, 0], [B, T]),
      }),
    ),
  );
  expect(acc_strict!.map((x) => x.dataSync()[0])).toEqual([1, 1]);
  const { evalSampleWeights: __, ...lacking } = batchOf({}) as Record<string, Tensor>;
  expect(() => run(theta, () => lm.fprop(lacking))).toThrow(
    "model (LanguageModel): the batch has no 'evalSampleWeights'. It has: ids, labels, weights, paddings.",
  );
  expect(validate(LanguageModel.config({ lmTpl: gpt(), boolqYnTokens: [1, V] })).map(String)).toEqual([
    expect.stringMatching(
      /^boolqYnTokens \(LanguageModel\): expected ids below lmTpl.vocabSize \(7\); boolqYnTokens is \[1, 7\]/,
    ),
  ]);
});

test('countTokens counts the tokens of training in a variable beside the network', () => {
  const lm = build(LanguageModel.config({ lmTpl: gpt(), countTokens: true }));
  const path = 'token_counter/approx_total_tokens_mm';
  expect(listVariables(lm)[0]!.path).toBe(path);
  const theta = { ...randomTheta(lm), [path]: tf.scalar(2) as Tensor };
  const paddings = tf.tensor2d([0, 0, 0, 0, 0, 0, 0, 1, 1, 1], [B, T]) as Tensor;
  const after = (doEval: boolean) => {
    const updatedVars: Record<string, Tensor> = {};
    run(theta, () => lm.fprop(batchOf({ paddings })), { updatedVars, doEval });
    return updatedVars[path]?.dataSync()[0];
  };
  expect(after(false)).toBeCloseTo(2 + 7e-6, 6);
  expect(after(true)).toBeUndefined();
});
