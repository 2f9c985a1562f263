/** @file Multi-head dot-product attention, over whole sequences and token by token (praxis/layers/attentions.py). */
import { ops, type Tensor, tf } from '../../compiler/index.js';
import { type ConfigValues, deepCopy } from '../../hparams/index.js';
import { checkpointName } from '../checkpointPolicy.js';
import { BaseMixer, type MixerArgs, type StepArgs } from '../core/mixer.js';
import { constantInit } from '../core/weightInit.js';
import type { BaseNormalization } from '../normalizations.js';
import type { Dropout } from '../stochastics.js';
import { attentionFields } from './attentionFields.js';
import type { BasePositionBias } from './biases.js';
import { type BaseKvCache, type CachedHeads, MemoryCache } from './caches.js';
import type { CausalDepthwiseConv1D } from './causalDepthwise.js';
import type { KeyValuePrefix } from './keyValuePrefix.js';
import { stepsFrom } from './positions.js';
import { type AttentionProjection, PerDimScale } from './projections.js';
import type { RotaryPositionalEmbedding } from './rotations.js';
import { attentionOptions, narrowed, positionsOf, type Visibility } from './visibility.js';

/** Query, key and value of each head: [B, T, N, H], and [B, S, numKvHeads, H] twice. */
export interface Heads {
  readonly query: Tensor;
  readonly key: Tensor;
  readonly value: Tensor;
}

/** Means of a part of the keys and the logarithms of their weights' sums, from one tensor. */
function unpacked(part: Tensor): ops.AttentionPart {
  const [means, logSums] = tf.split(part, [part.shape[3]! - 1, 1], -1) as [Tensor, Tensor];
  return { means, logSums };
}

/**
 * softmax(query key^T / sqrt(H) + mask) value for each of N heads, between projections (Vaswani et al., 2017).
 *
 * Subclasses may override: `project` (other projections), `numKvHeads` (grouped queries), `window` (the keys around a query
 * that it sees), `dotAtten` (another visibility), `positionBias` (biases by position), `attenLogits` (other products).
 */
export class DotProductAttention extends BaseMixer.with(attentionFields) {
  #qkv!: (queryVec: Tensor, keyVec: Tensor, valueVec: Tensor) => Heads;
  #post!: AttentionProjection;
  #dropout!: Dropout;
  #cache!: BaseKvCache;
  #perDimScale: PerDimScale | null = null;
  #rotary: RotaryPositionalEmbedding | null = null;
  #gate: AttentionProjection | null = null;
  #convolutions: Readonly<Record<keyof Heads, CausalDepthwiseConv1D>> | null = null;
  #norms: Readonly<Record<'query' | 'key', BaseNormalization>> | null = null;
  #relativeBias: BasePositionBias | null = null;
  #prefix: KeyValuePrefix | null = null;

  /** Depth of a head. */
  get dimPerHead(): number {
    return this.hp.dimPerHead ?? this.hp.hiddenDim / this.hp.numHeads;
  }

  /** Number of key and value heads in `dotAtten`. */
  protected get numKvHeads(): number {
    return this.hp.numHeads;
  }

  /** The keys around a query that it sees; undefined: all. */
  protected get window(): Partial<ops.Window> | undefined {
    const { windowSize } = this.hp;
    return windowSize === null ? undefined : { before: windowSize - 1 };
  }

