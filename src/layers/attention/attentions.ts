/** @file Multi-head dot-product attention, over whole sequences and token by token (praxis/layers/attentions.py). */
import { z } from 'zod';
import { ops, type Tensor } from '../../compiler/index.js';
import { type ConfigValues, deepCopy, sub } from '../../hparams/index.js';
import type { CheckpointName } from '../checkpointPolicy.js';
import { BaseMixer, type MixerArgs, type StepArgs } from '../core/mixer.js';
import { WeightInit } from '../core/weightInit.js';
import { Dropout, dropoutField } from '../stochastics.js';
import { BaseKvCache, FullCache, MemoryCache, windowSizeField } from './caches.js';
import { RotaryPositionalEmbedding, stepsFrom } from './positions.js';
import { AttentionProjection, CombinedQKVProjectionLayer, PerDimScale } from './projections.js';
import { attentionOptions, narrowed, type Visibility } from './visibility.js';

/** Depth of a head; defaults to `dims`, the field with the depth of all heads, divided by numHeads. */
export const dimPerHeadField = (dims: string) =>
  z.int().positive().nullable().default(null).describe(`Depth of a head; null: ${dims} / numHeads.`);

/** Query, key and value of each head: [B, T, N, H], and [B, S, numKvHeads, H] twice. */
export interface Heads {
  readonly query: Tensor;
  readonly key: Tensor;
  readonly value: Tensor;
}

const checkpointName = (x: Tensor, name: CheckpointName): Tensor => ops.checkpointName(x, name);

/**
 * softmax(query key^T / sqrt(H) + mask) value for each of N heads, between projections (Vaswani et al., 2017).
 *
 * Subclasses may override: `project` (other projections), `numKvHeads` (grouped queries), `dotAtten` (another visibility,
 * such as biases by `positionsOf`), `attenLogits` (other products).
 */
