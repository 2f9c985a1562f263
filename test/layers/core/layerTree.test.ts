/** @file The printed tree of a layer. */
import { expect, test } from 'vitest';
import { build } from '../../../src/hparams/index.js';
import { BaseLayer, FeedForward, Linear, layerTree, Tanh } from '../../../src/layers/index.js';

test('children by name, their classes and variables', () => {
  const layer = build(FeedForward.config({ inputDims: 4, outputDims: 3, activationTpl: Tanh.config() }));
  expect(layerTree(layer)).toBe(`FeedForward
├ linear: Linear · w [4, 3]
├ bias: Bias · b [3]
└ activation: Tanh`);
});

test('a layer with two parents is opened once', () => {
  const shared = FeedForward.config({ inputDims: 2, outputDims: 2 });
  class Twice extends BaseLayer {
    protected override setup(): void {
      this.createChild('left', shared);
      this.createChild('right', shared);
      this.createChild('last', Linear.config({ inputDims: 2, outputDims: 1 }));
    }
  }
  expect(layerTree(build(Twice.config()))).toBe(`Twice
├ left: FeedForward
│ ├ linear: Linear · w [2, 2]
│ ├ bias: Bias · b [2]
│ └ activation: ReLU
├ right: FeedForward · the same as left
└ last: Linear · w [2, 1]`);
});
