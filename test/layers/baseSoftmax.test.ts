/** @file Softmax layers in chunks and whole: values, gradients, engines. */
import { describe, expect, test } from 'vitest';
import { compile, type HostTensor, type Tensor, tf, valueAndGrad } from '../../src/compiler/index.js';
import { optimize } from '../../src/compiler/passes/index.js';
import { traceProgram } from '../../src/compiler/trace/tracedProgram.js';
import { build, type Config } from '../../src/hparams/index.js';
import {
  type AuxLoss,
  type BaseSoftmax,
  BiTemperedLoss,
  FullSoftmax,
  GShardSharedEmbeddingSoftmax,
  NClassMajorSharedEmbeddingSoftmax,
  SharedEmbeddingSoftmax,
  SigmoidCrossEntropy,
  type SoftmaxOutput,
} from '../../src/layers/index.js';
import { checkLayers, layerCase } from './contract.js';
import { floats, ids } from './engineComparison.js';
import { expectClose, ints, randomTheta, run, tensor } from './helpers.js';

const [DIMS, CLASSES] = [3, 7];
const dims = { inputDims: DIMS, numClasses: CLASSES };
const all = { softCapLogits: 2, labelSmoothingProb: 0.2, zLossWeight: 0.1 };
const biTempered = { biTemperedLossTpl: BiTemperedLoss.config({ t1: 0.7, t2: 1.3, labelSmoothing: 0.1 }) };

/** A layer's config by the size of its chunks. */
const softmaxes: Readonly<Record<string, (chunkSize: number) => Config<BaseSoftmax>>> = {
  FullSoftmax: (chunkSize) => FullSoftmax.config({ ...dims, ...all, chunkSize }),
  SharedEmbeddingSoftmax: (chunkSize) => SharedEmbeddingSoftmax.config({ ...dims, chunkSize }),
  NClassMajorSharedEmbeddingSoftmax: (chunkSize) =>
    NClassMajorSharedEmbeddingSoftmax.config({ ...dims, ...all, chunkSize }),
  GShardSharedEmbeddingSoftmax: (chunkSize) =>
    GShardSharedEmbeddingSoftmax.config({ ...dims, ...all, logitsAbsMax: 0.3, chunkSize }),
  SigmoidCrossEntropy: (chunkSize) =>
    SigmoidCrossEntropy.config({ ...dims, softCapLogits: 2, labelSmoothingProb: 0.2, chunkSize }),
  'FullSoftmax with the bi-tempered loss': (chunkSize) =>
    FullSoftmax.config({ ...dims, ...biTempered, labelSmoothingProb: 0.2, chunkSize }),
};

/** Five positions, one of weight 0. */
const inputs = { x: floats([5, DIMS], 1, 2), ids: ids([5], CLASSES) };
const weights = () => tf.tensor1d([1, 0.5, 0, 2, 1]);

/** The training loss: avgXent and the z-loss. */
const loss = (layer: BaseSoftmax, { x, ids }: Readonly<Record<string, Tensor>>): Tensor => {
  const { avgXent } = layer.fprop(x!, weights(), ids!);
  return layer.context.auxLosses.reduce((sum: Tensor, { value }: AuxLoss) => tf.add(sum, value), avgXent);
};

checkLayers(
  'softmaxes',
  Object.entries(softmaxes).flatMap(([title, config]) =>
    [0, 2].map((chunkSize) =>
      layerCase({
        ...{ title: `${title}, chunks of ${chunkSize}`, config: config(chunkSize), inputs, call: loss },
        ...{ rowsApart: false, doEval: title.includes('bi-tempered') },
      }),
    ),
  ),
);

