/** @file Multi-head latent attention (DeepSeek-V2, 2024): keys and values of all heads are made of one narrow vector a token. */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../../compiler/index.js';
import { deepCopy, sub } from '../../hparams/index.js';
import type { DecodeStateSpec } from '../core/context.js';
import { BaseMixer, type MixerArgs, type StepArgs } from '../core/mixer.js';
import { Linear } from '../linears.js';
import { BaseNormalization, RmsNorm } from '../normalizations.js';
import { Dropout, dropoutField } from '../stochastics.js';
import { BaseKvCache, type CachedHeads, filledUpTo } from './caches.js';
import { stepsFrom } from './positions.js';
import { AttentionProjection } from './projections.js';
import { RotaryPositionalEmbedding } from './rotations.js';
import { attentionOptions, type Visibility } from './visibility.js';

/** A cache of keys alone: values are their first `valueDim` elements. */
export class LatentCache extends BaseKvCache.with({
  valueDim: z.int().positive().describe('Depth of a value.'),
}) {
  override decodeStateSpecs(batchSize: number, seqLen: number): Record<string, DecodeStateSpec> {
    const { key_state } = this.specsOf(batchSize, seqLen);
    return { key_state: key_state! };
  }

  extend(key: Tensor, _value: Tensor, args: StepArgs): CachedHeads {
    const all = this.write('key_state', key, args.timeStep);
    const value = tf.slice(all, [0, 0, 0, 0], [-1, -1, -1, this.hp.valueDim]);
    return { key: all, value, seen: filledUpTo(args, key.shape[1]!) };
  }
}

/** [B, T, D] as rows [B T, D]. */
const rowsOf = (x: Tensor): Tensor => tf.reshape(x, [x.shape[0]! * x.shape[1]!, x.shape[2]!]);

/** Parts of the last axis of rows [B T, ...], as [B, T, ...] like `x`. */
function split(rows: Tensor, x: Tensor, sizes: readonly [number, number]): [Tensor, Tensor] {
  const [batch, steps] = x.shape as [number, number];
  return tf
    .split(rows, [...sizes], -1)
    .map((part) => tf.reshape(part, [batch, steps, ...part.shape.slice(1)])) as [Tensor, Tensor];
}

/** Products by head: x [B, T, N, K] and w [N, K, M], or [N, M, K] where `transposed`, to [B, T, N, M]. */
function multiplyHeads(x: Tensor, w: Tensor, transposed = false): Tensor {
  const [batch, steps, heads, depth] = x.shape as [number, number, number, number];
  const rows = tf.reshape(tf.transpose(x, [2, 0, 1, 3]), [heads, batch * steps, depth]);
  const products = tf.matMul(rows, w, false, transposed);
  return tf.transpose(tf.reshape(products, [heads, batch, steps, products.shape[2]!]), [1, 2, 0, 3]);
}

/**
 * Attention with c = norm(x W_c) [B, T, kvLoraRank] in place of keys and values: of each head, k = (c W_k, r) and v = c W_v, where
 * r, a rotated projection of x, is the same for all heads; q = (norm(x W_a) W_b, rotated in its last elements). Variables are
 * those of DeepSeek's own implementation.
 *
 * A decode keeps c and r alone, and multiplies W_k into the queries and W_v into the weighted sums of c instead of
 * making keys and values of each token again.
 */
