/** @file Embeddings of tokens, and the count of tokens trained on (praxis/layers/embedding_softmax.py). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../compiler/index.js';
import { BaseLayer } from './core/base.js';
import { constantInit } from './core/weightInit.js';
import { type Theta, WeightCollection } from './core/weights.js';

/** Fields of layers that look up embeddings. */
export const lookupFields = {
  lookupStyle: z
    .enum(['index', 'matmul'])
    .default('index')
    .describe('Whether rows of the table are read, or one-hot rows are multiplied by the table.'),
  scaleSqrtDepth: z
    .boolean()
    .default(false)
    .describe('Whether embeddings are multiplied by sqrt(inputDims).'),
};

/** The fields' values. */
interface Lookup {
  readonly lookupStyle: 'index' | 'matmul';
  readonly scaleSqrtDepth: boolean;
}

/** One-hot rows [..., numClasses] of int32 ids [...]; an id that is out of range is an error of the run. */
export function oneHotOf(ids: Tensor, numClasses: number): Tensor {
  // The gather checks ids; tf.oneHot gives rows of zeros for those that are out of range.
  const checked = tf.gather(tf.range(0, numClasses, 1, 'int32'), ids as tf.Tensor1D);
  return tf.oneHot(checked as tf.Tensor1D, numClasses, 1, 0, 'float32');
}

/** Rows of `table` [V, D] for int32 `ids` [...]: [..., D]. */
export function lookUp(table: Tensor, ids: Tensor, { lookupStyle, scaleSqrtDepth }: Lookup): Tensor {
  const [numClasses, dims] = table.shape as [number, number];
  const rows =
    lookupStyle === 'index'
      ? ops.embeddingLookup(table, ids)
      : tf.reshape(tf.matMul(oneHotOf(tf.reshape(ids, [ids.size]), numClasses), table), [...ids.shape, dims]);
  return scaleSqrtDepth ? tf.mul(rows, Math.sqrt(dims)) : rows;
}

/** A table with one row per class. */
export class Embedding extends BaseLayer.with({
  numClasses: z.int().positive().describe('Rows of the table: the size of the vocabulary.'),
  inputDims: z.int().positive().describe('Depth of a row.'),
  ...lookupFields,
  setNanForOobId: z
    .boolean()
    .default(false)
    .describe('Whether an id that is out of range has NaN as embedding; else it is an error of the run.'),
}) {
  declare readonly theta: Theta<'emb_var'>;

  protected override setup(): void {
    const { numClasses, inputDims } = this.hp;
    this.createVariable('emb_var', { shape: [numClasses, inputDims], contracting: [1] });
  }

  /** int32 ids [...] to [..., inputDims]. */
  embLookup(ids: Tensor): Tensor {
    const { numClasses, setNanForOobId } = this.hp;
    const table = this.theta.emb_var;
    if (!setNanForOobId) return this.shard(lookUp(table, ids, this.hp), 'emb_out');
    const isInRange = tf.logicalAnd(tf.greaterEqual(ids, 0), tf.less(ids, numClasses));
    const rows = lookUp(table, tf.where(isInRange, ids, tf.zerosLike(ids)), this.hp);
    return this.shard(tf.where(tf.expandDims(isInRange, -1), rows, tf.scalar(Number.NaN)), 'emb_out');
  }

  /** As `embLookup`. */
  fprop(ids: Tensor): Tensor {
    return this.embLookup(ids);
  }
}

/**
 * Counts the tokens of training, in millions: a float32, which is exact to a token up to 16 million of them and to 7 digits
 * above.
 */
export class TokenCounter extends BaseLayer.with({}) {
  declare readonly theta: Theta<'approx_total_tokens_mm'>;

  protected override setup(): void {
    this.createVariable('approx_total_tokens_mm', {
      shape: [],
      dtype: 'float32',
      init: constantInit(0),
      collections: [WeightCollection.NON_TRAINABLE, WeightCollection.REQUIRES_SUM_SYNC],
    });
  }

  /** Adds the tokens of a batch that are no padding. @param paddings [B, T], 1 for padding. */
  fprop(paddings: Tensor): void {
    if (this.doEval) return;
    const before = this.getVar('approx_total_tokens_mm');
    this.addSummary('approx_total_tokens_mm', () => before);
    const tokens = tf.div(tf.sum(tf.sub(1, paddings)), 1e6);
    this.updateVar('approx_total_tokens_mm', tf.add(before, tokens));
  }
}
