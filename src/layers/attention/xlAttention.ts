/** @file Attention with Transformer-XL's relative positions (praxis/layers/attentions.py). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../../compiler/index.js';
import { constantInit } from '../core/weightInit.js';
import type { Theta } from '../core/weights.js';
import { DotProductAttention } from './attentions.js';
import { PositionalEmbedding } from './positions.js';
import type { AttentionProjection } from './projections.js';
import { positionsOf, type Visibility } from './visibility.js';

/** Rows [.., T, L] of L = T + S - 1, each from its place T - 1 - t on: [.., T, S]. */
function shifted(x: Tensor, keys: number): Tensor {
  const [batch, heads, queries, length] = x.shape as [number, number, number, number];
  if (queries === 1) return x;
  const flat = tf.reshape(x, [batch, heads, queries * length]);
  // A row that is one shorter than its memory begins one place later each time.
  const from = tf.slice(
    tf.pad(flat, [
      [0, 0],
      [0, 0],
      [0, 1],
    ]),
    [0, 0, queries - 1],
    [batch, heads, queries * (length - 1)],
  );
  return tf.slice(
    tf.reshape(from, [batch, heads, queries, length - 1]),
    [0, 0, 0, 0],
    [batch, heads, queries, keys],
  );
}

/**
 * Logits (q + u) k + (q + v) W r of the scaled queries q, where r is the sinusoid of the distance of query and key (Transformer-XL, Dai et
 * al., 2019, §3.3). Biases u and v stand only where `useBias` is set. For self-attention: positions rise by one
 * from key to key of those that a query sees.
 */
export class DotProductAttentionXL extends DotProductAttention.with({
  relPosEmbDim: z.int().positive().describe('Depth of the sinusoids.'),
}) {
  declare readonly theta: Theta<'u' | 'v' | 'sinks'>;
  #positions!: PositionalEmbedding;
  #projection!: AttentionProjection;

  protected override setup(): void {
    super.setup();
    const { numHeads, relPosEmbDim: embeddingDims, useBias } = this.hp;
    if (this.numKvHeads !== numHeads) throw this.error('expected as many heads of keys as of queries.');
    this.#positions = this.createChild('pos_emb', PositionalEmbedding.config({ embeddingDims }));
    this.#projection = this.createProjection('pos_proj', {
      inputDim: embeddingDims,
      numHeads,
      useBias: false,
    });
    const shape = [numHeads, this.dimPerHead];
    for (const name of useBias ? ['u', 'v'] : []) this.createVariable(name, { shape, init: constantInit(0) });
  }

  protected override dotAtten(query: Tensor, key: Tensor, value: Tensor, seen: Visibility): Tensor {
    if (seen.part === 'prompt')
      throw this.error(
        'attends to one sequence: expected a decoder without lazyPrefixBroadcast, whose rows share prompts.',
      );
    const scaled = this.scaleQuery(query);
    const { useBias } = this.hp;
    const ofDistance = this.#distanceLogits(
      useBias ? tf.add(scaled, this.theta.v) : scaled,
      key.shape[1]!,
      seen,
    );
    const other = this.positionBias(query, key, seen);
    return this.attend(useBias ? tf.add(scaled, this.theta.u) : scaled, key, value, {
      seen,
      bias: other ? tf.add(ofDistance, other) : ofDistance,
      scale: this.factorOfScaled,
    });
  }

  /** Products of queries [B, T, N, H] and projected sinusoids of their distances from `keys` keys: [B, N, T, S]. */
  #distanceLogits(query: Tensor, keys: number, seen: Visibility): Tensor {
    const steps = query.shape[1]!;
    const positions = positionsOf(seen, steps, keys);
    const last = tf.slice(positions.queries, [0, steps - 1], [-1, 1]);
    const ofKeys = tf.sub(
      last,
      steps === 1 ? positions.keys : tf.slice(positions.keys, [0, keys - 1], [-1, 1]),
    );
    // Of several queries: from the last one and the first key to the first one and the last key.
    const distances = steps === 1 ? ofKeys : tf.add(ofKeys, tf.range(keys - 1, -steps, -1, 'int32'));
    const embedded = this.#projection.fprop(this.#positions.atPositions(distances as Tensor));
    return shifted(ops.attentionLogits(query, embedded), keys);
  }
}
