/** @file Checkpoint policies by name over blocks that are no transformers. */
import { expect, test } from 'vitest';
import { costAnalysis, type Tensor, tf, valueAndGrad } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import { listVariables, Repeat, UNetDownBlock } from '../../src/layers/index.js';
import { run } from './helpers.js';

function peakOf(checkpointPolicy: 'SAVE_NOTHING' | 'SAVE_UNET_CONV' | 'SAVE_UNET_ALL_CONV'): number {
  const subTpl = UNetDownBlock.config({ inputDim: 8, outputDim: 8, downsample: false });
  const layer = build(Repeat.config({ subTpl, xTimes: 4, checkpointPolicy }));
  const theta = Object.fromEntries(
    listVariables(layer).map(({ path, shape, dtype }) => [path, { shape, dtype }]),
  );
  const loss = (x: Tensor) => (theta: Record<string, Tensor>) => ({
    value: tf.sum(tf.sin(run(theta, () => layer.fprop(x)))) as Tensor,
    aux: {},
  });
  const step = (x: Tensor, theta: Record<string, Tensor>) => valueAndGrad(loss(x), theta) as never;
  return costAnalysis(step, { shape: [2, 8, 8, 8], dtype: 'float32' }, theta).peakMemory;
}

test('a repeated block of convolutions keeps the ones that the policy names', () => {
  const [nothing, last, all] = [
    peakOf('SAVE_NOTHING'),
    peakOf('SAVE_UNET_CONV'),
    peakOf('SAVE_UNET_ALL_CONV'),
  ];
  // The last one is the next call's input, which is kept anyway.
  expect(last).toBe(nothing);
  expect(all).toBeGreaterThan(last);
});
