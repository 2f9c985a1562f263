/** @file Chain: layers whose arguments are a stack, and small layers for chains (praxis/layers/chain). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { type Config, type ConfigBuilding, template } from '../hparams/index.js';
import { BaseLayer } from './core/base.js';
import { selected, unpadded } from './core/masks.js';

/** A layer that a chain calls with the values at the front of its stack. */
type Link = BaseLayer & { fprop(...args: never[]): unknown };

const linkField = template<Link>(
  'a layer with fprop',
  (cls) => cls?.prototype instanceof BaseLayer && 'fprop' in cls.prototype,
);

/**
 * Layers one after the other over a stack of values: each takes as many from its front as its `fprop` has parameters before the
 * first with a default, or all of them where these are a rest parameter, as a chain's own; its results replace as many, a list
 * one by one. Values behind stay for later layers, as a mask does. The layers are the children `layers_0`, `layers_1` and so on.
 */
export class Chain extends BaseLayer.with({
  layers: z.array(linkField).min(1).describe('The layers.'),
}) {
  #layers: Link[] = [];

  protected override setup(): void {
    const layers = this.hp.layers as readonly ConfigBuilding<Link>[] as Config<Link>[];
    this.#layers = this.createChildren('layers', layers);
  }

  /** The stack at the end: its value where there is one, else a list. */
  fprop(...values: unknown[]): unknown {
    return unlisted(this.stackAfter(values));
  }

  /** The stack at the end. */
  protected stackAfter(values: readonly unknown[]): readonly unknown[] {
    return this.#layers.reduce((stack, layer) => {
      // JavaScript counts no rest parameter.
      const count = layer.fprop.length || stack.length;
      if (count > stack.length)
        throw layer.error(`takes ${count} values, and the stack of the chain has ${stack.length}.`);
      const results = listed(layer.fprop(...(stack.slice(0, count) as never[])));
      return [...results, ...stack.slice(results.length)];
    }, values);
  }
}

const listed = (results: unknown): readonly unknown[] => (Array.isArray(results) ? results : [results]);
const unlisted = (values: readonly unknown[]): unknown => (values.length === 1 ? values[0] : values);

/** A chain whose first value, in the end, is added to the one that it began with. */
export class AddResidual extends Chain {
  override fprop(...values: unknown[]): unknown {
    const [first, ...rest] = this.stackAfter(values);
    return unlisted([tf.add(first as Tensor, values[0] as Tensor), ...rest]);
  }
}

/** Inputs [B, T, …], 0 in places of padding. */
export class ApplyPadding extends BaseLayer {
  /** @param paddings [B, T], 1 for padding; sizes may be 1. */
  fprop(inputs: Tensor, paddings: Tensor): Tensor {
    const kept = unpadded(this, paddings, inputs.shape.slice(0, paddings.rank));
    const axes = inputs.shape.slice(paddings.rank).map(() => 1);
    return selected(inputs, tf.reshape(kept, [...kept.shape, ...axes]));
  }
}

/** Tensors of a batch by name, in the order of `keys`: how a chain takes a batch. */
export class DictToArgs extends BaseLayer.with({
  keys: z.array(z.string()).min(1).describe("Names of the batch's tensors."),
}) {
  /** @throws LayerError for a name that the batch lacks */
  fprop(batch: Readonly<Record<string, Tensor>>): Tensor | readonly Tensor[] {
    const tensors = this.hp.keys.map((key) => {
      const tensor = batch[key];
      if (!tensor) throw this.error(`the batch has no '${key}'; it has ${Object.keys(batch).join(', ')}.`);
      return tensor;
    });
    return tensors.length === 1 ? tensors[0]! : tensors;
  }
}

/** A constant of the shape of its input. */
export class FullLike extends BaseLayer.with({
  fillValue: z.number().default(1).describe('The constant.'),
}) {
  fprop(inputs: Tensor): Tensor {
    return tf.fill(inputs.shape, this.hp.fillValue);
  }
}
