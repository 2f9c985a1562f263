/** @file N-grammers: pairs beyond int32, sequences and padding, clusters by plain loops, and language models that decode. */
import { describe, expect, test } from 'vitest';
import { flatLayout, flatViews, prngKey, type Tensor, tf } from '../../../src/compiler/index.js';
import { GreedyDecoder, Stepper } from '../../../src/decoding/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import {
  type BaseNgrammer,
  BregmanNgrammer,
  decodeStateSpecs,
  listVariables,
  Ngrammer,
  StackedTransformer,
  TransformerLm,
  VectorQuantization,
  VQNgrammer,
} from '../../../src/layers/index.js';
import { hashedPairs, primesAbove } from '../../../src/layers/ngrammer/bigrams.js';
import { LanguageModel } from '../../../src/models/index.js';
import { engines } from '../../compiler/engines.js';
import { checkLayers, expectNear, layerCase } from '../contract.js';
import { floats, given, ids as idsOf } from '../engineComparison.js';
import { expectClose, ints, numbers, randomTheta, run, stateOf, tensor } from '../helpers.js';

const [B, T, N, H] = [2, 5, 2, 4];
const heads = { numHeads: N, dimPerHead: H };
const tables = { ...heads, ngramVocabSize: 8, ngramEmbDim: 3 };
const ngrammer = (values: object = {}) => Ngrammer.config({ ...tables, unigramVocabSize: 7, ...values });
const clustered = (values: object = {}) =>
  VQNgrammer.config({ ...tables, unigramVocabSize: 7, numClusters: 3, concatNgrams: true, ...values });

describe('hashed pairs', () => {
  test.each([
    [256_000, 196_608],
    [50_257, 768 * 256],
    [2_000_000_000, 2 ** 23],
    [7, 2],
  ])('a vocabulary of %i in %i rows', (vocabSize, buckets) => {
    const count = 40;
    const drawn = (seed: number): number[] => [
      ...[0, 1, vocabSize - 1],
      ...[...numbers(count, seed)].map((x) => Math.floor(((x + 1) / 2) * vocabSize)),
    ];
    const [ids, before] = [drawn(1), drawn(2).reverse()];
    for (const [i, prime] of primesAbove(buckets, 3).entries()) {
      const factor = i + 1;
      const of = (x: number[]): Tensor => ints(x, [x.length]);
      const hashed = hashedPairs(of(ids), of(before), vocabSize, { factor, prime, buckets });
      const [a, p] = [BigInt(factor), BigInt(prime)];
      const expected = ids.map((id, k) => {
        const pair = BigInt(id) + BigInt(before[k]!) * BigInt(vocabSize);
        return Number(((pair * a + a) % p) % BigInt(buckets));
      });
      expect([...hashed.dataSync()]).toEqual(expected);
    }
  });

  test('primes above a number', () => {
    expect(primesAbove(8, 3)).toEqual([11, 13]);
    expect(primesAbove(196_608, 2)).toEqual([196_613, 196_643]);
  });
});

const farIds = Array.from({ length: B * T }, (_, i) => 2 ** 31 - 2 - 12_345_678 * i);

