/** @file Selective state spaces: Mamba (Gu and Dao, 2023) and Mamba-2 (Dao and Gu, 2024). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../../compiler/index.js';
import { build, sub } from '../../hparams/index.js';
import { silu, softplus } from '../activations.js';
import { splitHeads } from '../attention/projections.js';
import { constantInit, UniformSqrtDim } from '../core/weightInit.js';
import type { Theta } from '../core/weights.js';
import type { Linear } from '../linears.js';
import { InverseSoftplus, LogArange, LogUniform } from './decays.js';
import { joinHeads, repeatHeads } from './heads.js';
import { chunkSizeField, linearAttention } from './linearAttention.js';
import { ProjectedRecurrence, type State, type Steps, scanTime, type Unrolled } from './recurrence.js';
import { ShortConvolution } from './shortConvolution.js';

const fields = {
  expand: z.int().positive().default(2).describe('Channels for each element of the model.'),
  convTpl: sub(ShortConvolution).describe('The convolution in front.'),
};

/**
 * Mamba: a selective scan of channels that a convolution has gone over, and a gate beside it. For each channel,
 * `h' = e^(Δ A) h + Δ B x` and `y = C h' + D x`, with a state h of `stateDim` elements; the step Δ = softplus(x W + b) of a
 * channel and the vectors B and C are projections of the token.
 */
