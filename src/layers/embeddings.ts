/** @file Tables that ids look rows up in. */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../compiler/index.js';
import { BaseLayer, type Theta } from './baseLayer.js';

/** Rows of `table` [V, D] for int32 `ids` [...], times sqrt(D) where asked: [..., D]. */
export function lookUp(table: Tensor, ids: Tensor, scaleSqrtDepth: boolean): Tensor {
  const rows = ops.embeddingLookup(table, ids);
  return scaleSqrtDepth ? tf.mul(rows, Math.sqrt(table.shape[1]!)) : rows;
}

/** A table of one row for each class. */
export class Embedding extends BaseLayer.with({
  numClasses: z.int().positive().describe('Rows of the table: the size of the vocabulary.'),
  inputDims: z.int().positive().describe('Depth of a row.'),
  scaleSqrtDepth: z.boolean().default(false).describe('Whether rows are multiplied by sqrt(inputDims).'),
}) {
  declare readonly theta: Theta<'emb_var'>;

  protected override setup(): void {
    this.createVariable('emb_var', { shape: [this.hp.numClasses, this.hp.inputDims] });
  }

  /** int32 ids [...] to [..., inputDims]. */
  embLookup(ids: Tensor): Tensor {
    return lookUp(this.theta.emb_var, ids, this.hp.scaleSqrtDepth);
  }

  /** As `embLookup`. */
  fprop(ids: Tensor): Tensor {
    return this.embLookup(ids);
  }
}