checkLayers('n-grammers', [
  layerCase({
    title: 'Ngrammer, whose pairs are beyond int32',
    config: ngrammer({ unigramVocabSize: 2 ** 31 - 1 }),
    inputs: { ids: given('int32', farIds, [B, T]), x: floats([B, T, N * H], 3) },
    call: (layer, { ids, x }) => layer.fprop(ids!, x!),
    variables: {
      'emb_layer_norm_0/scale': [4],
      'emb_layer_norm_0/bias': [4],
      'emb_layer_norm_1/scale': [4],
      'emb_layer_norm_1/bias': [4],
      'ngram_layer_norm_0/scale': [3],
      'ngram_layer_norm_0/bias': [3],
      'ngram_layer_norm_1/scale': [3],
      'ngram_layer_norm_1/bias': [3],
      'ngram_table_0/emb_var': [8, 3],
      'ngram_table_1/emb_var': [8, 3],
    },
  }),
  layerCase({
    title: 'an Ngrammer that adds, with padding and several sequences',
    config: ngrammer({ concatNgrams: false, ngramEmbDim: H }),
    inputs: { ids: idsOf([B, T], 7), x: floats([B, T, N * H], 3) },
    call: (layer, { ids, x }) =>
      layer.fprop(ids!, x!, {
        segmentPos: ints([0, 1, 0, 1, 2], [1, T]),
        paddings: tf.tensor2d([[0, 0, 0, 0, 1]]),
      }),
  }),
  layerCase({
    title: 'VQNgrammer',
    config: clustered(),
    inputs: { ids: idsOf([B, T], 7), x: floats([B, T, N * H], 3, 3) },
    call: (layer, { ids, x }) => layer.fprop(ids!, x!),
    probes: 1,
    doEval: true,
  }),
  layerCase({
    title: 'BregmanNgrammer',
    config: BregmanNgrammer.config({
      ...{ ...tables, ngramVocabSize: 5, unigramVocabSize: 7, numComponents: 2 },
      ...{ endStep: 10, coefficientsSteps: 3 },
    }),
    inputs: { ids: idsOf([B, T], 7), x: floats([B, T, N * H], 3) },
    call: (layer, { ids, x }) => layer.fprop(ids!, x!),
    variables: {
      correlation: [2, 2, 5, N],
      embedding_table: [5, 3, N],
      ...Object.fromEntries(
        [0, 1].flatMap((i) => [
          [`emb_layer_norm_${i}/scale`, [H]],
          [`emb_layer_norm_${i}/bias`, [H]],
          [`ngram_layer_norm_${i}/scale`, [3]],
          [`ngram_layer_norm_${i}/bias`, [3]],
          [`bregman_compression_layer/bregman_layers_${i}/step`, []],
          [`bregman_compression_layer/bregman_layers_${i}/mean`, [1, H]],
          [`bregman_compression_layer/bregman_layers_${i}/components`, [2, H]],
          [`bregman_compression_layer/bregman_layers_${i}/components_momentum`, [2, H]],
        ]),
      ),
    },
    rowsApart: false,
    // Coefficients have no gradient.
    stopsGradients: true,
    doEval: true,
  }),
]);

/** Rows of a table for the pairs of one head, and the heads of embeddings, each normed: by the definition. */
test('a pair is looked up by the id before, within its sequence and not across padding', () => {
  const layer = build(ngrammer());
  const theta = randomTheta(layer);
  const [ids, x] = [[3, 1, 4, 6, 5], tensor([1, T, N * H])];
  const outputs = run(theta, () =>
    layer.fprop(ints(ids, [1, T]), x, {
      segmentPos: ints([0, 1, 2, 0, 1], [1, T]),
      paddings: tf.tensor2d([[0, 1, 0, 0, 0]]),
    }),
  );
  const before = [0, 3, 0, 0, 6];
  const part = (name: string) => layer.children.get(name)! as never as { fprop(x: Tensor): Tensor };
  const expected = run(theta, () =>
    tf.concat(
      [0, 1].map((i) => {
        const rows = ids.map((id, t) => {
          const pair = id + before[t]! * 7;
          return ((pair * (i + 1) + i + 1) % [11, 13][i]!) % 8;
        });
        const table = tf.gather(theta[`ngram_table_${i}/emb_var`]!, ints(rows, [T]) as tf.Tensor1D);
        const own = part(`emb_layer_norm_${i}`).fprop(tf.slice(x, [0, 0, i * H], [1, T, H]));
        const pairs = part(`ngram_layer_norm_${i}`).fprop(tf.expandDims(table, 0));
        return tf.concat([tf.slice(own, [0, 0, 0], [1, T, 1]), pairs], -1);
      }),
      -1,
    ),
  );
  const kept = tf.tensor3d([[[1], [0], [1], [1], [1]]]);
  expectClose(outputs, tf.mul(expected, kept).dataSync());
});

