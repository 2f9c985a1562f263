/** @file MaskedAutoencoder: masks, the loss by hand, what the encoder sees, bad settings. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build, validate } from '../../src/hparams/index.js';
import {
  imageToPatch,
  listVariables,
  StackedTransformer,
  TrainablePositionalEmbedding,
  VisionTransformer,
  VitEntryLayers,
  VitExitLayers,
} from '../../src/layers/index.js';
import { MaskedAutoencoder } from '../../src/models/index.js';
import { expectClose, ints, randomTheta, run, tensor } from '../layers/helpers.js';

const [B, SIZE, PATCH] = [2, 8, 2];
const [N, DEPTH] = [16, 4];
const stack = (modelDims: number) =>
  StackedTransformer.config({ numLayers: 1, modelDims, hiddenDims: 6, numHeads: 2 });
const config = (values: object = {}) =>
  MaskedAutoencoder.config({
    encoderTpl: VisionTransformer.config({
      entryLayersTpl: VitEntryLayers.config({
        ...{ posEmbShapes: [4, 4], patchSize: PATCH, inputDims: DEPTH, outputDims: 6 },
        posEmbTpl: TrainablePositionalEmbedding.config({ maxSeqLength: N }),
      }),
      transformerLayersTpl: stack(6),
      exitLayersTpl: VitExitLayers.config({ hiddenDim: 6, pooled: false, outputFcTanh: false }),
    }),
    decoderDims: 4,
    decoderPositionEmbTpl: TrainablePositionalEmbedding.config({ maxSeqLength: N }),
    decoderTpl: stack(4),
    ...values,
  });
const image = tensor([B, SIZE, SIZE, 1]);
const prngKey = ints([5, 6], [2]);

test('a share of the patches is hidden, another one for each row and key', () => {
  const model = build(config());
  const theta = randomTheta(model);
  const maskOf = (key: number[]): number[][] =>
    run(theta, () => model.computePredictions({ image }).mask, {
      prngKey: ints(key, [2]),
    }).arraySync() as never;
  const masks = [1, 2, 3].flatMap((i) => maskOf([1, i]));
  for (const mask of masks) expect(mask.reduce((sum, x) => sum + x, 0)).toBe(12);
  expect(new Set(masks.map(String)).size).toBe(6);
});

test.each([true, false])('the loss is that of hidden patches alone; normed: %s', (normPixLoss) => {
  const model = build(config({ normPixLoss }));
  const weights = tf.tensor1d([1, 3]) as Tensor;
  const [metrics, { patches, mask }] = run(randomTheta(model), () => model.fprop({ image, weights }), {
    prngKey,
  });
  const targets = (imageToPatch(image, PATCH).arraySync() as number[][][]).map((row) =>
    row.map((patch) => {
      if (!normPixLoss) return patch;
      const mean = patch.reduce((sum, x) => sum + x, 0) / DEPTH;
      const variance = patch.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (DEPTH - 1);
      return patch.map((x) => (x - mean) / Math.sqrt(variance + 1e-6));
    }),
  );
  const [predicted, hidden] = [patches!.arraySync() as number[][][], mask!.arraySync() as number[][]];
  const errors = (of: (b: number, n: number) => number[]) =>
    [0, 1].reduce((sum, b) => {
      const row = targets[b]!.reduce(
        (total, patch, n) =>
          total + hidden[b]![n]! * patch.reduce((s, x, k) => s + (x - of(b, n)[k]!) ** 2 / DEPTH, 0),
        0,
      );
      return sum + [1, 3][b]! * row;
    }, 0) / 48;
  expectClose(tf.stack([...metrics.total_loss!]), [errors((b, n) => predicted[b]![n]!), 48]);
  const meanOfVisible = (b: number) => {
    const visible = targets[b]!.filter((_, n) => hidden[b]![n] === 0);
    return visible[0]!.map((_, k) => visible.reduce((s, patch) => s + patch[k]!, 0) / visible.length);
  };
  expectClose(tf.stack([...metrics.baseline_mse!]), [errors(meanOfVisible), 48]);
});

test('predictions depend on patches that are seen, and on no others', () => {
  const model = build(config({ maskRatio: 0.5 }));
  const theta = randomTheta(model);
  const predictions = (images: Tensor) =>
    run(theta, () => model.computePredictions({ image: images }), { prngKey });
  const { patches, mask } = predictions(image);
  // Pixels of hidden patches of row 0 change, then those of seen ones.
  const changed = (isHidden: number): Tensor => {
    const data = Float32Array.from(image.dataSync());
    for (let y = 0; y < SIZE; y++)
      for (let x = 0; x < SIZE; x++) {
        const patch = Math.floor(y / PATCH) * 4 + Math.floor(x / PATCH);
        if (mask.dataSync()[patch] === isHidden) data[y * SIZE + x]! += 1;
      }
    return predictions(tf.tensor(data, image.shape) as Tensor).patches;
  };
  expectClose(changed(1), patches.dataSync());
  expect(tf.max(tf.abs(tf.sub(changed(0), patches))).dataSync()[0]).toBeGreaterThan(1e-3);
});

test('its encoder has the variables of a classifier’s network', () => {
  const model = build(config());
  const network = build(config().encoderTpl);
  const own = listVariables(model).flatMap(({ path }) =>
    path.startsWith('encoder/') ? [path.slice(8)] : [],
  );
  expect(own).toEqual(listVariables(network).map(({ path }) => path));
});

test('an encoder that pools, or has class tokens, is refused', () => {
  const wrong = config();
  Object.assign(wrong.encoderTpl.entryLayersTpl!, { prependClsTokens: 1 });
  Object.assign(wrong.encoderTpl.exitLayersTpl!, { pooled: true });
  expect(validate(wrong).map((problem) => String(problem).replace(/ \(at .*/, ''))).toEqual([
    'encoderTpl.entryLayersTpl.prependClsTokens (MaskedAutoencoder): expected 0; encoderTpl.entryLayersTpl.prependClsTokens is 1',
    'encoderTpl.exitLayersTpl.pooled (MaskedAutoencoder): expected false: the decoder reads tokens; ' +
      'encoderTpl.exitLayersTpl.pooled is true',
  ]);
});
