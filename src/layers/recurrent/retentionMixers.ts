/** @file Linear attention between projections: retention and the gated delta rule. */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../../compiler/index.js';
import { build, sub } from '../../hparams/index.js';
import { silu, softplus } from '../activations.js';
import { splitHeads } from '../attention/projections.js';
import { RotaryPositionalEmbedding } from '../attention/rotations.js';
import { constantInit } from '../core/weightInit.js';
import type { Theta } from '../core/weights.js';
import type { Linear } from '../linears.js';
import { RmsNorm } from '../normalizations.js';
import { LogUniform } from './decays.js';
import { joinHeads, repeatHeads, unitVectors } from './heads.js';
import { chunkSizeField, linearAttention } from './linearAttention.js';
import { ProjectedRecurrence, type State, type Steps, type Unrolled } from './recurrence.js';
import { ShortConvolution } from './shortConvolution.js';

/**
 * Multi-scale retention (RetNet, Sun et al., 2023): attention without softmax, whose head h sees what is t tokens away with a
 * factor (1 - 2^(-5 - h))^t, on rotated queries and keys; each head is normed, and all are gated by swish(x W).
 */
export class MultiScaleRetention extends ProjectedRecurrence.with({
  numHeads: z.int().positive().default(1).describe('Number of heads.'),
  valueFactor: z.int().positive().default(2).describe('Depth of all values, as a multiple of inputDim.'),
  rotaryPositionEmbTpl: sub(RotaryPositionalEmbedding).describe('The rotation of queries and keys.'),
  epsilon: z.number().positive().default(1e-6).describe("Added to the mean square of a head's outputs."),
  chunkSize: chunkSizeField,
}) {
  #projections!: Readonly<Record<'query' | 'key' | 'value' | 'gate' | 'out', Linear>>;
  #rotary!: RotaryPositionalEmbedding;

  protected override setup(): void {
    const { inputDim, numHeads, valueFactor, rotaryPositionEmbTpl } = this.hp;
    if (inputDim % (2 * numHeads) !== 0)
      throw this.error(`expected inputDim to be a multiple of twice numHeads ${numHeads}, got ${inputDim}.`);
    const valueDim = valueFactor * inputDim;
    const create = (name: string, depth: number): Linear => this.createProjection(name, inputDim, depth);
    this.#projections = {
      query: create('q_proj', inputDim),
      key: create('k_proj', inputDim),
      value: create('v_proj', valueDim),
      gate: create('g_proj', valueDim),
      out: this.createProjection('out_proj', valueDim, inputDim),
    };
    const embeddingDims = inputDim / numHeads;
    this.#rotary = this.createChild('rotary_position_emb', rotaryPositionEmbTpl, { embeddingDims });
  }

  protected override stateShapes() {
    const { inputDim, numHeads, valueFactor } = this.hp;
    return { kv: [numHeads, inputDim / numHeads, (valueFactor * inputDim) / numHeads] };
  }

  protected override recur(inputs: Tensor, state: State, steps: Steps): Unrolled {
    const { inputDim, numHeads, epsilon, chunkSize } = this.hp;
    const { query, key, value, gate, out } = this.#projections;
    const [batch, time] = inputs.shape as [number, number];
    const heads = (linear: Linear): Tensor => splitHeads(linear.fprop(inputs), numHeads);
    const rotated = (x: Tensor): Tensor => this.#rotary.fprop(x, steps.positions);
    const logDecays = Array.from({ length: numHeads }, (_, h) => Math.log1p(-(2 ** (-5 - h))));
    const [retained, kv] = linearAttention(
      {
        query: rotated(heads(query)),
        key: tf.mul(rotated(heads(key)), (inputDim / numHeads) ** -0.5),
        value: heads(value),
        logDecay: tf.broadcastTo(tf.tensor1d(logDecays), [batch, time, numHeads]),
      },
      state.kv!,
      steps,
      chunkSize,
    );
    const normed = joinHeads(ops.rmsNorm(retained, null, { epsilon }));
    return { outputs: out.fprop(tf.mul(silu(gate.fprop(inputs)), normed)), state: { kv } };
  }
}

/**
 * Gated DeltaNet (Yang et al., 2025), as in Qwen3-Next: a convolution over queries, keys and values, then the gated delta
 * rule, which before it writes a value takes out what its key would read; a norm of each head, gated by silu. Outputs of
 * both projections are in the order of the heads of keys: query, key, values and gates of the first head, then of the next.
 */