describe.each(Object.entries(softmaxes))('%s', (_, config) => {
  test('gives the same in chunks of any size, for positions of any rank', () => {
    const whole = build(config(0));
    const theta = randomTheta(whole);
    const [x, classIds] = [tensor([2, 3, DIMS], 3), ints([0, 6, 3, 3, 1, 2], [2, 3])];
    const weights = tf.tensor2d([
      [1, 0, 0.5],
      [2, 1, 1],
    ]);
    const expected = run(theta, () => whole.fprop(x, weights, classIds));
    for (const chunkSize of [1, 4, 6, 100]) {
      const output = run(theta, () => build(config(chunkSize)).fprop(x, weights, classIds));
      for (const [name, value] of Object.entries(expected)) {
        const made = output[name as keyof typeof output];
        expect(made.shape, name).toEqual(value.shape);
        expectClose(made, value.dataSync());
      }
    }
  });

  test('has losses of 0 for a batch without positions, and for one of padding that is not finite', () => {
    for (const chunkSize of [0, 2]) {
      const layer = build(config(chunkSize));
      const theta = randomTheta(layer);
      const empty = run(theta, () => layer.fprop(tf.zeros([0, DIMS]), tf.zeros([0]), ints([], [0])));
      expect(empty.avgXent.dataSync()[0]).toBe(0);
      const padding = tf.fill([3, DIMS], Number.NaN);
      const padded = run(theta, () => layer.fprop(padding, tf.zeros([3]), ints([0, 1, 2], [3])));
      expect(padded.avgXent.dataSync()[0]).toBe(0);
    }
  });
});

describe('the gradient of a softmax in chunks', () => {
  type Loss = (output: SoftmaxOutput, zLoss: Tensor) => Tensor;
  const theta = randomTheta(build(FullSoftmax.config(dims)));
  const gradientOf = (of: Loss, chunkSize: number) => {
    const layer = build(FullSoftmax.config({ ...dims, zLossWeight: 0.1, chunkSize }));
    return (x: Tensor) => {
      const loss = (x: Tensor) => {
        const auxLosses: AuxLoss[] = [];
        const call = () => layer.fprop(x, weights(), ints([1, 2, 3, 4, 5], [5]));
        const output = run(theta, call, { auxLosses });
        return { value: of(output, auxLosses[0]!.value), aux: {} };
      };
      const { value, grads } = valueAndGrad(loss, x);
      return { value, grads };
    };
  };
  const spec = { shape: [5, DIMS], dtype: 'float32' } as const;
  const losses: Readonly<Record<string, { readonly of: Loss; readonly loops: number }>> = {
    'is made in one pass for the sum of both losses': {
      of: ({ avgXent }, zLoss) => tf.mul(tf.add(avgXent, zLoss), 3),
      loops: 1,
    },
    'is that of a loss that weighs the z-loss otherwise': {
      of: ({ avgXent }, zLoss) => tf.add(avgXent, tf.mul(zLoss, 2)),
      loops: 2,
    },
    'is that of a loss without the z-loss': { of: ({ avgXent }) => avgXent, loops: 2 },
    'is that of a loss of positions': {
      of: ({ avgXent, perExampleXent }, zLoss) =>
        tf.add(tf.add(avgXent, zLoss), tf.sum(tf.square(perExampleXent))),
      loops: 2,
    },
  };
  test.each(Object.entries(losses))('%s', async (_, { of, loops }) => {
    const program = await compile(gradientOf(of, 2) as never, spec as never, { engine: 'onnx' });
    const made = (await program.run(inputs.x as never)) as unknown as { grads: HostTensor };
    await program.dispose();
    const { grads } = gradientOf(of, 0)(tf.tensor(inputs.x.data, [5, DIMS]));
    expectClose(tf.tensor(made.grads.data, [5, DIMS]), grads.dataSync());
    const { graph } = traceProgram(gradientOf(of, 2) as never, spec as never);
    expect(optimize(graph).nodes.filter(({ op }) => op === 'Scan')).toHaveLength(loops);
  });
});