test('junk in padding has no effect, and clusters neither count it nor rows of weight 0', () => {
  const layer = build(clustered());
  const theta = randomTheta(layer);
  const paddings = tf.tensor2d([
    [0, 0, 0, 1, 1],
    [0, 0, 0, 0, 0],
    [0, 0, 0, 0, 0],
  ]) as Tensor;
  const results = (junk: number) => {
    const updatedVars: Record<string, Tensor> = {};
    const first = tf.concat([tensor([1, 3, N * H]), tf.fill([1, 2, N * H], junk)], 1);
    const x = tf.concat([first, tensor([1, T, N * H], 2), tf.fill([1, T, N * H], junk)], 0);
    const outputs = run(theta, () => layer.fprop(ints(Array(15).fill(1), [3, T]), x, { paddings }), {
      ...{ updatedVars, rowWeights: tf.tensor1d([1, 1, 0]) },
    });
    return { outputs: tf.slice(outputs, 0, [2, T, N * H]), means: updatedVars['vq_layer/means']! };
  };
  const [none, some] = [results(0), results(Number.NaN)];
  expectClose(some.outputs, none.outputs.dataSync());
  expectClose(some.means, none.means.dataSync());
});

test('clusters are the nearest means, which move to those of the batch', () => {
  const [K, decay, epsilon] = [3, 0.9, 1e-6];
  const layer = build(VectorQuantization.config({ ...heads, numClusters: K, decay, epsilon }));
  const theta = randomTheta(layer);
  const x = tensor([B, T, N, H]);
  const updatedVars: Record<string, Tensor> = {};
  const found = run(theta, () => layer.fprop(x), { updatedVars });
  const means = theta.means!.arraySync() as unknown as number[][][];
  const vectors = x.arraySync() as unknown as number[][][][];
  const distance = (a: number[], b: number[]) => a.reduce((sum, v, i) => sum + (v - b[i]!) ** 2, 0);
  const nearest = vectors.map((row) =>
    row.map((token) =>
      token.map((vector, n) => {
        const distances = means[n]!.map((mean) => distance(vector, mean));
        return distances.indexOf(Math.min(...distances));
      }),
    ),
  );
  expect(found.clusterIds.arraySync()).toEqual(nearest);
  expectClose(
    found.nearestCentroid,
    nearest.flatMap((row) => row.flatMap((token) => token.flatMap((k, n) => means[n]![k]!))),
  );
  const moved = means.map((ofHead, n) =>
    ofHead.map((mean, k) => {
      const own = vectors
        .flatMap((row, b) => row.filter((_, t) => nearest[b]![t]![n] === k))
        .map((v) => v[n]!);
      return mean.map((value, h) => {
        const sum = own.reduce((total, vector) => total + vector[h]!, 0);
        return decay * value + ((1 - decay) * sum) / (own.length + epsilon);
      });
    }),
  );
  expectClose(updatedVars.means!, moved.flat(2));
  const evaluated: Record<string, Tensor> = {};
  run(theta, () => layer.fprop(x), { updatedVars: evaluated, doEval: true });
  expect(evaluated).toEqual({});
});

const model = (ngrammerTpl: Config<BaseNgrammer>, values: object = {}) =>
  TransformerLm.config({
    ...{ vocabSize: 7, modelDims: N * H, ngrammerTpl },
    stackedTransformerTpl: StackedTransformer.config({ numLayers: 1, hiddenDims: 6, numHeads: 2 }),
    ...values,
  });

describe.each([
  ['Ngrammer', () => Ngrammer.config(tables)],
  ['VQNgrammer', () => VQNgrammer.config({ ...tables, numClusters: 3, concatNgrams: true })],
])('a language model with %s', (_, tpl) => {
  const ids = ints([3, 1, 4, 1, 5, 2, 6, 5, 3, 0], [B, T]);

  test('decodes as it trains, in blocks that are filled up and token by token', () => {
    const lm = build(model(tpl() as Config<BaseNgrammer>));
    const theta = randomTheta(lm);
    const whole = run(theta, () => lm.logits({ ids }), { doEval: true });
    const decodeState = stateOf(decodeStateSpecs(lm, B, T));
    const step = (tokens: Tensor, at: number, length?: number): Tensor =>
      run(
        theta,
        () =>
          lm.extendStep(tokens, {
            timeStep: tf.scalar(at, 'int32'),
            length: length === undefined ? undefined : tf.scalar(length, 'int32'),
          }),
        { decodeState, doEval: true },
      );
    const at = (t: number, count: number): Tensor => tf.slice(ids, [0, t], [B, count]);
    const filled = tf.concat([at(0, 2), ints([6, 6], [B, 1])], 1);
    const logits = [tf.slice(step(filled, 0, 2), [0, 0, 0], [B, 2, 7]), step(at(2, 2), 2), step(at(4, 1), 4)];
    expectNear(tf.concat(logits, 1), whole, 1e-5);
  });

  test('keeps packed sequences apart', () => {
    const lm = build(model(tpl() as Config<BaseNgrammer>, { packedInput: true }));
    const theta = randomTheta(lm);
    const logitsOf = (ids: Tensor, segmentIds: number[], segmentPos: number[]) =>
      run(
        theta,
        () => {
          const rows = (x: number[]) => ints([...x, ...x], [B, x.length]);
          return lm.logits({ ids, segmentIds: rows(segmentIds), segmentPos: rows(segmentPos) });
        },
        { doEval: true },
      );
    const packed = logitsOf(ids, [1, 1, 2, 2, 2], [0, 1, 0, 1, 2]);
    const alone = [
      logitsOf(tf.slice(ids, [0, 0], [B, 2]), [1, 1], [0, 1]),
      logitsOf(tf.slice(ids, [0, 2], [B, 3]), [1, 1, 1], [0, 1, 2]),
    ];
    expectNear(packed, tf.concat(alone, 1), 1e-5);
  });
});