  protected override setup(): void {
    const { hp, dimPerHead } = this;
    if (!Number.isInteger(dimPerHead)) {
      throw this.error(
        `hiddenDim ${hp.hiddenDim} is not a multiple of numHeads ${hp.numHeads}; set dimPerHead.`,
      );
    }
    this.#createProjections();
    const before = this.window?.before;
    const windowSize = before === undefined ? null : before + 1;
    this.#cache = this.createChild('kv_cache', hp.cacheTpl, {
      ...{ numHeads: this.numKvHeads, dimPerHead, windowSize },
    });
    this.#dropout = this.createChild('atten_dropout', hp.dropoutTpl, { keepProb: 1 - hp.attenDropoutProb });
    if (hp.internalEnableQueryScale && hp.internalEnablePerDimScale) {
      this.#perDimScale = this.createChild('per_dim_scale', PerDimScale.config({ dim: dimPerHead }));
    }
    if (hp.useRotaryPositionEmb) {
      const embeddingDims = dimPerHead;
      this.#rotary = this.createChild('rotary_position_emb', hp.rotaryPositionEmbTpl, { embeddingDims });
    }
    this.#createParts();
  }

  /** Optional parts. */
  #createParts(): void {
    const { hp, dimPerHead, numKvHeads } = this;
    const { numHeads, dconvKernelSize: kernelSize, lnTpl, relativeBiasTpl, prefixTpl } = hp;
    if (hp.dconvQkv) {
      const create = (name: string, heads: number): CausalDepthwiseConv1D =>
        this.createChild(name, deepCopy(hp.causalDepthwiseConv1dTpl), {
          ...{ kernelSize, hiddenDims: [heads, dimPerHead] },
        });
      const [query, key] = [create('dconv_q', numHeads), create('dconv_k', numKvHeads)];
      this.#convolutions = { query, key, value: create('dconv_v', numKvHeads) };
    }
    if (lnTpl) {
      const create = (name: string, heads: number): BaseNormalization =>
        this.createChild(name, deepCopy(lnTpl), { dim: hp.normAllHeads ? heads * dimPerHead : dimPerHead });
      this.#norms = { query: create('layer_norm_q', numHeads), key: create('layer_norm_k', numKvHeads) };
    }
    if (relativeBiasTpl)
      this.#relativeBias = this.createChild('relative_bias', relativeBiasTpl, { numHeads });
    if (prefixTpl) this.#prefix = this.createChild('prefix', prefixTpl, { numHeads: numKvHeads, dimPerHead });
    if (!hp.useSinks) return;
    if (hp.attentionExtraLogit !== null)
      throw this.error('attentionExtraLogit is constant, useSinks trains it: expected one of them.');
    this.createVariable('sinks', { shape: [numHeads], init: constantInit(0) });
  }

  /** A projection to `numHeads` heads, or from them. */
  protected createProjection(
    name: string,
    overrides: Partial<ConfigValues<AttentionProjection>>,
  ): AttentionProjection {
    const { inputDim, useBias, projTpl } = this.hp;
    // Copies the template: children made from one config object would be one layer.
    return this.createChild(name, deepCopy(projTpl), {
      ...{ inputDim, dimPerHead: this.dimPerHead, useBias },
      ...overrides,
    });
  }

  /** Makes the projection of keys or of values: vectors [B, S, D] to [B, S, numKvHeads, H]. */
  protected createKeyOrValue(name: 'key' | 'value'): (vectors: Tensor) => Tensor {
    const sizes = { numHeads: this.numKvHeads, useBias: this.hasBias(name) };
    const projection = this.createProjection(name, sizes);
    return (vectors) => projection.fprop(vectors);
  }

  /** Whether the projection of keys, or of values, has a bias. */
  protected hasBias(name: 'key' | 'value'): boolean {
    return this.hp.useBias && (name === 'value' || this.hp.useKeyBias);
  }

  #createProjections(): void {
    const { hp, dimPerHead, numKvHeads } = this;
    const { inputDim, numHeads, useBias, outputProjInit } = hp;
    if (hp.combineQkv) {
      if (numKvHeads !== numHeads)
        throw this.error(
          `combineQkv has one variable for ${numHeads} heads of queries and ${numKvHeads} of keys.`,
        );
      if (useBias && !hp.useKeyBias)
        throw this.error('combineQkv has one bias for all: expected useKeyBias true, got false.');
      const combined = this.createChild('combined_qkv', hp.combinedQkvProjTpl, {
        ...{ inputDim, dimPerHead, useBias, numHeads },
      });
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
      const key = this.createKeyOrValue('key');
      const query = this.createProjection('query', { numHeads });
      const value = this.createKeyOrValue('value');
      this.#qkv = (queryVec, keyVec, valueVec) => ({
        query: checkpointName(query.fprop(queryVec), 'query_proj'),
        key: checkpointName(key(keyVec), 'key_proj'),
        value: checkpointName(value(valueVec), 'value_proj'),
      });
    }
    this.#post = this.createProjection('post', {
      numHeads,
      isOutputProjection: true,
      useBias: useBias && hp.useOutputBias,
      ...(outputProjInit && { paramsInit: outputProjInit }),
    });
    if (hp.useOutputGate) this.#gate = this.createProjection('gate', { numHeads });
  }

  /**
   * Attention of each query vector to the keys and values.
   *
   * @param queryVec [B, T, D].
   * @param args self-attention where it has neither keyVec nor valueVec.
   * @returns [B, T, D].
   */
  fprop(queryVec: Tensor, { seen = {}, keyVec = queryVec, valueVec = keyVec }: MixerArgs = {}): Tensor {
    const { positions, paddings } = seen;
    if (this.#convolutions && (keyVec !== queryVec || valueVec !== queryVec))
      throw this.error('dconvQkv is for self-attention: query, key and value vectors are one tensor.');
    const { query, key, value } = this.#convolved(this.project(queryVec, keyVec, valueVec), (layer, x) =>
      layer.fprop(x, positions?.keys, paddings),
    );
    const ready = [
      this.#ready('query', query, positions?.queries),
      this.#ready('key', key, positions?.keys),
    ] as const;
    const inWindow = this.window ? narrowed(seen, this.window) : seen;
    return checkpointName(this.#output(this.dotAtten(...ready, value, inWindow), queryVec), 'out_proj');
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
    this.#cache.begin(this.#ready('key', heads.key, undefined), heads.value);
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
    const { query, key, value } = this.#convolved(this.project(inputs, inputs, inputs), (layer, x) =>
      layer.extendStep(x, args),
    );
    const cached = this.#cache.extend(this.#ready('key', key, position), value, args);
    // A cache knows the window before a query; only tokens of a prefix see any after them.
    const seen = args.prefix && this.window ? narrowed(cached.seen, this.window) : cached.seen;
    const queries = this.#ready('query', query, position);
    const own = this.dotAtten(queries, cached.key, cached.value, seen);
    const encoded = cached.ofPrompts ? this.#joined(own, queries, cached.ofPrompts) : own;
    return this.#output(encoded, inputs);
  }

  /** Joins the part of a row's own keys with that of its prompt, in which queries of all its rows are one list. */
  #joined(own: Tensor, query: Tensor, { key, value, seen }: CachedHeads): Tensor {
    const [batch, steps, ...heads] = query.shape as [number, number, number, number];
    const prompts = key.shape[0]!;
    const listed = tf.reshape(query, [prompts, (batch / prompts) * steps, ...heads]);
    const ofPrompts = this.dotAtten(listed as Tensor, key, value, seen);
    return ops.joinParts([own, tf.reshape(ofPrompts, own.shape) as Tensor].map(unpacked));
  }

  #convolved({ query, key, value }: Heads, call: (layer: CausalDepthwiseConv1D, x: Tensor) => Tensor): Heads {
    const of = this.#convolutions;
    if (!of) return { query, key, value };
    return { query: call(of.query, query), key: call(of.key, key), value: call(of.value, value) };
  }

  /** Queries or keys as they are multiplied: with their positions, and normed. */
  #ready(which: 'query' | 'key', heads: Tensor, position: Tensor | undefined): Tensor {
    const norm = (x: Tensor): Tensor => this.#normed(this.#norms?.[which], x);
    return this.hp.normBeforeRotary ? this.rotate(norm(heads), position) : norm(this.rotate(heads, position));
  }

  #normed(norm: BaseNormalization | undefined, heads: Tensor): Tensor {
    if (!norm) return heads;
    if (!this.hp.normAllHeads) return norm.fprop(heads);
    const [batch, steps, count, depth] = heads.shape as [number, number, number, number];
    return tf.reshape(norm.fprop(tf.reshape(heads, [batch, steps, count * depth])), heads.shape);
  }

  /** Weighted sums [B, T, N, H] to vectors [B, T, D]. */
  #output(encoded: Tensor, queryVec: Tensor): Tensor {
    const context = checkpointName(encoded, 'context');
    return this.#post.fprop(this.#gate ? tf.mul(context, tf.sigmoid(this.#gate.fprop(queryVec))) : context);
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
   * @returns [B, T, N, H]; of keys in two parts [B, T, N, H + 1], behind each mean the logarithm of its sum of weights.
   */
  protected dotAtten(query: Tensor, key: Tensor, value: Tensor, seen: Visibility): Tensor {
    const scaled = this.#perDimScale ? this.#perDimScale.fprop(query) : query;
    return this.attend(scaled, key, value, { seen, bias: this.positionBias(query, key, seen) });
  }

  /** The bias of the logits by the positions of queries and keys, [B, N, T, S]; undefined: none. */
  protected positionBias(query: Tensor, key: Tensor, seen: Visibility): Tensor | undefined {
    return this.#relativeBias?.fprop(positionsOf(seen, query.shape[1]!, key.shape[1]!));
  }

  /** Queries [B, T, N, H] with all of their scales, so that something else may be added to them. */
  protected scaleQuery(query: Tensor): Tensor {
    return this.#perDimScale ? this.#perDimScale.fprop(query) : tf.mul(query, this.#queryScale);
  }

  /** The weighted sums for queries whose logits are to be multiplied by `scale`; the bias is added before the cap. */
  protected attend(
    query: Tensor,
    ofSequence: Tensor,
    valuesOfSequence: Tensor,
    {
      scale = this.logitScale,
      ...given
    }: Readonly<{ seen: Visibility; bias?: Tensor | undefined; scale?: number }>,
  ): Tensor {
    const keys = { key: ofSequence, value: valuesOfSequence, ...given };
    const { part } = given.seen;
    // What stands beside the keys of a sequence is no part of a prompt.
    const isWhole = part !== 'prompt';
    const { key, value, seen, bias } = (isWhole && this.#prefix?.fprop(keys, query.shape[1]!)) || keys;
    const { attenDropoutProb, attenLogitCap, useSinks, attentionExtraLogit, numHeads } = this.hp;
    const dropout = attenDropoutProb > 0 && !this.doEval ? this.#dropout.ofWeights() : undefined;
    const ofHeads = this.#logitFactor;
    const own = bias && ofHeads !== 1 ? tf.mul(bias, ofHeads) : bias;
    // The kernel adds biases behind the cap.
    const isCapped = own !== undefined && attenLogitCap > 0;
    const products = this.attenLogits?.bind(this) ?? (isCapped ? ops.attentionLogits : undefined);
    const logits = isCapped ? (q: Tensor, k: Tensor) => tf.add(products!(q, k), own) : products;
    const biases = [seen.bias, isCapped ? undefined : own].filter((x) => x !== undefined);
    const all = biases.length === 0 ? seen : { ...seen, bias: biases.reduce((a, b) => tf.add(a, b)) };
    const extra = attentionExtraLogit === null ? undefined : tf.fill([numHeads], attentionExtraLogit);
    const sinks = isWhole ? (useSinks ? this.theta.sinks : extra) : undefined;
    const options = {
      ...{ scale, logitCap: attenLogitCap },
      ...attentionOptions(all, query.shape[1]!),
      ...(sinks && { sinks }),
      ...(logits && { logits }),
      ...(dropout && { dropout }),
    };
    if (part === undefined) return ops.attention(query, key, value, options);
    const { means, logSums } = ops.attentionPart(query, key, value, options);
    return tf.concat([means, logSums], -1) as Tensor;
  }

  /**
   * Custom logits, before cap and masks, from scaled queries [B, T, N, H] and keys [B, S, N, H]: [B, N, T, S]. If
   * absent, `ops.attentionLogits`, which a kernel computes blockwise.
   */
  protected attenLogits?(query: Tensor, key: Tensor): Tensor;

  /** Constant factor of the logits, besides the trained per-dimension one. */
  protected get logitScale(): number {
    return this.#logitFactor * this.#queryScale;
  }

  /** Factor of logits and biases alike. */
  get #logitFactor(): number {
    return this.hp.scaleLogitsByHeadDims ? this.dimPerHead ** -0.5 : 1;
  }

  /** Constant factor of the queries. */
  get #queryScale(): number {
    const { hp, dimPerHead } = this;
    if (!hp.internalEnableQueryScale || hp.internalEnablePerDimScale) return 1;
    return (hp.scaleQueryByDimPerHead ? dimPerHead : Math.floor(hp.hiddenDim / hp.numHeads)) ** -0.5;
  }

  /** The factor of the logits of queries by {@link scaleQuery}. */
  protected get factorOfScaled(): number {
    return this.#logitFactor;
  }
}
