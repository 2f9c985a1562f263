/** @file Multi-head dot-product attention, over whole sequences and one token at a time. */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../compiler/index.js';
import { deepCopy, derive, sub } from '../hparams/index.js';
import { BaseLayer, type DecodeStateSpec } from './baseLayer.js';
import { dimPerHeadField, dropoutField } from './fields.js';
import { RotaryPositionalEmbedding, stepsFrom } from './positions.js';
import { flattenLeading } from './project.js';
import { AttentionProjection, CombinedQKVProjectionLayer, PerDimScale } from './projections.js';
import { Dropout } from './stochastics.js';
import { WeightInit } from './weightInit.js';

/** What a self-attention needs to know beside its inputs. */
export interface AttentionArgs {
  /** [B, T] of inputs that come flattened, as [B T, D]. */
  readonly batchTime?: readonly [number, number] | undefined;
  /** Whether position t sees positions 0 to t only. Default false. */
  readonly causal?: boolean | undefined;
  /** Added to the logits: broadcastable to [B, N, T, S]. */
  readonly attenMask?: Tensor | undefined;
  /** int32 [B, T]: positions for rotary embeddings; 0 to T - 1 where absent. */
  readonly segmentPos?: Tensor | undefined;
}

/** What a query may see. */
interface Visibility {
  readonly causal: boolean;
  readonly mask?: Tensor | undefined;
  /** int32 scalar: how many of the keys are there. */
  readonly visible?: Tensor | undefined;
}

