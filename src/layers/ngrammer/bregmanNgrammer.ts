/** @file BregmanNgrammer: pairs of compressed embeddings in place of pairs of ids (praxis/layers/ngrammer.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import type { Config, Report } from '../../hparams/index.js';
import { stepsFrom } from '../attention/positions.js';
import { BaseLayer } from '../core/base.js';
import type { DecodeStateSpec } from '../core/context.js';
import { bothOf, unpadded, weighedRows } from '../core/masks.js';
import type { StepArgs } from '../core/mixer.js';
import type { Theta } from '../core/weights.js';
import { delayed, lastOf, type PairArgs } from './bigrams.js';
import { BregmanPCA, bregmanFields, checkBregman } from './bregmanPca.js';
import { BaseNgrammer, type NgrammerCall } from './ngrammers.js';

/** The values of the components' fields. */
function bregmanValues<T extends Record<keyof typeof bregmanFields, unknown>>(hp: T) {
  const names = Object.keys(bregmanFields) as (keyof typeof bregmanFields)[];
  return Object.fromEntries(names.map((name) => [name, hp[name]])) as Pick<T, keyof typeof bregmanFields>;
}

/** A `BregmanPCA` for each head. */
export class BregmanCompression extends BaseLayer.with({
  numHeads: z.int().positive().describe('N: heads, each with components of its own.'),
  dimPerHead: z.int().positive().describe('H: depth of a head.'),
  ...bregmanFields,
}) {
  #heads: BregmanPCA[] = [];

  static override validate(config: Config<BregmanCompression>, report: Report): void {
    checkBregman(config, report);
  }

  protected override setup(): void {
    const { numHeads, dimPerHead: inputDims, ...hp } = this.hp;
    const head = () => BregmanPCA.config({ inputDims, ...bregmanValues(hp) });
    this.#heads = this.createChildren('bregman_layers', Array.from({ length: numHeads }, head));
  }

  /** [B, T, N, H] to coefficients [B, T, N, K]. @param paddings [B, T], 1 for padding, whose coefficients are 0 */
  fprop(inputs: Tensor, paddings?: Tensor): Tensor {
    const { dimPerHead, numComponents } = this.hp;
    const [batch, time] = inputs.shape as [number, number];
    const kept = paddings && unpadded(this, paddings, [batch, time]);
    const rows = weighedRows(this, inputs);
    const weighed = rows && (tf.reshape(rows, [batch, 1]) as Tensor);
    const counted = bothOf(kept, weighed);
    const flat = counted && tf.reshape(tf.broadcastTo(counted, [batch, time]), [batch * time]);
    const parts = tf.unstack(inputs, 2).map((head, i) => {
      const coefficients = this.#heads[i]!.fprop(tf.reshape(head, [batch * time, dimPerHead]), flat);
      return tf.reshape(coefficients, [batch, time, numComponents]);
    });
    return tf.stack(parts, 2);
  }
}

/**
 * For each head, Σ_v (c' A_v c) W_v with the coefficients c of its components, those c' of the token before (c itself for the
 * first of a sequence), and trained A [K, K, V] and W [V, ngramEmbDim]. Coefficients are `BregmanPCA`'s: they depend on the batch.
 */
export class BregmanNgrammer extends BaseNgrammer.with(bregmanFields) {
  declare readonly theta: Theta<'correlation' | 'embedding_table'>;
  #compression!: BregmanCompression;

  static override validate(config: Config<BregmanNgrammer>, report: Report): void {
    checkBregman(config, report);
  }

  protected override setup(): void {
    super.setup();
    const { numHeads, dimPerHead, numComponents, ngramVocabSize, ngramEmbDim } = this.hp;
    if (numComponents > dimPerHead)
      throw this.error(`numComponents: expected at most dimPerHead ${dimPerHead}, got ${numComponents}.`);
    this.createVariable('correlation', {
      shape: [numComponents, numComponents, ngramVocabSize, numHeads],
    });
    this.createVariable('embedding_table', { shape: [ngramVocabSize, ngramEmbDim, numHeads] });
    this.#compression = this.createChild(
      'bregman_compression_layer',
      BregmanCompression.config({ numHeads, dimPerHead, ...bregmanValues(this.hp) }),
    );
  }

  override decodeStateSpecs(batchSize: number): Record<string, DecodeStateSpec> {
    const { numHeads, numComponents } = this.hp;
    return { coefficients: { shape: [batchSize, numHeads, numComponents], dtype: 'float32' } };
  }

  override fprop(...[, embeddings, args = {}]: NgrammerCall): Tensor {
    const heads = this.headsOf(embeddings);
    const own = this.#compression.fprop(heads, args.paddings);
    const [batch, time, ...rest] = own.shape as [number, number, number, number];
    const first = tf.slice(own, [0, 0, 0, 0], [batch, Math.min(time, 1), ...rest]);
    return this.#withPairs(heads, own, coefficientsBefore(own, first, args), args);
  }

  override extendStep(_ids: Tensor, embeddings: Tensor, { timeStep, length }: StepArgs): Tensor {
    const heads = this.headsOf(embeddings);
    const own = this.#compression.fprop(heads);
    const before = this.getDecodeState('coefficients');
    const args = { segmentPos: stepsFrom(timeStep, heads.shape[1]!) };
    const others = coefficientsBefore(own, tf.expandDims(before, 1), args);
    this.updateDecodeState('coefficients', lastOf(before, own, length));
    return this.#withPairs(heads, own, others, {});
  }

  /** @param own, @param others [B, T, N, K]: coefficients of tokens, and of those before. */
  #withPairs(heads: Tensor, own: Tensor, others: Tensor, { paddings }: PairArgs): Tensor {
    const { numComponents: k, ngramVocabSize, ngramEmbDim } = this.hp;
    const [batch, time] = own.shape as [number, number];
    const products = tf.unstack(tf.mul(tf.expandDims(others, 4), tf.expandDims(own, 3)), 2);
    const correlations = tf.unstack(this.theta.correlation, 3);
    const tables = tf.unstack(this.theta.embedding_table, 2);
    const ngrams = products.map((pairs, i) => {
      const flat = tf.reshape(pairs, [batch * time, k * k]);
      const scores = tf.matMul(flat, tf.reshape(correlations[i]!, [k * k, ngramVocabSize]));
      return tf.reshape(tf.matMul(scores, tables[i]!), [batch, time, ngramEmbDim]) as Tensor;
    });
    return this.combined(heads, ngrams, paddings);
  }
}

/** Coefficients of the token before each; those of the token itself where a sequence begins, and behind padding. */
function coefficientsBefore(own: Tensor, first: Tensor, { segmentPos, paddings }: PairArgs): Tensor {
  const shifted = delayed(own, first);
  const chosen = (isBegun: Tensor, x: Tensor): Tensor =>
    tf.where(tf.reshape(isBegun, [...isBegun.shape, 1, 1]), own, x) as Tensor;
  const begun = segmentPos ? chosen(tf.equal(segmentPos, tf.scalar(0, 'int32')) as Tensor, shifted) : shifted;
  if (!paddings) return begun;
  const behind = delayed(paddings, tf.zeros([paddings.shape[0]!, 1]));
  return chosen(tf.greaterEqual(behind, 0.5) as Tensor, begun);
}
