/** @file Losses of video autoencoders: by plain numbers, gradients of second order, engines, rows without weight. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import {
  BaseLayer,
  Linear,
  r1GradientPenalty,
  Tanh,
  VQGANLoss,
  type VQGANLosses,
} from '../../../src/layers/index.js';
import { checkLayers, layerCase } from '../contract.js';
import { floats } from '../engineComparison.js';
import { expectClose, run, tensor } from '../helpers.js';

/** The penalty of a discriminator of two layers, and its logits, in one sum. */
class Penalised extends BaseLayer {
  #layers!: readonly (Linear | Tanh)[];

  protected override setup(): void {
    this.#layers = [
      this.createChild('inner', Linear.config({ inputDims: 3, outputDims: 4 })),
      this.createChild('tanh', Tanh.config()),
      this.createChild('outer', Linear.config({ inputDims: 4, outputDims: 1 })),
    ];
  }

  logits(x: Tensor): Tensor {
    return this.#layers.reduce((y, layer) => layer.fprop(y), x);
  }

  fprop(x: Tensor): Tensor {
    const { logits, penalty } = r1GradientPenalty(x, (inputs) => this.logits(inputs), 2);
    return tf.concat([logits, tf.expandDims(penalty, 1)], 1);
  }
}

const videos = [2, 1, 2, 1, 3];
const predictionsOf = (inputs: Readonly<Record<string, Tensor>>) => ({
  reconstructed: inputs.reconstructed!,
  logitsReal: inputs.real!,
  logitsFake: inputs.fake!,
  r1GradientPenalty: inputs.penalty!,
  quantizerLoss: tf.sum(inputs.quantizer!),
});

checkLayers('losses of videos', [
  layerCase({
    title: 'the gradient penalty',
    config: Penalised.config(),
    inputs: { x: floats([2, 3]) },
    call: (layer, { x }) => layer.fprop(x!),
  }),
  layerCase({
    title: 'VQGANLoss',
    config: VQGANLoss.config({ polyakDecay: 0.6, lecamWeight: 2 }),
    inputs: {
      ...{ video: floats(videos, 3), reconstructed: floats(videos, 4), quantizer: floats([2], 5) },
      ...{ real: floats([2, 1], 6), fake: floats([2, 1], 7), penalty: floats([2], 8) },
    },
    call: (layer, inputs) => {
      const { dLoss, gLoss } = layer.fprop(predictionsOf(inputs), inputs.video!);
      return tf.stack([dLoss, gLoss]) as Tensor;
    },
    variables: { ema_real_pred: [], ema_fake_pred: [] },
    rowsApart: false,
  }),
]);

test('the penalty is the squared length of the gradient by the inputs', () => {
  const x = tensor([2, 3]);
  // Of x² + 3 y: (2 x, 3).
  const { penalty } = r1GradientPenalty(x, (inputs) => {
    const [a, b] = tf.split(inputs, [1, 2], 1) as [Tensor, Tensor];
    return tf.add(tf.square(a), tf.mul(tf.sum(b, 1, true), 3));
  });
  const values = x.dataSync();
  expectClose(
    penalty,
    [0, 3].map((i) => 10 * (4 * values[i]! ** 2 + 18)),
  );
});

const softplus = (x: number): number => Math.log1p(Math.exp(x));
const square = (x: number): number => Math.max(0, x) ** 2;

test('losses by plain numbers; rows of weight 0 have no part, whatever they hold', () => {
  const layer = build(VQGANLoss.config({ lecamWeight: 0.5, polyakDecay: 0.75 }));
  const theta = { ema_real_pred: tf.scalar(-1), ema_fake_pred: tf.scalar(2) };
  const column = (...values: number[]): Tensor => tf.tensor2d(values, [values.length, 1]);
  const inputs = {
    reconstructed: tf.tensor5d([1, 2, Number.NaN, 0], [2, 1, 1, 2, 1]) as Tensor,
    real: column(3, Number.NaN),
    fake: column(-2, 7),
    penalty: tf.tensor1d([0.25, Number.POSITIVE_INFINITY]) as Tensor,
    quantizer: tf.tensor1d([0.125]) as Tensor,
  };
  const video = tf.tensor5d([1.5, 1, 9, 9], [2, 1, 1, 2, 1]) as Tensor;
  const losses = (doEval: boolean, updatedVars: Record<string, Tensor> = {}): VQGANLosses =>
    run(theta, () => layer.fprop(predictionsOf(inputs), video), {
      ...{ doEval, updatedVars, rowWeights: tf.tensor1d([1, 0]) as Tensor },
    });
  const [real, fake] = [-0.75 + 0.25 * 3, 0.75 * 2 - 0.25 * 2];
  const expected = {
    gradPenalty: 0.25,
    lecamLoss: 0.5 * (square(3 - fake) + square(real + 2)),
    dAdversarialLoss: softplus(-3) + softplus(-2),
    gAdversarialLoss: 0.1 * softplus(2),
    reconstructionLoss: (5 * (0.25 + 1)) / 2,
    quantizerLoss: 0.125,
  };
  const { gradPenalty, lecamLoss, dAdversarialLoss, ...ofAutoencoder } = expected;
  const sum = (...values: number[]): number => values.reduce((a, b) => a + b);
  const all = {
    ...expected,
    dLoss: sum(gradPenalty, lecamLoss, dAdversarialLoss),
    gLoss: sum(...Object.values(ofAutoencoder)),
  };
  const numbers = (of: VQGANLosses) =>
    Object.fromEntries(Object.entries(of).map(([name, x]: [string, Tensor]) => [name, x.dataSync()[0]]));
  const close = (of: Record<string, number>) =>
    Object.fromEntries(Object.entries(of).map(([name, x]) => [name, expect.closeTo(x, 5)]));
  const updatedVars: Record<string, Tensor> = {};
  expect(numbers(losses(false, updatedVars))).toEqual(close(all));
  expectClose(updatedVars.ema_real_pred!, [real]);
  expectClose(updatedVars.ema_fake_pred!, [fake]);
  expect(numbers(losses(true))).toEqual(close({ ...all, quantizerLoss: 0, gLoss: all.gLoss - 0.125 }));
});

test('videos of another shape', () => {
  const layer = build(VQGANLoss.config());
  const theta = { ema_real_pred: tf.scalar(0), ema_fake_pred: tf.scalar(0) };
  const made = { reconstructed: tensor([1, 1, 1, 1, 3]), real: tensor([1, 1]), fake: tensor([1, 1]) };
  const predictions = predictionsOf({ ...made, penalty: tensor([1]), quantizer: tensor([1]) });
  expect(() => run(theta, () => layer.fprop(predictions, tensor([1, 2, 1, 1, 3])))).toThrow(
    'model (VQGANLoss): expected videos [1, 2, 1, 1, 3], got [1, 1, 1, 1, 3].',
  );
});