export class GatedDeltaNet extends ProjectedRecurrence.with({
  numKeyHeads: z.int().positive().default(1).describe('Heads of queries and keys.'),
  numValueHeads: z
    .int()
    .positive()
    .default(1)
    .describe('Heads of values, a multiple of numKeyHeads: neighbouring ones share queries and keys.'),
  keyHeadDim: z.int().positive().describe('Depth of a head of queries and keys.'),
  valueHeadDim: z.int().positive().describe('Depth of a head of values.'),
  convTpl: sub(ShortConvolution, () => ShortConvolution.config({ bias: false })).describe(
    'The convolution over queries, keys and values.',
  ),
  normTpl: sub(RmsNorm).describe("The norm of a head's outputs."),
  chunkSize: chunkSizeField,
}) {
  declare readonly theta: Theta<'dt_bias' | 'A_log'>;
  #qkvz!: Linear;
  #ba!: Linear;
  #conv!: ShortConvolution;
  #norm!: RmsNorm;
  #outProj!: Linear;

  /** Depths of all heads of keys, and of all heads of values. */
  get #depths(): [number, number] {
    const { numKeyHeads, numValueHeads, keyHeadDim, valueHeadDim } = this.hp;
    return [numKeyHeads * keyHeadDim, numValueHeads * valueHeadDim];
  }

  protected override setup(): void {
    const { inputDim, numKeyHeads, numValueHeads, valueHeadDim, convTpl, normTpl } = this.hp;
    const [ofKeys, ofValues] = this.#depths;
    if (numValueHeads % numKeyHeads !== 0)
      throw this.error(`numKeyHeads ${numKeyHeads} has to divide numValueHeads ${numValueHeads}.`);
    this.#qkvz = this.createProjection('in_proj_qkvz', inputDim, 2 * ofKeys + 2 * ofValues);
    this.#ba = this.createProjection('in_proj_ba', inputDim, 2 * numValueHeads);
    this.#conv = this.createChild('conv1d', convTpl, { dim: 2 * ofKeys + ofValues });
    this.createVariable('dt_bias', { shape: [numValueHeads], init: constantInit(1) });
    this.createVariable('A_log', {
      shape: [numValueHeads],
      init: build(LogUniform.config({ low: 1e-3 })),
    });
    this.#norm = this.createChild('norm', normTpl, { dim: valueHeadDim });
    this.#outProj = this.createProjection('out_proj', ofValues, inputDim);
  }

  protected override stateShapes() {
    const { numValueHeads, keyHeadDim, valueHeadDim } = this.hp;
    return { conv: this.#conv.stateShape, kv: [numValueHeads, keyHeadDim, valueHeadDim] };
  }

  protected override recur(inputs: Tensor, state: State, steps: Steps): Unrolled {
    const { numKeyHeads, numValueHeads, keyHeadDim, chunkSize } = this.hp;
    const [ofKeys, ofValues] = this.#depths;
    /** Parts of so many units in all, each of the same share of every head of keys. */
    const parts = (x: Tensor, units: number[]): Tensor[] => {
      const ofHead = units.map((count) => count / numKeyHeads);
      return tf.split(splitHeads(x, numKeyHeads), ofHead, -1).map((part) => joinHeads(part as Tensor));
    };
    const depths = [ofKeys, ofKeys, ofValues];
    const qkvz = parts(this.#qkvz.fprop(inputs), [...depths, ofValues]);
    const [convolved, conv] = this.#conv.fprop(tf.concat(qkvz.slice(0, 3), -1), state.conv!, steps);
    const [query, key, value] = tf.split(silu(convolved), depths, -1) as [Tensor, Tensor, Tensor];
    const [b, a] = parts(this.#ba.fprop(inputs), [numValueHeads, numValueHeads]) as [Tensor, Tensor];
    const unit = (x: Tensor): Tensor =>
      repeatHeads(unitVectors(splitHeads(x, numKeyHeads)), numValueHeads / numKeyHeads);
    const [read, kv] = linearAttention(
      {
        query: tf.mul(unit(query), keyHeadDim ** -0.5),
        key: unit(key),
        value: splitHeads(value, numValueHeads),
        logDecay: tf.neg(tf.mul(softplus(tf.add(a, this.theta.dt_bias)), tf.exp(this.theta.A_log))),
        beta: tf.sigmoid(b),
      },
      state.kv!,
      steps,
      chunkSize,
    );
    const gated = tf.mul(this.#norm.fprop(read), silu(splitHeads(qkvz[3]!, numValueHeads)));
    return { outputs: this.#outProj.fprop(joinHeads(gated)), state: { conv, kv } };
  }
}