test.each(engines.filter(([, { available }]) => available))(
  'a compiled decode goes on from prompts as whole sequences do, on %s',
  async (_, { engine }) => {
    const [seqlen, lengths, width] = [8, [3, 1], 3];
    const lm = build(LanguageModel.config({ lmTpl: model(Ngrammer.config(tables)) }));
    const layout = flatLayout(
      listVariables(lm).map(({ path, shape }) => ({ name: path, shape, group: 'all' })),
    );
    const params = { layout, views: flatViews(layout, numbers(layout.size, 3)) };
    const decoder = build(GreedyDecoder.config({ seqlen, eosId: [] }));
    const stepper = await Stepper.create({
      ...{ model: lm, params, rows: 2, seqlen, rule: decoder.rule },
      compileOptions: (name) => ({ name, engine, numThreads: 2 }),
    });
    const int32 = (shape: number[], data: number[]) => ({
      ...{ shape, dtype: 'int32' as const, data: Int32Array.from(data) },
    });
    const prompts = {
      prefixIds: int32([2, width], [3, 1, 4, 2, 0, 0]),
      prefixLengths: int32([2], lengths),
    };
    const { outputIds } = await decoder.decode({ ...prompts, ...stepper.calls, key: prngKey(4) });
    await stepper.dispose();
    const theta = Object.fromEntries(
      layout.entries.map(({ name, shape }) => [
        name,
        tf.tensor(params.views[name] as Float32Array, [...shape] as number[]) as Tensor,
      ]),
    );
    const inner = lm.children.get('lm') as TransformerLm;
    for (const [row, length] of lengths.entries()) {
      const tokens = [...prompts.prefixIds.data.slice(row * width, row * width + length)];
      while (tokens.length < seqlen) {
        const logits = run(theta, () => inner.logits({ ids: ints(tokens, [1, tokens.length]) }), {
          doEval: true,
        });
        const last = tf.slice(logits, [0, tokens.length - 1, 0], [1, 1, 7]);
        tokens.push(tf.argMax(tf.reshape(last, [7]) as Tensor).dataSync()[0]!);
      }
      expect([...outputIds.data.slice(row * seqlen, (row + 1) * seqlen)]).toEqual(tokens);
    }
  },
);

test.each<[Config<BaseNgrammer>, string]>([
  [ngrammer({ ngramEmbDim: 5 }), 'model (Ngrammer): ngramEmbDim: expected at most dimPerHead 4, got 5.'],
  [
    clustered({ concatNgrams: false }),
    'ngram_layer (Ngrammer): ngramEmbDim: expected dimPerHead 4, got 3; set concatNgrams for less.',
  ],
  [
    ngrammer({ numHeads: 3 }),
    'model (Ngrammer): ngramVocabSize: expected a prime for each of numHeads 3 between 8 and twice that, got 2.',
  ],
])('settings that do not fit', (config, message) => {
  expect(() => build(config)).toThrow(message);
});

test('depths of a model that do not fit', () => {
  expect(() => build(model(Ngrammer.config({ ...tables, numHeads: 1 })))).toThrow(
    'model (TransformerLm): ngrammerTpl: expected numHeads x dimPerHead to be modelDims 8, got 1 x 4.',
  );
});