test('target probabilities take the place of labels, without smoothing', () => {
  const layer = build(FullSoftmax.config({ ...dims, labelSmoothingProb: 0.2 }));
  const plain = build(FullSoftmax.config(dims));
  const theta = randomTheta(layer);
  const [x, one] = [tensor([2, DIMS]), tf.ones([2])];
  const labels = tf.oneHot(tf.tensor1d([4, 0], 'int32'), CLASSES, 1, 0, 'float32');
  const given = run(theta, () => layer.fprop(x, one, null, labels));
  const known = run(theta, () => plain.fprop(x, one, ints([4, 0], [2])));
  expectClose(given.perExampleXent, known.perExampleXent.dataSync());
  expect(() => run(theta, () => layer.fprop(x, one, null))).toThrow(
    'model (FullSoftmax): expected classIds or classProbabilities, got neither.',
  );
});

test('GShardSharedEmbeddingSoftmax scales inputs, smooths over all classes in training, divides by positions', () => {
  const layer = build(GShardSharedEmbeddingSoftmax.config({ ...dims, labelSmoothingProb: 0.3 }));
  const theta = randomTheta(layer);
  const w = theta['embedding/w']!;
  expect(w.shape).toEqual([CLASSES, DIMS]);
  const x = tensor([2, DIMS]);
  const classWeights = tf.tensor1d([1, 0]);
  const logits = tf.matMul(tf.div(x, Math.sqrt(DIMS)), w, false, true);
  const logProbs = tf.logSoftmax(logits).dataSync();
  const smooth = -Array.from(
    { length: CLASSES },
    (_, c) => logProbs[c]! * (0.3 / CLASSES + (c === 2 ? 0.7 : 0)),
  ).reduce((a, b) => a + b);
  const lossIn = (doEval: boolean) =>
    run(theta, () => layer.fprop(x, classWeights, ints([2, 0], [2])), { doEval });
  expectClose(lossIn(false).avgXent, [smooth / 2]);
  expectClose(lossIn(true).avgXent, [-logProbs[2]! / 2]);
  expectClose(lossIn(true).avgXentWeight, [2]);
  expectClose(
    run(theta, () => layer.embLookup(ints([6], [1]))),
    [...w.dataSync()].slice(6 * DIMS),
  );
});

test('SigmoidCrossEntropy sums over classes, with weights of classes too', () => {
  const layer = build(SigmoidCrossEntropy.config({ inputDims: 3, numClasses: 3, feedForwardTpl: null }));
  const logits = [1.5, -2, 0.3, -0.7, 40, -40];
  const x = tf.tensor2d(logits, [2, 3]);
  const each = logits.map((logit, i) => {
    const isLabel = i === 1 || i === 3;
    return Math.log1p(Math.exp(isLabel ? -logit : logit));
  });
  const labels = ints([1, 0], [2]);
  const output = run({}, () => layer.fprop(x, tf.tensor1d([1, 0.5]), labels));
  const rows = [0, 3].map((i) => each[i]! + each[i + 1]! + each[i + 2]!);
  expectClose(output.perExampleXent, rows);
  expectClose(output.avgXent, [(rows[0]! + 0.5 * rows[1]!) / 1.5]);
  const ofClasses = [1, 0, 2, 0, 0, 0.5];
  const weighted = run({}, () => layer.fprop(x, tf.tensor2d(ofClasses, [2, 3]), labels));
  expectClose(weighted.totalWeight, [3.5]);
  expectClose(weighted.avgXent, [each.reduce((sum, value, i) => sum + value * ofClasses[i]!, 0) / 3.5]);
  expect(() => build(SigmoidCrossEntropy.config({ ...dims, zLossWeight: 1 }))).toThrow(
    'zLossWeight (SigmoidCrossEntropy): expected 0: sigmoids have no log-normaliser',
  );
  expect(() => build(SigmoidCrossEntropy.config({ ...dims, feedForwardTpl: null }))).toThrow(
    'inputDims (SigmoidCrossEntropy): expected numClasses (7), as feedForwardTpl is null',
  );
});