export class DotProductAttention extends BaseMixer.with({
  hiddenDim: z.int().positive().describe('Depth of all heads together.'),
  numHeads: z.int().positive().default(1).describe('Number of heads.'),
  dimPerHead: dimPerHeadField('hiddenDim'),
  dropoutTpl: sub(Dropout).describe('Dropout of attention weights; keepProb is 1 - attenDropoutProb.'),
  attenDropoutProb: dropoutField('an attention weight'),
  projTpl: sub(AttentionProjection).describe(
    'Projections of query, key and value, and the output projection.',
  ),
  combineQkv: z
    .boolean()
    .default(false)
    .describe('Whether query, key and value projections are one variable.'),
  combinedQkvProjTpl: sub(CombinedQKVProjectionLayer).describe('The projection where combineQkv is set.'),
  useBias: z.boolean().default(true).describe('Whether projections have biases.'),
  outputProjInit: sub(WeightInit, null)
    .optional()
    .describe("Initial values of the output projection's weights; projTpl's where absent."),
  internalEnableQueryScale: z.boolean().default(true).describe('Whether queries are scaled.'),
  internalEnablePerDimScale: z
    .boolean()
    .default(true)
    .describe(
      'Scale queries by a trained factor for each dimension; else by 1 / sqrt(hiddenDim / numHeads).',
    ),
  scaleQueryByDimPerHead: z
    .boolean()
    .default(false)
    .describe('Without the trained factor: scale by 1 / sqrt(dimPerHead), where dimPerHead is given.'),
  scaleLogitsByHeadDims: z
    .boolean()
    .default(false)
    .describe('Whether logits are divided by sqrt(dimPerHead).'),
  attenLogitCap: z.number().nonnegative().default(0).describe('c > 0: logits become c tanh(logits / c).'),
  useRotaryPositionEmb: z
    .boolean()
    .default(false)
    .describe('Whether queries and keys are rotated by position.'),
  rotaryPositionEmbTpl: sub(RotaryPositionalEmbedding).describe('The rotation.'),
  windowSize: windowSizeField,
  cacheTpl: sub(BaseKvCache, () => FullCache.config()).describe(
    'The cache of keys and values in a decode, such as WindowCache, which keeps those of the window alone.',
  ),
}) {
  #qkv!: (queryVec: Tensor, keyVec: Tensor, valueVec: Tensor) => Heads;
  #post!: AttentionProjection;
  #dropout!: Dropout;
  #cache!: BaseKvCache;
  #perDimScale: PerDimScale | null = null;
  #rotary: RotaryPositionalEmbedding | null = null;

  /** Depth of a head. */
  get dimPerHead(): number {
    return this.hp.dimPerHead ?? this.hp.hiddenDim / this.hp.numHeads;
  }

  /** Number of key and value heads in `dotAtten`. */
  protected get numKvHeads(): number {
    return this.hp.numHeads;
  }

  protected override setup(): void {
    const { hp, dimPerHead } = this;
    if (!Number.isInteger(dimPerHead)) {
      throw this.error(
        `hiddenDim ${hp.hiddenDim} is not a multiple of numHeads ${hp.numHeads}; set dimPerHead.`,
      );
    }
    this.#createProjections();
    this.#cache = this.createChild('kv_cache', hp.cacheTpl, {
      ...{ numHeads: this.numKvHeads, dimPerHead, windowSize: hp.windowSize },
    });
    this.#dropout = this.createChild('atten_dropout', hp.dropoutTpl, { keepProb: 1 - hp.attenDropoutProb });
    if (hp.internalEnableQueryScale && hp.internalEnablePerDimScale) {
      this.#perDimScale = this.createChild('per_dim_scale', PerDimScale.config({ dim: dimPerHead }));
    }
    if (hp.useRotaryPositionEmb) {
      const embeddingDims = dimPerHead;
      this.#rotary = this.createChild('rotary_position_emb', hp.rotaryPositionEmbTpl, { embeddingDims });
    }
  }

  #createProjections(): void {
    const { hp, dimPerHead, numKvHeads } = this;
    const { inputDim, numHeads, useBias, outputProjInit } = hp;
    const dims = { inputDim, dimPerHead, useBias };
    // Copies the template: children made from one config object would be one layer.
    const create = (name: string, overrides: Partial<ConfigValues<AttentionProjection>>) =>
      this.createChild(name, deepCopy(hp.projTpl), { ...dims, ...overrides });
    if (hp.combineQkv) {
      if (numKvHeads !== numHeads)
        throw this.error(
          `combineQkv has one variable for ${numHeads} heads of queries and ${numKvHeads} of keys.`,
        );
      const combined = this.createChild('combined_qkv', hp.combinedQkvProjTpl, { ...dims, numHeads });
      this.#qkv = (queryVec, keyVec, valueVec) => {
        if (queryVec !== keyVec || keyVec !== valueVec)
          throw this.error('combineQkv is for self-attention: query, key and value vectors are one tensor.');
        const [query, key, value] = combined.fprop(queryVec);
        return {
          query: checkpointName(query, 'combined_qkv_proj'),
          key: checkpointName(key, 'combined_qkv_proj'),
          value: checkpointName(value, 'combined_qkv_proj'),
        };
      };
    } else {
      const key = create('key', { numHeads: numKvHeads });
      const query = create('query', { numHeads });
      const value = create('value', { numHeads: numKvHeads });
      this.#qkv = (queryVec, keyVec, valueVec) => ({
        query: checkpointName(query.fprop(queryVec), 'query_proj'),
        key: checkpointName(key.fprop(keyVec), 'key_proj'),
        value: checkpointName(value.fprop(valueVec), 'value_proj'),
      });
    }
    this.#post = create('post', {
      numHeads,
      isOutputProjection: true,
      ...(outputProjInit && { paramsInit: outputProjInit }),
    });
  }

  /**
   * Attention of each query vector to the keys and values.
   *
   * @param queryVec [B, T, D].
   * @param args self-attention where it has neither keyVec nor valueVec.
   * @returns [B, T, D].
   */
  fprop(queryVec: Tensor, { seen = {}, keyVec = queryVec, valueVec = keyVec }: MixerArgs = {}): Tensor {
    const { query, key, value } = this.project(queryVec, keyVec, valueVec);
    const { positions } = seen;
    const rotated = [this.rotate(query, positions?.queries), this.rotate(key, positions?.keys)] as const;
    const { windowSize } = this.hp;
    const inWindow = windowSize === null ? seen : narrowed(seen, { before: windowSize - 1 });
    const encoded = this.dotAtten(...rotated, value, inWindow);
    return checkpointName(this.#post.fprop(checkpointName(encoded, 'context')), 'out_proj');
  }

  /**
   * Begins a decode that attends to `memory` [B, M, D], such as an encoder's states: their keys and values are computed once.
   *
   * @throws LayerError where the cache is no MemoryCache.
   */
  begin(memory: Tensor): void {
    const { query: _, ...heads } = this.project(memory, memory, memory);
    if (!(this.#cache instanceof MemoryCache))
      throw this.error(
        `attends to its own tokens in a decode: cacheTpl is ${this.#cache.constructor.name}, not MemoryCache.`,
      );
    this.#cache.begin(this.rotate(heads.key, undefined), heads.value);
  }

  /**
   * Self-attention of the next T tokens: each sees itself and the earlier ones, whose keys and values are in the cache. With
   * a MemoryCache, attention to the memory.
   *
   * @param inputs [B, T, D].
   * @returns [B, T, D].
   */
  extendStep(inputs: Tensor, args: StepArgs): Tensor {
    const position = stepsFrom(args.timeStep, inputs.shape[1]!);
    const { query, key, value } = this.project(inputs, inputs, inputs);
    const cached = this.#cache.extend(this.rotate(key, position), value, args);
    return this.#post.fprop(
      this.dotAtten(this.rotate(query, position), cached.key, cached.value, cached.seen),
    );
  }

  /** Vectors [B, T, D], and [B, S, D] twice, as heads. */
  protected project(queryVec: Tensor, keyVec: Tensor, valueVec: Tensor): Heads {
    if (queryVec.rank !== 3) {
      throw this.error(`expected vectors [B, T, ${this.hp.inputDim}], got [${queryVec.shape.join(', ')}].`);
    }
    return this.#qkv(queryVec, keyVec, valueVec);
  }

  /** Heads [B, T, N, H] with their position (int32 [B, T] or [1, T]; 0 to T - 1 where absent), of the same shape. */
  protected rotate(heads: Tensor, position: Tensor | undefined): Tensor {
    return this.#rotary ? this.#rotary.fprop(heads, position) : heads;
  }

  /**
   * The weighted sums of values that queries see. Whole sequences and steps of a decode both come here, with their
   * positions.
   *
   * @param query [B, T, N, H]. @param key [B, S, N, H]. @param value [B, S, N, H].
   * @returns [B, T, N, H].
   */
  protected dotAtten(query: Tensor, key: Tensor, value: Tensor, seen: Visibility): Tensor {
    const dropout = this.hp.attenDropoutProb > 0 && !this.doEval ? this.#dropout.ofWeights() : undefined;
    return ops.attention(this.#perDimScale ? this.#perDimScale.fprop(query) : query, key, value, {
      scale: this.logitScale,
      logitCap: this.hp.attenLogitCap,
      ...attentionOptions(seen, query.shape[1]!),
      ...(this.attenLogits && { logits: (q: Tensor, k: Tensor) => this.attenLogits!(q, k) }),
      ...(dropout && { dropout }),
    });
  }

  /**
   * Custom logits, before cap and masks, from scaled queries [B, T, N, H] and keys [B, S, N, H]: [B, N, T, S]. If
   * absent, `ops.attentionLogits`, which a kernel computes blockwise.
   */
  protected attenLogits?(query: Tensor, key: Tensor): Tensor;

  /** Constant factor of the logits, besides the trained per-dimension one. */
  protected get logitScale(): number {
    const { hp, dimPerHead } = this;
    let scale = hp.scaleLogitsByHeadDims ? dimPerHead ** -0.5 : 1;
    if (hp.internalEnableQueryScale && !hp.internalEnablePerDimScale) {
      scale *= (hp.scaleQueryByDimPerHead ? dimPerHead : Math.floor(hp.hiddenDim / hp.numHeads)) ** -0.5;
    }
    return scale;
  }
}