export class LatentAttention extends BaseMixer.with({
  numHeads: z.int().positive().describe('Number of heads N.'),
  qLoraRank: z.int().positive().nullable().default(null).describe('Depth of the latent queries; null: none.'),
  kvLoraRank: z.int().positive().describe('Depth of the latent keys and values.'),
  qkNopeHeadDim: z.int().positive().describe('Depth of a query without position.'),
  qkRopeHeadDim: z.int().positive().multipleOf(2).describe('Depth of the part of a query that is rotated.'),
  vHeadDim: z.int().positive().describe('Depth of a value.'),
  logitScale: z
    .number()
    .nullable()
    .default(null)
    .describe('Factor of the logits; null: 1 / sqrt(qkNopeHeadDim + qkRopeHeadDim).'),
  attenDropoutProb: dropoutField('an attention weight'),
  dropoutTpl: sub(Dropout).describe('Dropout of attention weights; keepProb is 1 - attenDropoutProb.'),
  lnTpl: sub(BaseNormalization, () => RmsNorm.config()).describe('Norm of latent vectors.'),
  rotaryPositionEmbTpl: sub(RotaryPositionalEmbedding).describe('The rotation.'),
}) {
  #queries!: (x: Tensor) => Tensor;
  #down!: Linear;
  #norm!: BaseNormalization;
  #up!: AttentionProjection;
  #post!: AttentionProjection;
  #rotary!: RotaryPositionalEmbedding;
  #cache!: LatentCache;
  #dropout!: Dropout;

  protected override setup(): void {
    const { hp } = this;
    const { inputDim, numHeads, qLoraRank, kvLoraRank, qkNopeHeadDim, qkRopeHeadDim, vHeadDim } = hp;
    const project = (name: string, depth: number, dimPerHead: number, isOutputProjection = false) =>
      this.createChild(
        name,
        AttentionProjection.config({
          inputDim: depth,
          numHeads,
          dimPerHead,
          isOutputProjection,
          useBias: false,
        }),
      );
    const narrow = (name: string, outputDims: number) =>
      this.createChild(name, Linear.config({ inputDims: inputDim, outputDims }));
    const norm = (name: string, dim: number): BaseNormalization =>
      this.createChild(name, deepCopy(hp.lnTpl), { dim });
    const queryDim = qkNopeHeadDim + qkRopeHeadDim;
    if (qLoraRank === null) {
      const whole = project('q_proj', inputDim, queryDim);
      this.#queries = (x) => whole.fprop(x);
    } else {
      const [down, ofQueries] = [narrow('q_a_proj', qLoraRank), norm('q_a_layernorm', qLoraRank)];
      const up = project('q_b_proj', qLoraRank, queryDim);
      this.#queries = (x) => up.fprop(ofQueries.fprop(down.fprop(x)));
    }
    this.#down = narrow('kv_a_proj_with_mqa', kvLoraRank + qkRopeHeadDim);
    this.#norm = norm('kv_a_layernorm', kvLoraRank);
    this.#up = project('kv_b_proj', kvLoraRank, qkNopeHeadDim + vHeadDim);
    this.#post = project('o_proj', inputDim, vHeadDim, true);
    const embeddingDims = qkRopeHeadDim;
    this.#rotary = this.createChild('rotary_position_emb', hp.rotaryPositionEmbTpl, { embeddingDims });
    const dimPerHead = kvLoraRank + qkRopeHeadDim;
    const cacheTpl = LatentCache.config({ numHeads: 1, dimPerHead, valueDim: kvLoraRank });
    this.#cache = this.createChild('kv_cache', cacheTpl);
    this.#dropout = this.createChild('atten_dropout', hp.dropoutTpl, { keepProb: 1 - hp.attenDropoutProb });
  }

  /** Queries without position [B, T, N, qkNopeHeadDim], and rotated ones [B, T, N, qkRopeHeadDim]. */
  #splitQueries(x: Tensor, position: Tensor | undefined): [Tensor, Tensor] {
    const { qkNopeHeadDim, qkRopeHeadDim } = this.hp;
    const [plain, turned] = split(this.#queries(rowsOf(x)), x, [qkNopeHeadDim, qkRopeHeadDim]);
    return [plain, this.#rotary.fprop(turned, position)];
  }

  /** Latent vectors [B, S, kvLoraRank], and the rotated key of all heads [B, S, 1, qkRopeHeadDim]. */
  #latents(x: Tensor, position: Tensor | undefined): [Tensor, Tensor] {
    const { kvLoraRank, qkRopeHeadDim } = this.hp;
    const [latent, turned] = split(this.#down.fprop(rowsOf(x)), x, [kvLoraRank, qkRopeHeadDim]);
    return [this.#norm.fprop(latent), this.#rotary.fprop(tf.expandDims(turned, 2), position)];
  }

  #attend(query: Tensor, key: Tensor, value: Tensor, seen: Visibility): Tensor {
    const { logitScale, qkNopeHeadDim, qkRopeHeadDim, attenDropoutProb } = this.hp;
    const dropout = attenDropoutProb > 0 && !this.doEval ? this.#dropout.ofWeights() : undefined;
    return ops.attention(query, key, value, {
      scale: logitScale ?? (qkNopeHeadDim + qkRopeHeadDim) ** -0.5,
      ...attentionOptions(seen, query.shape[1]!),
      ...(dropout && { dropout }),
    });
  }

  /** Self-attention, or attention to `keyVec`: [B, T, D] to the same shape. */
  override fprop(inputs: Tensor, { seen = {}, keyVec = inputs }: MixerArgs = {}): Tensor {
    const { qkNopeHeadDim, vHeadDim, numHeads } = this.hp;
    const query = tf.concat(this.#splitQueries(inputs, seen.positions?.queries), -1);
    const [latent, turned] = this.#latents(keyVec, seen.positions?.keys);
    const [plain, value] = split(this.#up.fprop(rowsOf(latent)), latent, [qkNopeHeadDim, vHeadDim]);
    const key = tf.concat([plain, tf.tile(turned, [1, 1, numHeads, 1])], -1);
    return this.#post.fprop(this.#attend(query, key, value, seen));
  }

  override extendStep(inputs: Tensor, args: StepArgs): Tensor {
    const { qkNopeHeadDim, vHeadDim, numHeads } = this.hp;
    const position = stepsFrom(args.timeStep, inputs.shape[1]!);
    const [plain, turned] = this.#splitQueries(inputs, position);
    const byHead = tf.transpose(this.#up.theta.w, [1, 0, 2]);
    const [keyWeights, valueWeights] = tf.split(byHead, [qkNopeHeadDim, vHeadDim], -1) as [Tensor, Tensor];
    const query = tf.concat([multiplyHeads(plain, keyWeights, true), turned], -1);
    const [latent, turnedKey] = this.#latents(inputs, position);
    const own = tf.concat([tf.expandDims(latent, 2), turnedKey], -1);
    const { key, value, seen } = this.#cache.extend(own, own, args);
    const forAll = (x: Tensor): Tensor => tf.tile(x, [1, 1, numHeads, 1]);
    const sums = this.#attend(query, forAll(key), forAll(value), seen);
    return this.#post.fprop(multiplyHeads(sums, valueWeights));
  }
}
