/** @file Encoder and decoder: padding and packing, decoding, own embeddings and positions; prefix models; blocks side by side. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import {
  ConvolutionalStem,
  decodeStateSpecs,
  Embedding,
  FullSoftmax,
  listVariables,
  ParallelTransformer,
  PositionalEmbedding,
  type SequenceInputs,
  SharedEmbeddingSoftmax,
  type SourceInputs,
  StackedTransformer,
  TrainablePositionalEmbedding,
  TransformerEncoderDecoder,
  TransformerLm,
} from '../../../src/layers/index.js';
import { expectClose, ints, randomTheta, run, stateOf, tensor } from '../helpers.js';

const [D, V] = [4, 6];
const stackTpl = () => StackedTransformer.config({ numLayers: 1, hiddenDims: 5, numHeads: 2 });

function encoderDecoder(values: Parameters<typeof TransformerEncoderDecoder.config>[0] = {}) {
  return TransformerEncoderDecoder.config({
    modelDims: D,
    encoderStackedTransformerTpl: stackTpl(),
    decoderStackedTransformerTpl: stackTpl(),
    softmaxTpl: SharedEmbeddingSoftmax.config({ numClasses: V }),
    ...values,
  });
}

const row = (...ids: number[]): Tensor => ints(ids, [1, ids.length]);

test('padding is seen by no token, and a packed row gives what its pairs give', () => {
  const plain = build(encoderDecoder());
  const theta = randomTheta(plain);
  const activations = (source: SequenceInputs, target: SequenceInputs, model = plain) =>
    run(theta, () => model.activations(source, target));
  const alone = activations({ ids: row(1, 2, 3) }, { ids: row(4, 5) });
  const padded = activations(
    { ids: row(1, 2, 3, 5, 0), paddings: tf.tensor2d([[0, 0, 0, 1, 1]]) as Tensor },
    { ids: row(4, 5, 3), paddings: tf.tensor2d([[0, 0, 1]]) as Tensor },
  );
  expectClose(tf.slice(padded, [0, 0, 0], [1, 2, D]), alone.dataSync());
  const other = activations({ ids: row(0, 4) }, { ids: row(2) });
  const packed = activations(
    { ids: row(1, 2, 3, 0, 4), segmentIds: row(1, 1, 1, 2, 2), segmentPos: row(0, 1, 2, 0, 1) },
    { ids: row(4, 5, 2), segmentIds: row(1, 1, 2), segmentPos: row(0, 1, 0) },
    build(encoderDecoder({ packedInput: true })),
  );
  expectClose(packed, [...alone.dataSync(), ...other.dataSync()]);
});

test('decodes as it trains', () => {
  const model = build(encoderDecoder());
  const theta = randomTheta(model);
  const source = { ids: row(1, 2, 3, 5), paddings: tf.tensor2d([[0, 0, 0, 1]]) as Tensor };
  const ids = [4, 5, 1];
  const whole = run(theta, () => {
    const { logits } = model.fprop(
      source,
      { ids: row(...ids) },
      { classIds: row(0, 0, 0), classWeights: tf.ones([1, 3]) },
    );
    return logits;
  });
  const decodeState = stateOf(decodeStateSpecs(model, 1, 3, 4));
  const steps = run(
    theta,
    () => {
      model.begin(source);
      return ids.map((id, t) => model.extendStep(ints([id], [1]), { timeStep: tf.scalar(t, 'int32') }));
    },
    { decodeState },
  );
  expectClose(tf.concat(steps), whole.dataSync());
});

test('a source of features goes through a stem, in a decode too, and its padding is seen by none', () => {
  const config = encoderDecoder({ encoderStemTpl: ConvolutionalStem.config({ inputDims: 3 }) });
  const model = build(config);
  const theta = randomTheta(model);
  const features = tensor([1, 5, 3]);
  const [target, timeStep] = [{ ids: row(4, 5, 1) }, tf.scalar(0, 'int32') as Tensor];
  const labels = { classIds: row(0, 0, 0), classWeights: tf.ones([1, 3]) as Tensor };
  const logits = (source: SourceInputs) => run(theta, () => model.fprop(source, target, labels).logits);
  const alone = logits({ features });
  // One frame of the output is of padding alone, and one has a frame of padding beside the last.
  const padded = {
    features: tf.concat([features, tf.fill([1, 3, 3], Number.NaN)], 1) as Tensor,
    paddings: tf.tensor2d([[0, 0, 0, 0, 0, 1, 1, 1]]) as Tensor,
  };
  expectClose(logits(padded), alone.dataSync());
  expect(model.encodedLength(8)).toBe(4);
  const decodeState = stateOf(decodeStateSpecs(model, 1, 3, 4));
  const decode = () => {
    model.begin(padded);
    return model.extendStep(target.ids, { timeStep });
  };
  expectClose(run(theta, decode, { decodeState }), alone.dataSync());
  expect(() => logits({ ids: row(1, 2) })).toThrow(
    'model (TransformerEncoderDecoder): the source lacks features, which encoderStemTpl reads.',
  );
  config.packedInput = true;
  expect(() => build(config)).toThrow(
    'model (TransformerEncoderDecoder): encoderStemTpl is set: features have no segments, which packedInput reads.',
  );
});

test('each half may have embeddings and positions of its own', () => {
  const config = encoderDecoder({
    positionEmbTpl: null,
    encoderPositionEmbTpl: TrainablePositionalEmbedding.config({ maxSeqLength: 7 }),
    decoderPositionEmbTpl: PositionalEmbedding.config(),
    encoderEmbeddingTpl: Embedding.config({ numClasses: 9 }),
    decoderEmbeddingTpl: Embedding.config({ numClasses: V }),
    softmaxTpl: FullSoftmax.config({ numClasses: V }),
  });
  const model = build(config);
  const shapes = listVariables(model).filter(({ path }) => /embedding|position/.test(path));
  expect(shapes.map(({ path, shape }) => `${path} [${shape}]`)).toEqual([
    'encoder_position_emb/emb_var [7,4]',
    'encoder_embedding_lookup/emb_var [9,4]',
    'decoder_embedding_lookup/emb_var [6,4]',
  ]);
  const source = { ids: row(8, 7) };
  const activations = run(randomTheta(model), () => model.activations(source, { ids: row(1) }));
  expect(activations.shape).toEqual([1, 1, D]);
  config.positionEmbTpl = PositionalEmbedding.config();
  expect(() => build(config)).toThrow(
    'model (TransformerEncoderDecoder): positionEmbTpl is set, and so are positions of one half: set one or the other.',
  );
  const untied = encoderDecoder({ softmaxTpl: FullSoftmax.config({ numClasses: V }) });
  expect(() => build(untied)).toThrow(
    "model (TransformerEncoderDecoder): softmaxTpl is a FullSoftmax, which can't embed tokens",
  );
});

test('in a prefix model tokens see the whole prefix, and those before them', () => {
  const config = TransformerLm.config({ vocabSize: V, modelDims: D, modelType: 'prefix' });
  config.stackedTransformerTpl = stackTpl();
  const model = build(config);
  const theta = randomTheta(model);
  const logits = (ids: Tensor, prefix: number[]) =>
    run(theta, () =>
      model.logits({ ids, inputsIndicator: tf.tensor2d([prefix]) as Tensor }),
    ).arraySync() as number[][][];
  const prefix = [1, 1, 1, 0, 0];
  const at = (place: number, id: number): number[] =>
    [1, 2, 3, 4, 5].map((other, i) => (i === place ? id : other));
  const plain = logits(row(1, 2, 3, 4, 5), prefix);
  const changed = (place: number) => {
    const other = logits(row(...at(place, 0)), prefix);
    return plain[0]!.map((values, i) => values.some((v, j) => Math.abs(v - other[0]![i]![j]!) > 1e-6));
  };
  expect(changed(2)).toEqual([true, true, true, true, true]);
  expect(changed(3)).toEqual([false, false, false, true, true]);
  // A later 1 is no part of the prefix.
  expect(logits(row(1, 2, 3, 4, 5), [1, 1, 1, 0, 1])).toEqual(plain);
  expect(() => run(theta, () => model.logits({ ids: row(1) }))).toThrow(
    "modelType is 'prefix', and the batch lacks inputsIndicator.",
  );
  config.packedInput = true;
  expect(() => build(config)).toThrow(
    "modelType is 'prefix', and packedInput is set: a prefix leads a row, not a segment.",
  );
});

test.each([true, false])('attention and feed-forward side by side, with one norm: %s', (useSharedNorm) => {
  const layer = build(
    ParallelTransformer.config({ inputDims: D, hiddenDims: 5, numHeads: 2, useSharedNorm }),
  );
  const theta = randomTheta(layer);
  const x = tensor([2, 3, D]);
  const part = (name: string) => layer.children.get(name)! as never as { fprop(...args: unknown[]): Tensor };
  const seen = { causal: true };
  const expected = run(theta, () => {
    const normed = part('layer_norm').fprop(x);
    const fed = part('ff_layer').fprop(useSharedNorm ? normed : x);
    return tf.addN([x, part('self_attention').fprop(normed, { seen }), fed]) as Tensor;
  });
  expectClose(
    run(theta, () => layer.fprop(x, { seen })),
    expected.dataSync(),
  );
  expect(layer.children.get('ff_layer')!.variables.size + listVariables(layer).length).toBe(
    useSharedNorm ? 15 : 17,
  );
  expect(() =>
    build(ParallelTransformer.config({ inputDims: D, hiddenDims: 5, normPolicy: 'post' })),
  ).toThrow("useSharedNorm is set, and normPolicy is 'post': expected 'pre'.");
});

test('stochastic depth grows with the layer, and drops whole sequences', () => {
  const stack = build(
    StackedTransformer.config({
      ...{ numLayers: 4, modelDims: D, hiddenDims: 5 },
      residualDroppathProb: 0.8,
    }),
  );
  const survival = [...stack.children.values()].flatMap((layer) => {
    const droppath = layer.children.get('residual_droppath');
    return droppath ? [(droppath as never as { hp: { survivalProb: number } }).hp.survivalProb] : [];
  });
  expect(survival.map((p) => p.toFixed(6))).toEqual(['0.800000', '0.600000', '0.400000']);
  const x = tensor([64, 1, D]);
  const last = [...stack.children.values()].at(-1)!;
  const theta = randomTheta(stack);
  const outputs = run(theta, () => (last as never as { fprop(x: Tensor): Tensor }).fprop(x), {
    prngKey: ints([1, 2], [2]),
  });
  const unchanged = tf.sum(tf.cast(tf.all(tf.equal(outputs, x), [1, 2]), 'int32')).dataSync()[0]!;
  // Attention and feed-forward are both dropped with 0.6 · 0.6.
  expect(unchanged).toBeGreaterThan(10);
  expect(unchanged).toBeLessThan(40);
});
