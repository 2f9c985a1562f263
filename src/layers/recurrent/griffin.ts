/** @file The real-gated linear recurrent unit and Griffin's recurrent block (De et al., 2024). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { build, deepCopyWith, sub } from '../../hparams/index.js';
import { activationField, GELU, Identity, softplus } from '../activations.js';
import { BaseLayer } from '../core/base.js';
import { constantInit } from '../core/weightInit.js';
import type { Theta } from '../core/weights.js';
import { FeedForward } from '../linears.js';
import { RingDecay } from './decays.js';
import { linearRecurrence } from './linearRecurrence.js';
import { BaseRecurrence, column, type State, type Steps, type Unrolled } from './recurrence.js';
import { ShortConvolution } from './shortConvolution.js';

/** Power of the decay at a gate of 1. */
const POWER = 8;
/** Least 1 - a² that the root of the input's factor is taken of: its gradient is at most 1000. */
const LEAST = 1 / (4 * 1000 ** 2);

/**
 * `h' = a h + sqrt(1 - a²) (i x)` for each channel, with gates `i = σ(x W_i + b_i)`, `r = σ(x W_r + b_r)` in blocks of channels
 * and the decay `a = e^(-8 r softplus(Λ))`. The first token of a sequence enters whole: its factor is 1.
 */
export class RgLru extends BaseLayer.with({
  dim: z.int().positive().describe('Channels.'),
  numBlocks: z.int().positive().default(1).describe('Blocks of channels, within which gates read.'),
}) {
  declare readonly theta: Theta<
    'recurrent_param' | 'input_gate_w' | 'input_gate_b' | 'recurrent_gate_w' | 'recurrent_gate_b'
  >;

  protected override setup(): void {
    const { dim, numBlocks } = this.hp;
    if (dim % numBlocks !== 0) throw this.error(`numBlocks ${numBlocks} has to divide dim ${dim}.`);
    const width = dim / numBlocks;
    for (const gate of ['input_gate', 'recurrent_gate']) {
      this.createVariable(`${gate}_w`, { shape: [numBlocks, width, width], fanInAxes: [1], fanOutAxes: [2] });
      this.createVariable(`${gate}_b`, { shape: [dim], init: constantInit(0) });
    }
    this.createVariable('recurrent_param', { shape: [dim], init: build(RingDecay.config({ power: POWER })) });
  }

  /** Shapes of the state of one row: h, and whether there was a token. */
  get stateShapes() {
    return { h: [this.hp.dim], begun: [1] };
  }

  /** Inputs [B, T, dim] to the same shape. */
  fprop(inputs: Tensor, { h, begun }: State, steps: Steps): Unrolled {
    const [batch, time] = inputs.shape as [number, number];
    const { input_gate_w, input_gate_b, recurrent_gate_w, recurrent_gate_b, recurrent_param } = this.theta;
    const input = this.#gate(inputs, input_gate_w, input_gate_b);
    const recurrent = this.#gate(inputs, recurrent_gate_w, recurrent_gate_b);
    const logDecay = tf.mul(tf.mul(recurrent, softplus(recurrent_param)), -POWER);
    // Tokens up to each one, [B, T]: the first one has a 1, where none were before.
    const ones = tf.cast(steps.tokens ?? tf.onesLike(tf.zeros([batch, time])), 'float32');
    const count = tf.add(tf.cumsum(ones, 1), begun!) as Tensor;
    const isFirst = tf.lessEqual(count, 1);
    const begins = column(steps.starts ? tf.logicalOr(isFirst, steps.starts) : isFirst, 3);
    const share = tf.maximum(tf.neg(tf.expm1(tf.mul(logDecay, 2))), LEAST);
    const factor = tf.where(begins, tf.onesLike(share), tf.sqrt(share));
    const entering = tf.mul(factor, tf.mul(input, inputs));
    const [outputs, last] = linearRecurrence(tf.exp(logDecay), entering, h!, steps);
    const total = tf.add(tf.sum(ones, 1, true), begun!) as Tensor;
    return { outputs, state: { h: last, begun: tf.minimum(total, 1) } };
  }

  #gate(inputs: Tensor, w: Tensor, b: Tensor): Tensor {
    const { dim, numBlocks } = this.hp;
    const rows = inputs.size / dim;
    const blocks = tf.transpose(tf.reshape(inputs, [rows, numBlocks, dim / numBlocks]), [1, 0, 2]);
    const products = tf.transpose(tf.matMul(blocks, w), [1, 0, 2]);
    return tf.sigmoid(tf.add(tf.reshape(products, inputs.shape), b));
  }
}

/**
 * Griffin's recurrent block: a convolution and an RG-LRU on one projection, times the activation of another, and a
 * projection back.
 */
export class GriffinRecurrentBlock extends BaseRecurrence.with({
  lruWidth: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe('Channels of the recurrence; null: inputDim.'),
  fflayerTpl: sub(FeedForward).describe('Each projection; depths and activations are those of the layer.'),
  activationTpl: activationField(() => GELU.config()),
  convTpl: sub(ShortConvolution).describe('The convolution.'),
  lruTpl: sub(RgLru).describe('The recurrence.'),
}) {
  #x!: FeedForward;
  #gate!: FeedForward;
  #out!: FeedForward;
  #conv!: ShortConvolution;
  #lru!: RgLru;

  protected override setup(): void {
    const { inputDim, lruWidth, fflayerTpl, activationTpl, convTpl, lruTpl } = this.hp;
    const dim = lruWidth ?? inputDim;
    const create = (name: string, inputDims: number, outputDims: number, isGate = false): FeedForward =>
      this.createChild(
        name,
        deepCopyWith(fflayerTpl, {
          ...{ inputDims, outputDims },
          activationTpl: isGate ? activationTpl : Identity.config(),
        }),
      );
    this.#x = create('linear_x', inputDim, dim);
    this.#gate = create('linear_y', inputDim, dim, true);
    this.#out = create('linear_out', dim, inputDim);
    this.#conv = this.createChild('conv1d', convTpl, { dim });
    this.#lru = this.createChild('rg_lru', lruTpl, { dim });
  }

  protected override stateShapes() {
    return { conv: this.#conv.stateShape, ...this.#lru.stateShapes };
  }

  protected override recur(inputs: Tensor, state: State, steps: Steps): Unrolled {
    const [convolved, conv] = this.#conv.fprop(this.#x.fprop(inputs), state.conv!, steps);
    const after = this.#lru.fprop(convolved, state, steps);
    const outputs = this.#out.fprop(tf.mul(after.outputs, this.#gate.fprop(inputs)));
    return { outputs, state: { ...after.state, conv } };
  }
}
