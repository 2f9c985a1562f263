/** @file N-grammers: embeddings of pairs of tokens beside those of tokens (Roy et al., 2022; praxis/layers/ngrammer.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { stepsFrom } from '../attention/positions.js';
import { BaseLayer } from '../core/base.js';
import type { DecodeStateSpec } from '../core/context.js';
import { selected, unpadded } from '../core/masks.js';
import type { StepArgs } from '../core/mixer.js';
import { Embedding } from '../embeddings.js';
import { LayerNorm } from '../normalizations.js';
import {
  hashedPairs,
  idsBefore,
  lastOf,
  MOST_BUCKETS,
  type PairArgs,
  type PairHash,
  primesAbove,
} from './bigrams.js';
import { clusterFields, VectorQuantization } from './vectorQuantization.js';

/** Ids of the tokens [B, T], their embeddings [B, T, D], and which of the tokens are in pairs. */
export type NgrammerCall = readonly [ids: Tensor, embeddings: Tensor, args?: PairArgs];

const concatField = z
  .boolean()
  .describe("Whether a pair's embedding takes the place of a head's last elements; else it is added to all.");

/** Base of layers that add vectors of pairs, a token and the one before, to embeddings [B, T, D] of N heads of H elements. */
export abstract class BaseNgrammer extends BaseLayer.with({
  numHeads: z.int().positive().describe('N: parts of an embedding, each with pairs of its own.'),
  dimPerHead: z.int().positive().describe('H: depth of a part.'),
  unigramVocabSize: z.int().positive().describe('Size of the vocabulary of ids; in a model, its own.'),
  ngramVocabSize: z
    .int()
    .min(2)
    .max(MOST_BUCKETS)
    .default(768 * 256)
    .describe('Size of the vocabulary of pairs.'),
  ngramEmbDim: z.int().positive().default(8).describe("Depth of a pair's embedding in a head."),
  concatNgrams: concatField.default(true),
}) {
  static override readonly isAbstract = true;
  #embNorms: LayerNorm[] = [];
  #ngramNorms: LayerNorm[] = [];

  /** Whole sequences: [B, T, D] to the same shape; 0 for padding. */
  abstract fprop(...call: NgrammerCall): Tensor;

  /** The next T tokens after those in the decode state, as `fprop`. */
  abstract extendStep(ids: Tensor, embeddings: Tensor, args: StepArgs): Tensor;

  protected override setup(): void {
    const { numHeads, dimPerHead, ngramEmbDim, concatNgrams } = this.hp;
    if (concatNgrams ? ngramEmbDim > dimPerHead : ngramEmbDim !== dimPerHead)
      throw this.error(
        `ngramEmbDim: expected ${concatNgrams ? 'at most ' : ''}dimPerHead ${dimPerHead}, got ${ngramEmbDim}` +
          `${concatNgrams ? '' : '; set concatNgrams for less'}.`,
      );
    const norms = (dim: number) => Array.from({ length: numHeads }, () => LayerNorm.config({ dim }));
    this.#embNorms = this.createChildren('emb_layer_norm', norms(dimPerHead));
    this.#ngramNorms = this.createChildren('ngram_layer_norm', norms(ngramEmbDim));
  }

  /** Embeddings [B, T, D] as heads [B, T, N, H]. @throws LayerError for another depth */
  protected headsOf(embeddings: Tensor): Tensor {
    const { numHeads, dimPerHead } = this.hp;
    const [batch, time, depth] = embeddings.shape as [number, number, number];
    if (depth === numHeads * dimPerHead)
      return tf.reshape(embeddings, [batch, time, numHeads, dimPerHead]) as Tensor;
    throw this.error(
      `expected embeddings of depth numHeads ${numHeads} times dimPerHead ${dimPerHead}, got ${depth}.`,
    );
  }

  /** Normed heads [B, T, N, H] with the normed embeddings of pairs, [B, T, ngramEmbDim] of each head: [B, T, D]. */
  protected combined(heads: Tensor, ngrams: readonly Tensor[], paddings: Tensor | undefined): Tensor {
    const { dimPerHead, ngramEmbDim, concatNgrams } = this.hp;
    const [batch, time] = heads.shape as [number, number];
    const parts = tf.unstack(heads, 2).map((head, i) => {
      const normed = this.#embNorms[i]!.fprop(head);
      const ngram = this.#ngramNorms[i]!.fprop(ngrams[i]!);
      if (!concatNgrams) return tf.add(normed, ngram);
      return tf.concat([tf.slice(normed, [0, 0, 0], [batch, time, dimPerHead - ngramEmbDim]), ngram], -1);
    });
    const outputs = tf.concat(parts, -1) as Tensor;
    if (!paddings) return outputs;
    return selected(outputs, tf.expandDims(unpadded(this, paddings, [batch, time]), -1) as Tensor);
  }
}