/** Scaled dot-product attention over several heads (Vaswani et al., 2017). */
export class DotProductAttention extends BaseLayer.with({
  inputDim: z.int().positive().describe('Depth of the model.'),
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
}) {
  #qkv!: (inputs: Tensor) => [Tensor, Tensor, Tensor];
  #post!: AttentionProjection;
  #dropout!: Dropout;
  #perDimScale: PerDimScale | null = null;
  #rotary: RotaryPositionalEmbedding | null = null;

  /** Depth of a head. */
  get dimPerHead(): number {
    return this.hp.dimPerHead ?? this.hp.hiddenDim / this.hp.numHeads;
  }

  protected override setup(): void {
    const { hp, dimPerHead } = this;
    if (!Number.isInteger(dimPerHead)) {
      throw this.error(
        `hiddenDim ${hp.hiddenDim} is not a multiple of numHeads ${hp.numHeads}; set dimPerHead.`,
      );
    }
    this.#createProjections();
    this.#dropout = this.createChild(
      'atten_dropout',
      derive(hp.dropoutTpl, (p) => {
        p.keepProb = 1 - hp.attenDropoutProb;
      }),
    );
    if (hp.internalEnableQueryScale && hp.internalEnablePerDimScale) {
      this.#perDimScale = this.createChild('per_dim_scale', PerDimScale.config({ dim: dimPerHead }));
    }
    if (hp.useRotaryPositionEmb) {
      this.#rotary = this.createChild(
        'rotary_position_emb',
        derive(hp.rotaryPositionEmbTpl, (p) => {
          p.embeddingDims = dimPerHead;
        }),
      );
    }
  }

  #createProjections(): void {
    const { hp, dimPerHead } = this;
    const { inputDim, numHeads, useBias } = hp;
    // One template serves several children, which must not be one layer.
    const projection = (isOutputProjection: boolean) =>
      derive(deepCopy(hp.projTpl), (p) => {
        Object.assign(p, { inputDim, numHeads, dimPerHead, useBias, isOutputProjection });
        if (isOutputProjection && hp.outputProjInit) p.paramsInit = hp.outputProjInit;
      });
    if (hp.combineQkv) {
      const combined = this.createChild(
        'combined_qkv',
        derive(hp.combinedQkvProjTpl, (p) => {
          Object.assign(p, { inputDim, numHeads, dimPerHead, useBias });
        }),
      );
      this.#qkv = (inputs) => combined.fprop(inputs);
    } else {
      const key = this.createChild('key', projection(false));
      const query = this.createChild('query', projection(false));
      const value = this.createChild('value', projection(false));
      this.#qkv = (inputs) => [query.fprop(inputs), key.fprop(inputs), value.fprop(inputs)];
    }
    this.#post = this.createChild('post', projection(true));
  }

  /**
   * Self-attention.
   *
   * @param inputs [B, T, D], or [B T, D] with `args.batchTime`.
   * @returns the shape of inputs.
   */
  fprop(inputs: Tensor, args: AttentionArgs = {}): Tensor {
    const [batch, time] = this.#batchTime(inputs, args);
    const [query, key, value] = this.#project(flattenLeading(inputs), batch, time);
    const encoded = this.#attend(
      this.#rotate(query, args.segmentPos),
      this.#rotate(key, args.segmentPos),
      value,
      { causal: args.causal ?? false, mask: args.attenMask },
    );
    return tf.reshape(this.#output(encoded), inputs.shape);
  }

  /** Keys, already rotated where rotary embeddings are used, and values of every token so far. */
  override decodeStateSpecs(batchSize: number, seqLen: number): Record<string, DecodeStateSpec> {
    const spec: DecodeStateSpec = {
      // A head's tokens lie together: they are read in the order of memory.
      shape: [batchSize, this.hp.numHeads, seqLen, this.dimPerHead],
      dtype: 'float32',
      ...(this.fpropDtype === 'bfloat16' && { rounded: true }),
    };
    return { key_state: spec, value_state: spec };
  }

  /**
   * Attention of one token to itself and to those before it, whose keys and values the decode state holds.
   *
   * @param inputs [B, D].
   * @param timeStep int32 scalar: the token's position, below the state's length.
   * @returns [B, D].
   */
  extendStep(inputs: Tensor, timeStep: Tensor): Tensor {
    return this.#extend(inputs, timeStep, 1);
  }

  /**
   * The same for several tokens of each sequence at once; each sees itself and those before it.
   *
   * @param inputs [B steps, D].
   * @param timeStep int32 scalar: the first one's position.
   * @returns [B steps, D].
   */
  prefill(inputs: Tensor, timeStep: Tensor, steps: number): Tensor {
    return this.#extend(inputs, timeStep, steps);
  }

  #extend(inputs: Tensor, timeStep: Tensor, steps: number): Tensor {
    const [query, key, value] = this.#project(inputs, inputs.shape[0]! / steps, steps);
    const position = this.#rotary ? tf.reshape(stepsFrom(timeStep, steps), [1, steps]) : undefined;
    const keys = this.#extendState('key_state', this.#rotate(key, position), timeStep);
    const values = this.#extendState('value_state', value, timeStep);
    const visible = tf.add(timeStep, tf.scalar(steps, 'int32')) as Tensor;
    return this.#output(this.#attend(this.#rotate(query, position), keys, values, { causal: true, visible }));
  }

  /** Writes `tokens` [B, T, N, H] from slot `timeStep` on to a state [B, N, S, H]; gives it as [B, S, N, H]. */
  #extendState(name: string, tokens: Tensor, timeStep: Tensor): Tensor {
    const extended = ops.updateSlice(this.getDecodeState(name), swapTimeAndHeads(tokens), timeStep, 2);
    this.updateDecodeState(name, extended);
    return swapTimeAndHeads(extended);
  }

  /** inputs [B T, D] to query, key and value [B, T, N, H]. */
  #project(inputs: Tensor, batch: number, time: number): [Tensor, Tensor, Tensor] {
    const shape = [batch, time, this.hp.numHeads, this.dimPerHead];
    return this.#qkv(inputs).map((x) => tf.reshape(x, shape)) as [Tensor, Tensor, Tensor];
  }

  #rotate(x: Tensor, position: Tensor | undefined): Tensor {
    return this.#rotary ? this.#rotary.fprop(x, position) : x;
  }

  /** encoded [B, T, N, H] to [B T, D]. */
  #output(encoded: Tensor): Tensor {
    return this.#post.fprop(tf.reshape(encoded, [-1, this.hp.numHeads * this.dimPerHead]));
  }

  #attend(query: Tensor, key: Tensor, value: Tensor, { causal, mask, visible }: Visibility): Tensor {
    const scaled = this.#perDimScale ? this.#perDimScale.fprop(query) : query;
    const options = { scale: this.#logitScale(), causal, logitCap: this.hp.attenLogitCap };
    if (this.hp.attenDropoutProb === 0 || this.doEval) {
      return ops.attention(scaled, key, value, {
        ...options,
        ...(mask && { mask }),
        ...(visible && { visible }),
      });
    }
    if (visible) throw this.error('decodes without dropout only; run it with doEval.');
    return this.#attendWithDropout(scaled, key, value, options, mask);
  }

  /** The factor on logits that is a plain number. */
  #logitScale(): number {
    const { hp, dimPerHead } = this;
    let scale = hp.scaleLogitsByHeadDims ? dimPerHead ** -0.5 : 1;
    if (hp.internalEnableQueryScale && !hp.internalEnablePerDimScale) {
      scale *= (hp.scaleQueryByDimPerHead ? dimPerHead : Math.floor(hp.hiddenDim / hp.numHeads)) ** -0.5;
    }
    return scale;
  }

  #attendWithDropout(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    { scale, causal, logitCap }: { scale: number; causal: boolean; logitCap: number },
    mask: Tensor | undefined,
  ): Tensor {
    let logits: Tensor = tf.matMul(swapTimeAndHeads(query), swapTimeAndHeads(key), false, true);
    if (scale !== 1) logits = tf.mul(logits, scale);
    if (logitCap > 0) logits = tf.mul(tf.tanh(tf.div(logits, logitCap)), logitCap);
    if (causal) logits = tf.add(logits, ops.causalMask(query.shape[1]!, query.shape[1]!));
    if (mask) logits = tf.add(logits, mask);
    const weights = this.#dropout.fprop(ops.softmax(logits));
    return swapTimeAndHeads(tf.matMul(weights as tf.Tensor4D, swapTimeAndHeads(value)));
  }

  #batchTime(inputs: Tensor, { batchTime }: AttentionArgs): readonly [number, number] {
    if (inputs.rank === 3) return [inputs.shape[0]!, inputs.shape[1]!];
    if (inputs.rank === 2 && batchTime && batchTime[0] * batchTime[1] === inputs.shape[0]) return batchTime;
    throw this.error(
      `expected inputs [B, T, ${this.hp.inputDim}], or [B T, ${this.hp.inputDim}] with batchTime [B, T]; ` +
        `got [${inputs.shape.join(', ')}] and batchTime ${batchTime ? `[${batchTime.join(', ')}]` : 'absent'}.`,
    );
  }
}

/** [B, T, N, H] to [B, N, T, H], or back. */
const swapTimeAndHeads = (x: Tensor): tf.Tensor4D => tf.transpose(x as tf.Tensor4D, [0, 2, 1, 3]);
