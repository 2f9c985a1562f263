/** @file Chains: a stack of values, residuals, and the small layers for them. */
import { expect, test } from 'vitest';
import { type Tensor, tf } from '../../src/compiler/index.js';
import { build } from '../../src/hparams/index.js';
import {
  AddResidual,
  ApplyPadding,
  BaseLayer,
  Chain,
  DictToArgs,
  FullLike,
  Linear,
  listVariables,
  StackingOverTime,
  Tanh,
} from '../../src/layers/index.js';
import { expectClose, randomTheta, run, tensor } from './helpers.js';

/** Both ends of two values. */
class Swap extends BaseLayer {
  fprop(a: Tensor, b: Tensor): readonly Tensor[] {
    return [b, a];
  }
}

test('values behind those that a layer takes stay for later ones', () => {
  const layer = build(
    Chain.config({
      layers: [
        DictToArgs.config({ keys: ['x', 'paddings'] }),
        Linear.config({ inputDims: 3, outputDims: 2 }),
        ApplyPadding.config(),
      ],
    }),
  );
  expect(listVariables(layer).map(({ path }) => path)).toEqual(['layers_1/w']);
  const theta = randomTheta(layer);
  const x = tensor([1, 2, 3]);
  const paddings = tf.tensor2d([[0, 1]]);
  // The values are not finite where there is padding.
  const batch = { x: tf.where(tf.greater(tf.expandDims(paddings, 2), 0), Number.NaN, x) as Tensor, paddings };
  const [outputs, last] = run(theta, () => layer.fprop(batch)) as Tensor[];
  expect(last).toBe(paddings);
  const product = tf.matMul(tf.reshape(x, [2, 3]), theta['layers_1/w']!).dataSync();
  expectClose(outputs!, [product[0]!, product[1]!, 0, 0]);
});

test('results replace as many values, and a single value at the end is no list', () => {
  const [a, b] = [tf.scalar(1), tf.scalar(2)];
  expect(build(Chain.config({ layers: [Swap.config()] })).fprop(a, b)).toEqual([b, a]);
  const ones = build(Chain.config({ layers: [FullLike.config({ fillValue: 3 })] })).fprop(
    tensor([2]),
  ) as Tensor;
  expect([...ones.dataSync()]).toEqual([3, 3]);
});

test('the first value is added at the end, within a pass too', () => {
  const layer = build(AddResidual.config({ layers: [Tanh.config(), Tanh.config()] }));
  const x = tensor([4]);
  const mask = tf.scalar(0);
  const [y, rest] = run({}, () => layer.fprop(x, mask)) as Tensor[];
  expectClose(
    y!,
    [...x.dataSync()].map((value) => value + Math.tanh(Math.tanh(value))),
  );
  expect(rest).toBe(mask);
});

test('a chain within a chain takes the whole stack, and adds no values of its own', () => {
  const inner = AddResidual.config({ layers: [Tanh.config()] });
  const layer = build(
    Chain.config({ layers: [Swap.config(), inner, Chain.config({ layers: [Swap.config()] })] }),
  );
  const [a, b] = [tensor([3]), tensor([3], 2)];
  const [first, second, ...none] = run({}, () => layer.fprop(a, b)) as Tensor[];
  expect([first, none]).toEqual([a, []]);
  expectClose(
    second!,
    [...b.dataSync()].map((value) => value + Math.tanh(value)),
  );
});

test('a layer that takes more values than there are', () => {
  const layer = build(Chain.config({ layers: [Tanh.config(), ApplyPadding.config()] }));
  expect(() => run({}, () => layer.fprop(tensor([2, 3])))).toThrow(
    'layers_1 (ApplyPadding): takes 2 values, and the stack of the chain has 1.',
  );
});

test('a batch without a tensor, and a layer without fprop', () => {
  const layer = build(DictToArgs.config({ keys: ['ids', 'labels'] }));
  expect(() => layer.fprop({ ids: tensor([1]), weights: tensor([1]) })).toThrow(
    "model (DictToArgs): the batch has no 'labels'; it has ids, weights.",
  );
  expect(() => build(Chain.config({ layers: [StackingOverTime.config(), 3 as never] }))).toThrow(/layers/);
});
