/** @file Sequential: layers one after the other (praxis/layers/sequential.py). */
import { z } from 'zod';
import type { Tensor } from '../compiler/index.js';
import { type Config, type ConfigBuilding, template } from '../hparams/index.js';
import { BaseLayer } from './core/base.js';

/** A layer from one tensor to one tensor. */
type TensorLayer = BaseLayer & { fprop(inputs: Tensor): Tensor };

/** Field of a layer with a method `fprop`. */
export const layerField = template<TensorLayer>(
  'a layer with fprop(x)',
  (cls) => cls?.prototype instanceof BaseLayer && 'fprop' in cls.prototype,
);

/**
 * Each layer on the output of the one before. The layers are the children `layers_0`, `layers_1` and so on; a config that
 * stands in several places is one layer.
 */
export class Sequential extends BaseLayer.with({
  layers: z.array(layerField).min(1).describe('The layers, each of which takes one tensor and gives one.'),
}) {
  #layers: TensorLayer[] = [];

  protected override setup(): void {
    this.#layers = this.createChildren(
      'layers',
      this.hp.layers as readonly ConfigBuilding<TensorLayer>[] as Config<TensorLayer>[],
    );
  }

  fprop(inputs: Tensor): Tensor {
    return this.#layers.reduce((x, layer) => layer.fprop(x), inputs);
  }
}
