/** @file SequenceModel: Pax's figures, metrics by hand, decoding, agreement with inputs. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import {
  SharedEmbeddingSoftmax,
  StackedTransformer,
  TransformerEncoderDecoder,
} from '../../src/layers/index.js';
import { SequenceModel } from '../../src/models/index.js';
import { given } from '../layers/engineComparison.js';
import { expectClose, ints, randomTheta, run, stateOf } from '../layers/helpers.js';
import { gradientNorm, parameterCount, sineTheta } from '../layers/sineFill.js';

const [V, SOURCE, TARGET] = [12, 5, 4];

/** A network of two layers each and depth 16, as it is published. */
const network = (numLayers = 2, modelDims = 16, hiddenDims = 64) => {
  const stack = () => StackedTransformer.config({ numLayers, hiddenDims, numHeads: 2 });
  return TransformerEncoderDecoder.config({
    modelDims,
    encoderStackedTransformerTpl: stack(),
    decoderStackedTransformerTpl: stack(),
    softmaxTpl: SharedEmbeddingSoftmax.config({ numClasses: V, scaleSqrtDepth: true }),
  });
};

const sineIds = (length: number): number[] => Array.from({ length }, (_, i) => (7 * i + 3) % V);
const TARGETS = sineIds(2 * (TARGET + 1));
const rows = (begin: number): number[] =>
  [0, 1].flatMap((b) => TARGETS.slice(b * 5 + begin, b * 5 + begin + 4));
const fixed = (): Record<string, Tensor> => ({
  'src.paddings': tf.tensor2d([0, 0, 0, 0, 1, 0, 0, 0, 0, 0], [2, SOURCE]),
  'tgt.paddings': tf.tensor2d([0, 0, 0, 0, 0, 0, 0, 1], [2, TARGET]),
  'tgt.weights': tf.tensor2d([1, 1, 1, 1, 1, 1, 1, 0], [2, TARGET]),
});
const ids = {
  'src.ids': given('int32', sineIds(2 * SOURCE), [2, SOURCE]),
  'tgt.ids': given('int32', rows(0), [2, TARGET]),
  'tgt.labels': given('int32', rows(1), [2, TARGET]),
};
const batch = () => {
  const array = (path: keyof typeof ids): Tensor => ints([...ids[path].data], ids[path].shape);
  const { 'src.paddings': sourcePaddings, 'tgt.paddings': paddings, 'tgt.weights': weights } = fixed();
  return {
    src: { ids: array('src.ids'), paddings: sourcePaddings },
    tgt: { ids: array('tgt.ids'), labels: array('tgt.labels'), paddings, weights },
  } as never;
};

test('parameters, loss and gradient that Pax publishes', () => {
  const model = build(SequenceModel.config({ modelTpl: network() }));
  expect(parameterCount(model)).toBe(15_676);
  const theta = sineTheta(model);
  const lossOf = (values: Record<string, Tensor>) =>
    run(values, () => model.fprop(batch())[0].total_loss!, { doEval: true });
  const [loss, weight] = lossOf(theta).map((x) => x.dataSync()[0]!);
  expect(loss).toBeCloseTo(2.481028, 5);
  expect(weight).toBe(7);
  expect(gradientNorm(theta, (values) => lossOf(values)[0])).toBeCloseTo(1.347424, 4);
});

test('labels are smoothed in the loss; scores are sums over targets', () => {
  const plain = build(SequenceModel.config({ modelTpl: network(1, 4, 5), returnPredictions: true }));
  const theta = randomTheta(plain);
  const [metrics, perExample] = run(theta, () => plain.fprop(batch()));
  const logProbs = tf.logSoftmax(perExample.logits!).arraySync() as number[][][];
  const labels = [rows(1).slice(0, 4), rows(1).slice(4)];
  const smoothed = (prob: number) => {
    let sum = 0;
    for (const [b, row] of labels.entries())
      for (const [t, label] of row.entries()) {
        if (b === 1 && t === 3) continue;
        const all = logProbs[b]![t]!;
        const others = all.reduce((total, x) => total + x, 0) - all[label]!;
        sum -= (1 - prob) * all[label]! + (prob / (V - 1)) * others;
      }
    return sum / 7;
  };
  expectClose(metrics.avg_xent![0], [smoothed(0)]);
  const score = (b: number, count: number) =>
    labels[b]!.slice(0, count).reduce((sum, label, t) => sum + logProbs[b]![t]![label]!, 0);
  expectClose(perExample.scores!, [score(0, 4), score(1, 3)]);
  expect(Object.keys(perExample)).toEqual(['labels', 'scores', 'logits', 'predicted_ids']);
  const smooth = build(SequenceModel.config({ modelTpl: network(1, 4, 5), labelSmoothingProb: 0.25 }));
  const [{ total_loss }] = run(theta, () => smooth.fprop(batch()));
  expectClose(total_loss![0], [smoothed(0.25)]);
});

test('decodes as it trains', () => {
  const model = build(SequenceModel.config({ modelTpl: network(1, 4, 5) }));
  const theta = randomTheta(model);
  const { src, tgt } = batch() as Record<'src' | 'tgt', Record<string, Tensor>>;
  const whole = run(theta, () => model.computePredictions(batch()).logits);
  const prompt = { 'src.ids': src.ids!, 'src.paddings': src.paddings! };
  const decodeState = stateOf(model.initialDecodeState(2, TARGET, prompt as never));
  const steps = run(
    theta,
    () => {
      model.begin(prompt);
      return [0, 1, 2, 3].map((t) =>
        model.extendStep(tf.reshape(tf.slice(tgt.ids!, [0, t], [2, 1]), [2]), {
          timeStep: tf.scalar(t, 'int32'),
        }),
      );
    },
    { decodeState },
  );
  // The last target of row 1 is padding, which the decoder does not see.
  expectClose(
    tf.slice(tf.stack(steps, 1), [0, 0, 0], [2, 3, V]),
    tf.slice(whole, [0, 0, 0], [2, 3, V]).dataSync(),
  );
});

test('arrays that a batch lacks are named', () => {
  const model = build(SequenceModel.config({ modelTpl: network(1, 4, 5) }));
  const { src } = batch() as Record<string, Record<string, Tensor>>;
  const { labels: _, ...tgt } = batch()['tgt' as never] as Record<string, Tensor>;
  const lacking = { src, tgt } as never;
  expect(() => run(randomTheta(model), () => model.fprop(lacking))).toThrow(
    "model (SequenceModel): the batch has no 'tgt.labels'. It has: src.ids, src.paddings, tgt.ids, tgt.paddings, tgt.weights.",
  );
});
