/** @file Linear maps over the last dimension, and feed-forward layers of them (praxis/layers/linears.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { deepCopyWith, registerAlias, sub } from '../hparams/index.js';
import { activationField, activationLayer, type BaseActivation, Identity, ReLU } from './activations.js';
import { BaseLayer } from './core/base.js';
import { constantInit } from './core/weightInit.js';
import type { Theta } from './core/weights.js';

/** inputs [..., inputDims] times w [inputDims, outputDims]. */
export class Linear extends BaseLayer.with({
  inputDims: z.int().positive().describe('Depth of the input.'),
  outputDims: z.int().positive().describe('Depth of the output.'),
}) {
  declare readonly theta: Theta<'w'>;

  protected override setup(): void {
    this.createVariable('w', { shape: [this.hp.inputDims, this.hp.outputDims], contracting: [0] });
  }

  /** The weights [inputDims, outputDims] that inputs are multiplied by. */
  get weights(): Tensor {
    return this.theta.w;
  }

  /** [..., inputDims] to [..., outputDims]. */
  fprop(inputs: Tensor): Tensor {
    const factors = this.factors(inputs, 'w');
    return inputs.rank === 1 ? tf.dot(factors, this.weights) : tf.matMul(factors, this.weights);
  }
}

/** inputs [..., dims] plus b [dims]. */
export class Bias extends BaseLayer.with({
  dims: z.int().positive().describe('Depth of the input.'),
  biasInit: z.number().default(0).describe('Initial value of every element.'),
}) {
  declare readonly theta: Theta<'b'>;

  protected override setup(): void {
    this.createVariable('b', { shape: [this.hp.dims], init: constantInit(this.hp.biasInit) });
  }

  /** [..., dims] to the same shape. */
  fprop(inputs: Tensor): Tensor {
    return tf.add(inputs, this.theta.b);
  }
}

/** activation(linear(inputs) + bias). */
export class FeedForward extends BaseLayer.with({
  inputDims: z.int().positive().describe('Depth of the input.'),
  outputDims: z.int().positive().describe('Depth of the output.'),
  hasBias: z.boolean().default(true).describe('Whether a bias is added.'),
  biasInit: z.number().default(0).describe('Initial value of the bias.'),
  linearTpl: sub(Linear).describe('The matrix product.'),
  biasTpl: sub(Bias).describe('The bias.'),
  activationTpl: activationField(() => ReLU.config()),
}) {
  #linear!: Linear;
  #bias: Bias | null = null;
  #activation!: BaseActivation;

  protected override setup(): void {
    const { inputDims, outputDims, hasBias, biasInit, linearTpl, biasTpl, activationTpl } = this.hp;
    this.#linear = this.createChild('linear', linearTpl, { inputDims, outputDims });
    if (hasBias) this.#bias = this.createChild('bias', biasTpl, { dims: outputDims, biasInit });
    this.#activation = this.createChild('activation', activationLayer(activationTpl));
  }

  /** The weights [inputDims, outputDims], for layers that also use them as an embedding table. */
  get weights(): Tensor {
    return this.#linear.weights;
  }

  /** [..., inputDims] to [..., outputDims]. */
  fprop(inputs: Tensor): Tensor {
    let outputs = this.#linear.fprop(inputs);
    if (this.#bias) outputs = this.#bias.fprop(outputs);
    return this.#activation.fprop(outputs);
  }
}

/** A sequence of feed-forward layers, from ffTpl.inputDims through hiddenDims to ffTpl.outputDims. */
export class MLPBlock extends BaseLayer.with({
  numLayers: z.int().positive().default(3).describe('Number of feed-forward layers.'),
  hiddenDims: z.int().positive().default(128).describe('Depth between the layers.'),
  activateFinal: z.boolean().default(true).describe('Whether the last layer has an activation too.'),
  ffTpl: sub(FeedForward).describe('Each layer; its dimensions are those of the whole block.'),
}) {
  #layers: FeedForward[] = [];

  protected override setup(): void {
    const { numLayers, hiddenDims, activateFinal, ffTpl } = this.hp;
    const layers = Array.from({ length: numLayers }, (_, i) => {
      const isLast = i === numLayers - 1;
      return deepCopyWith(ffTpl, {
        ...(i > 0 && { inputDims: hiddenDims }),
        ...(!isLast && { outputDims: hiddenDims }),
        ...(isLast && !activateFinal && { activationTpl: Identity.config() }),
      });
    });
    this.#layers = this.createChildren('mlp_layers', layers);
  }

  /** [..., ffTpl.inputDims] to [..., ffTpl.outputDims]. */
  fprop(inputs: Tensor): Tensor {
    return this.#layers.reduce((x, layer) => layer.fprop(x), inputs);
  }
}

// In documents, the short name refers to the layer; learners have a schedule with this name.
registerAlias('Linear', Linear);