export class Mamba extends ProjectedRecurrence.with({
  ...fields,
  stateDim: z.int().positive().default(16).describe("Depth of a channel's state."),
  timeStepRank: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe('Depth that steps are projected from; null: inputDim / 16, rounded up.'),
}) {
  declare readonly theta: Theta<'dt_bias' | 'A_log' | 'D'>;
  #inProj!: Linear;
  #conv!: ShortConvolution;
  #xProj!: Linear;
  #dtProj!: Linear;
  #outProj!: Linear;

  get #channels(): number {
    return this.hp.expand * this.hp.inputDim;
  }
  get #rank(): number {
    return this.hp.timeStepRank ?? Math.ceil(this.hp.inputDim / 16);
  }

  protected override setup(): void {
    const { inputDim, stateDim, convTpl } = this.hp;
    const dim = this.#channels;
    this.#inProj = this.createProjection('in_proj', inputDim, 2 * dim);
    this.#conv = this.createChild('conv1d', convTpl, { dim });
    this.#xProj = this.createProjection('x_proj', dim, this.#rank + 2 * stateDim);
    this.#dtProj = this.createProjection('dt_proj', this.#rank, dim, { paramsInit: UniformSqrtDim.config() });
    this.#outProj = this.createProjection('out_proj', dim, inputDim);
    this.createVariable('dt_bias', { shape: [dim], init: build(InverseSoftplus.config()) });
    this.createVariable('A_log', { shape: [dim, stateDim], init: build(LogArange.config()) });
    this.createVariable('D', { shape: [dim], init: constantInit(1) });
  }

  protected override stateShapes() {
    return { conv: this.#conv.stateShape, ssm: [this.hp.stateDim, this.#channels] };
  }

  protected override recur(inputs: Tensor, state: State, steps: Steps): Unrolled {
    const { stateDim } = this.hp;
    const [entering, gate] = tf.split(this.#inProj.fprop(inputs), 2, -1) as [Tensor, Tensor];
    const [convolved, conv] = this.#conv.fprop(entering, state.conv!, steps);
    const x = silu(convolved);
    const parts = tf.split(this.#xProj.fprop(x), [this.#rank, stateDim, stateDim], -1);
    const [rank, B, C] = parts as [Tensor, Tensor, Tensor];
    const delta = softplus(tf.add(this.#dtProj.fprop(rank), this.theta.dt_bias));
    // States are [B, stateDim, channels]: along channels, machine code takes several at once.
    const A = tf.neg(tf.exp(tf.transpose(this.theta.A_log)));
    const turn = ({ ssm }: State, at: State): [State, Tensor] => {
      const decay = tf.exp(tf.mul(tf.expandDims(at.delta!, 1), A));
      const input = tf.mul(tf.expandDims(at.input!, 1), tf.expandDims(at.B!, 2));
      const next = tf.add(tf.mul(decay, ssm!), input) as Tensor;
      return [{ ssm: next }, tf.sum(tf.mul(next, tf.expandDims(at.C!, 2)), 1)];
    };
    const scanned = scanTime(turn, { ssm: state.ssm! }, { delta, input: tf.mul(delta, x), B, C }, steps);
    const outputs = tf.mul(tf.add(scanned.outputs, tf.mul(x, this.theta.D)), silu(gate));
    return { outputs: this.#outProj.fprop(outputs), state: { ...scanned.state, conv } };
  }
}

/**
 * Mamba-2: heads of channels whose decay is one number, `S' = e^(Δ A) S + B (Δ x)ᵀ`, `y = S'ᵀ C + D x`, in chunks of products
 * (structured state space duality); then a norm of each group's gated outputs.
 */
export class Mamba2 extends ProjectedRecurrence.with({
  ...fields,
  stateDim: z.int().positive().default(128).describe('Depth of the vectors B and C.'),
  headDim: z.int().positive().default(64).describe('Channels of a head.'),
  numGroups: z
    .int()
    .positive()
    .default(1)
    .describe('Number of vectors B and C, which neighbouring heads share.'),
  normEpsilon: z.number().positive().default(1e-5).describe('Added to the mean square of the gated outputs.'),
  chunkSize: chunkSizeField,
}) {
  declare readonly theta: Theta<'dt_bias' | 'A_log' | 'D' | 'norm_scale'>;
  #inProj!: Linear;
  #conv!: ShortConvolution;
  #outProj!: Linear;

  get #channels(): number {
    return this.hp.expand * this.hp.inputDim;
  }
  get #heads(): number {
    return this.#channels / this.hp.headDim;
  }
  /** Channels, and the vectors B and C. */
  get #widths(): [number, number, number] {
    const ofGroups = this.hp.numGroups * this.hp.stateDim;
    return [this.#channels, ofGroups, ofGroups];
  }

  protected override setup(): void {
    const { inputDim, headDim, numGroups, convTpl } = this.hp;
    const heads = this.#heads;
    if (!Number.isInteger(heads))
      throw this.error(
        `headDim ${headDim} has to divide the channels, expand times inputDim: ${this.#channels}.`,
      );
    if (heads % numGroups !== 0)
      throw this.error(`numGroups ${numGroups} has to divide the number of heads, ${heads}.`);
    const [dim, ofB, ofC] = this.#widths;
    this.#inProj = this.createProjection('in_proj', inputDim, 2 * dim + ofB + ofC + heads);
    this.#conv = this.createChild('conv1d', convTpl, { dim: dim + ofB + ofC });
    this.#outProj = this.createProjection('out_proj', dim, inputDim);
    this.createVariable('dt_bias', { shape: [heads], init: build(InverseSoftplus.config()) });
    this.createVariable('A_log', { shape: [heads], init: build(LogUniform.config()) });
    this.createVariable('D', { shape: [heads], init: constantInit(1) });
    this.createVariable('norm_scale', { shape: [dim], init: constantInit(1) });
  }

  protected override stateShapes() {
    return { conv: this.#conv.stateShape, ssm: [this.#heads, this.hp.stateDim, this.hp.headDim] };
  }

  protected override recur(inputs: Tensor, state: State, steps: Steps): Unrolled {
    const { numGroups, normEpsilon, chunkSize } = this.hp;
    const heads = this.#heads;
    const [dim, ofB, ofC] = this.#widths;
    const parts = tf.split(this.#inProj.fprop(inputs), [dim, dim + ofB + ofC, heads], -1);
    const [gate, entering, dt] = parts as [Tensor, Tensor, Tensor];
    const [convolved, conv] = this.#conv.fprop(entering, state.conv!, steps);
    const [x0, B, C] = tf.split(silu(convolved), [dim, ofB, ofC], -1) as [Tensor, Tensor, Tensor];
    const x = splitHeads(x0, heads);
    const delta = softplus(tf.add(dt, this.theta.dt_bias));
    const vectors = (group: Tensor): Tensor => repeatHeads(splitHeads(group, numGroups), heads / numGroups);
    const [y, ssm] = linearAttention(
      {
        query: vectors(C),
        key: vectors(B),
        value: tf.mul(x, tf.expandDims(delta, -1)),
        logDecay: tf.neg(tf.mul(delta, tf.exp(this.theta.A_log))),
      },
      state.ssm!,
      steps,
      chunkSize,
    );
    const outputs = joinHeads(tf.add(y, tf.mul(x, tf.expandDims(this.theta.D, -1))));
    const gated = splitHeads(tf.mul(outputs, silu(gate)), numGroups);
    const normed = joinHeads(ops.rmsNorm(gated, null, { epsilon: normEpsilon }));
    return { outputs: this.#outProj.fprop(tf.mul(normed, this.theta.norm_scale)), state: { conv, ssm } };
  }
}