/**
 * For each head i, a row of a table for the pair of an id and the one before: row
 * ((pair (i + 1) + i + 1) mod p_i) mod ngramVocabSize with pair = id + before · unigramVocabSize, p_i the i-th prime above
 * ngramVocabSize, and 0 before the first token of a sequence. Heads of embeddings and rows are normed apart.
 */
export class Ngrammer extends BaseNgrammer {
  #tables: Embedding[] = [];
  #hashes: PairHash[] = [];

  protected override setup(): void {
    super.setup();
    const { numHeads, ngramVocabSize: buckets, ngramEmbDim: inputDims } = this.hp;
    const primes = primesAbove(buckets, numHeads);
    if (primes.length < numHeads)
      throw this.error(
        `ngramVocabSize: expected a prime for each of numHeads ${numHeads} between ${buckets} and twice that, got ` +
          `${primes.length}.`,
      );
    this.#hashes = primes.map((prime, i) => ({ factor: i + 1, prime, buckets }));
    const table = () => Embedding.config({ numClasses: buckets, inputDims });
    this.#tables = this.createChildren('ngram_table', primes.map(table));
  }

  override decodeStateSpecs(batchSize: number): Record<string, DecodeStateSpec> {
    return { id_before: { shape: [batchSize, this.hp.numHeads], dtype: 'int32' } };
  }

  /** @param ids int32 [B, T], or [B, T, N], those of each head. */
  override fprop(...[ids, embeddings, args = {}]: NgrammerCall): Tensor {
    const ofHeads = this.#ofHeads(ids);
    const first = tf.zeros([ids.shape[0]!, this.hp.numHeads], 'int32');
    return this.#withPairs(ofHeads, idsBefore(ofHeads, first, args), embeddings, args);
  }

  override extendStep(ids: Tensor, embeddings: Tensor, { timeStep, length }: StepArgs): Tensor {
    const ofHeads = this.#ofHeads(ids);
    const [batch, time] = ofHeads.shape as [number, number];
    const before = this.getDecodeState('id_before');
    const segmentPos = tf.broadcastTo(stepsFrom(timeStep, time), [batch, time]) as Tensor;
    const outputs = this.#withPairs(ofHeads, idsBefore(ofHeads, before, { segmentPos }), embeddings, {});
    this.updateDecodeState('id_before', lastOf(before, ofHeads, length));
    return outputs;
  }

  #ofHeads(ids: Tensor): Tensor {
    if (ids.rank === 3) return ids;
    return tf.tile(tf.expandDims(ids, -1), [1, 1, this.hp.numHeads]) as Tensor;
  }

  #withPairs(ids: Tensor, before: Tensor, embeddings: Tensor, { paddings }: PairArgs): Tensor {
    const heads = this.headsOf(embeddings);
    const [own, others] = [tf.unstack(ids, 2), tf.unstack(before, 2)];
    const { unigramVocabSize } = this.hp;
    const ngrams = this.#tables.map((table, i) =>
      table.embLookup(hashedPairs(own[i]!, others[i]!, unigramVocabSize, this.#hashes[i]!)),
    );
    return this.combined(heads, ngrams, paddings);
  }
}

/**
 * An Ngrammer over clusters of the embeddings' heads in place of ids: similar tokens share pairs. Clusters are computed in
 * evaluation too, where Pax may keep those of each id.
 */
export class VQNgrammer extends BaseNgrammer.with({
  concatNgrams: concatField.default(false),
  ...clusterFields,
}) {
  #clusters!: VectorQuantization;
  #ngrams!: Ngrammer;

  protected override setup(): void {
    const { numHeads, dimPerHead, numClusters, decay, epsilon, ...hp } = this.hp;
    const { ngramVocabSize, ngramEmbDim, concatNgrams } = hp;
    const clusters = VectorQuantization.config({ numHeads, dimPerHead, numClusters, decay, epsilon });
    this.#clusters = this.createChild('vq_layer', clusters);
    this.#ngrams = this.createChild(
      'ngram_layer',
      Ngrammer.config({
        ...{ numHeads, dimPerHead, ngramVocabSize, ngramEmbDim, concatNgrams },
        unigramVocabSize: numClusters,
      }),
    );
  }

  override fprop(...[, embeddings, args = {}]: NgrammerCall): Tensor {
    const { clusterIds } = this.#clusters.fprop(this.headsOf(embeddings), args.paddings);
    return this.#ngrams.fprop(clusterIds, embeddings, args);
  }

  override extendStep(_ids: Tensor, embeddings: Tensor, args: StepArgs): Tensor {
    const { clusterIds } = this.#clusters.fprop(this.headsOf(embeddings));
    return this.#ngrams.extendStep(clusterIds, embeddings, args);
  }
}
