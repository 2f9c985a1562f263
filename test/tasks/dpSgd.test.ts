/** @file DP-SGD in a training step: gradients of single rows bounded, their plain mean, noise of the step's key. */
import { expect, test } from 'vitest';
import { compile, type HostTensor, type TensorSpec, type Tree, tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import { Constant } from '../../src/layers/index.js';
import {
  DpSgdStochasticGradient,
  Learner,
  PerLayerDpSgdStochasticGradient,
  Sgd,
} from '../../src/learners/index.js';
import { BaseModel, type TensorBatch } from '../../src/models/index.js';
import { SingleTask, Train, trainStep } from '../../src/tasks/index.js';

const size = 2048;

/** A loss of each row whose gradient is its number, at two weights of one and of many elements. */
class Rows extends BaseModel {
  protected override setup(): void {
    const init = build(Constant.config({ scale: 0 }));
    this.createVariable('one', { shape: [1], init });
    this.createVariable('many', { shape: [size], init });
  }
  override computePredictions({ x }: TensorBatch) {
    const sum = tf.add(tf.sum(this.getVar('one')), tf.sum(this.getVar('many')));
    return tf.mul(x as never, sum);
  }
  override computeLoss = this.loss((losses, { weights }) => {
    const total = tf.sum(weights!);
    return [{ total_loss: [tf.div(tf.sum(tf.mul(losses, weights!)), total), total] }, {}];
  });
}

interface Outputs {
  readonly grads: Record<'one' | 'many', HostTensor>;
  readonly summaries: Record<string, HostTensor>;
}

async function stepOf(stochasticGradient: Learner['hp']['stochasticGradient'] | object) {
  const learner = Learner.config({
    ...{ optimizer: Sgd.config({ learningRate: 1 }), stochasticGradient: stochasticGradient as never },
  });
  const task = build(
    SingleTask.config({ model: Rows.config(), train: Train.config({ learner, numSubBatches: 4 }) }),
  );
  const zeros = (length: number) => ({ shape: [length], dtype: 'float32', data: new Float32Array(length) });
  const inputs = {
    params: { one: zeros(1), many: zeros(size) },
    batch: {
      // The last row is padding; weights within the others do not count.
      x: { shape: [4], dtype: 'float32', data: Float32Array.of(0.001, -3, 5, 7) },
      weights: { shape: [4], dtype: 'float32', data: Float32Array.of(1, 2, 3, 0) },
    },
    prngKey: { shape: [2], dtype: 'int32', data: Int32Array.of(1, 2) },
  } as unknown as Tree<HostTensor>;
  const executable = await compile(trainStep(task), inputs as Tree<TensorSpec>, {
    engine: 'onnx',
    numThreads: 1,
  });
  const run = async (key: number) => {
    const prngKey = { shape: [2], dtype: 'int32', data: Int32Array.of(1, key) };
    const { grads, summaries } = (await executable.run({
      ...(inputs as object),
      prngKey,
    } as never)) as unknown as Outputs;
    return {
      one: grads.one.data[0]!,
      many: Float32Array.from(grads.many.data as Float32Array),
      clipped: summaries['dp_metrics/frac_clipped']!.data[0]!,
    };
  };
  return { run, dispose: () => executable.dispose() };
}

test('the gradient of each row is bounded before their plain mean, over all variables or each', async () => {
  const norm = Math.sqrt(1 + size);
  const plain = await stepOf(DpSgdStochasticGradient.config({ l2NormClip: 2, normalizeGradients: true }));
  const { one, many, clipped } = await plain.run(2);
  // Rows of -3 and 5 have the bound's norm; the small one stays, padding has none.
  const mean = (0.001 / 2 - 1 / norm + 1 / norm) / 4;
  expect(one).toBeCloseTo(mean, 8);
  expect(many[7]).toBeCloseTo(mean, 8);
  // By weight, 5 of 6.
  expect(clipped).toBeCloseTo(5 / 6, 6);
  await plain.dispose();
  const layers = await stepOf(PerLayerDpSgdStochasticGradient.config({ l2NormClip: 2 }));
  const each = await layers.run(2);
  expect(each.one).toBeCloseTo((0.001 - Math.SQRT2 + Math.SQRT2) / 4, 7);
  await layers.dispose();
});

test('noise of the step key alone, as wide as multiplier times bound over rows', async () => {
  const noisy = await stepOf(DpSgdStochasticGradient.config({ l2NormClip: 0.5, noiseMultiplier: 3 }));
  const [first, again, other] = [await noisy.run(2), await noisy.run(2), await noisy.run(3)];
  expect(again.many).toEqual(first.many);
  expect(other.many).not.toEqual(first.many);
  const deviation = Math.sqrt(first.many.reduce((sum, x) => sum + x * x, 0) / size);
  const expected = (3 * 0.5) / 4;
  expect(Math.abs(deviation / expected - 1)).toBeLessThan(0.08);
  await noisy.dispose();
});

test('epsilon where the number of examples is known, and settings that clash', () => {
  const config = { l2NormClip: 1, noiseMultiplier: 1.1 };
  expect(build(DpSgdStochasticGradient.config(config)).epsilonAt(10, 256)).toBeUndefined();
  const known = build(DpSgdStochasticGradient.config({ ...config, numExamples: 60_000 }));
  // 60 epochs of MNIST, opacus's figure; 2.92 by the older conversion of TensorFlow Privacy's tutorial.
  expect(known.epsilonAt(14_063, 256)).toBeCloseTo(2.59666, 5);
  const stochasticGradient = DpSgdStochasticGradient.config(config);
  const optimizer = Sgd.config({ learningRate: 1 });
  expect(() =>
    build(Learner.config({ optimizer, stochasticGradient, clipSubBatchGradientNormToValue: 1 })),
  ).toThrow(
    'Learner: stochasticGradient clips the gradients of sub-batches itself: leave clipSubBatchGradientNormToValue 0.',
  );
});
