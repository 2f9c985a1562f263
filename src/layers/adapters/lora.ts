/** @file LoRA: projections whose frozen weights are moved by a trained product of low rank (Hu et al., 2021). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { AttentionProjection, CombinedQKVProjectionLayer } from '../attention/projections.js';
import type { BaseLayer } from '../core/base.js';
import { constantInit } from '../core/weightInit.js';
import type { Theta, WeightHParams } from '../core/weights.js';
import { Linear } from '../linears.js';

const loraFields = {
  rank: z.int().positive().default(8).describe('Rank r of the change of the weights.'),
  alpha: z
    .number()
    .positive()
    .nullable()
    .default(null)
    .describe('α: the change is multiplied by α / r; null: by 1, as in Pax.'),
};
type LoraFields = { readonly rank: number; readonly alpha: number | null };
type Factors = Theta<'lora_a' | 'lora_b'>;

/** Factors are trained: float32, also where the frozen weights are held in bfloat16. */
const wide = { dtype: 'float32' } as const;

/** The change begins at 0, as one of its factors does. */
const fromZero = { ...wide, init: constantInit(0) };
const scaleOf = ({ rank, alpha }: LoraFields): number => (alpha === null ? 1 : alpha / rank);

/** vectors [..., inputs] times the change of a matrix: [..., outputs]. @param a [inputs, r] @param b [r, outputs] */
function change(vectors: Tensor, a: Tensor, b: Tensor, hp: LoraFields): Tensor {
  const outputs = tf.matMul(tf.matMul(vectors, a), b);
  return hp.alpha === null ? outputs : tf.mul(outputs, scaleOf(hp));
}

/** A layer with low-rank factors beside its weights `w`. */
export type LoraLayer = BaseLayer & {
  /** The weights with their change, from values of the layer's variables, which may be stacked by repetitions. */
  merged(values: Factors & Theta<'w'>): Tensor;
};

/**
 * Weights with their change. @param matrices axes of `w` as [matrices, rows, columns]; a layer that repeats has more of them.
 * @param isTransposed whether rows are outputs.
 */
function merge(
  { w, lora_a: a, lora_b: b }: Factors & Theta<'w'>,
  [rows, columns]: readonly [number, number],
  isTransposed: boolean,
  hp: LoraFields,
): Tensor {
  const { rank } = hp;
  const factors = [
    tf.reshape(a, [-1, isTransposed ? columns : rows, rank]),
    tf.reshape(b, [-1, rank, isTransposed ? rows : columns]),
  ] as const;
  const product = isTransposed ? tf.matMul(factors[1], factors[0], true, true) : tf.matMul(...factors);
  return tf.add(w, tf.mul(tf.reshape(product, w.shape), scaleOf(hp)));
}

/** x (w + lora_a lora_b): `Linear` with lora_a [inputDims, r] and lora_b [r, outputDims]. */
export class LoraLinear extends Linear.with(loraFields) {
  declare readonly theta: Theta<'w'> & Factors;

  protected override setup(): void {
    super.setup();
    const { inputDims, outputDims, rank } = this.hp;
    this.createVariable('lora_a', { ...wide, shape: [inputDims, rank] });
    this.createVariable('lora_b', { shape: [rank, outputDims], ...fromZero });
  }

  override fprop(inputs: Tensor): Tensor {
    const { lora_a, lora_b } = this.theta;
    const moved = change(inputs.rank === 1 ? tf.expandDims(inputs, 0) : inputs, lora_a, lora_b, this.hp);
    return tf.add(super.fprop(inputs), inputs.rank === 1 ? tf.squeeze(moved, [0]) : moved);
  }

  /** As {@link LoraLayer.merged}. */
  merged(values: Factors & Theta<'w'>): Tensor {
    return merge(values, [this.hp.inputDims, this.hp.outputDims], false, this.hp);
  }
}

/** `AttentionProjection` with lora_a [D, r] and lora_b [r, N, H], or [N, H, r] and [r, D] for an output projection. */
export class LoraAttentionProjection extends AttentionProjection.with(loraFields) {
  declare readonly theta: Theta<'w' | 'b'> & Factors;

  protected override setup(): void {
    super.setup();
    const { inputDim, numHeads, dimPerHead, isOutputProjection, rank } = this.hp;
    const heads = [numHeads, dimPerHead];
    const [inputs, outputs] = isOutputProjection ? [heads, [inputDim]] : [[inputDim], heads];
    const fans: Pick<WeightHParams, 'fanInAxes' | 'fanOutAxes'> = {
      fanInAxes: inputs.map((_, axis) => axis),
      fanOutAxes: [inputs.length],
    };
    this.createVariable('lora_a', { ...wide, shape: [...inputs, rank], ...fans });
    this.createVariable('lora_b', { shape: [rank, ...outputs], ...fromZero });
  }

  protected override product(vectors: Tensor): Tensor {
    const { lora_a, lora_b } = this.theta;
    const { rank } = this.hp;
    const moved = change(vectors, tf.reshape(lora_a, [-1, rank]), tf.reshape(lora_b, [rank, -1]), this.hp);
    return tf.add(super.product(vectors), moved);
  }

  /** As {@link LoraLayer.merged}. */
  merged(values: Factors & Theta<'w'>): Tensor {
    const { inputDim, numHeads, dimPerHead, isOutputProjection } = this.hp;
    return merge(values, [inputDim, numHeads * dimPerHead], isOutputProjection, this.hp);
  }
}

/** `CombinedQKVProjectionLayer` with lora_a [3, D, r] and lora_b [3, r, N, H]. */
export class LoraCombinedQKVProjectionLayer extends CombinedQKVProjectionLayer.with(loraFields) {
  declare readonly theta: Theta<'w' | 'b'> & Factors;

  protected override setup(): void {
    super.setup();
    const { inputDim, numHeads, dimPerHead, rank } = this.hp;
    this.createVariable('lora_a', { ...wide, shape: [3, inputDim, rank], fanInAxes: [1], fanOutAxes: [2] });
    this.createVariable('lora_b', { shape: [3, rank, numHeads, dimPerHead], ...fromZero });
  }

  protected override product(inputs: Tensor, w: Tensor, part: number): Tensor {
    const { inputDim, rank } = this.hp;
    const factor = (x: Tensor, rows: number): Tensor => tf.split(tf.reshape(x, [3 * rows, -1]), 3, 0)[part]!;
    const moved = change(
      inputs,
      factor(this.theta.lora_a, inputDim),
      factor(this.theta.lora_b, rank),
      this.hp,
    );
    return tf.add(super.product(inputs, w, part), moved);
  }

  /** As {@link LoraLayer.merged}. */
  merged(values: Factors & Theta<'w'>): Tensor {
    const { inputDim, numHeads, dimPerHead } = this.hp;
    return merge(values, [inputDim, numHeads * dimPerHead], false, this.hp);
  }
}
