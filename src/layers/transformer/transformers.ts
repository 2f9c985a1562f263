/** @file Transformer blocks: attention, cross-attention and feed-forward with residual connections (praxis/layers/transformers.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { type Config, deepCopy, registerAlias, sub } from '../../hparams/index.js';
import { dimPerHeadField } from '../attention/attentionFields.js';
import { DotProductAttention } from '../attention/attentions.js';
import { MemoryCache } from '../attention/caches.js';
import type { Visibility } from '../attention/visibility.js';
import { checkpointName } from '../checkpointPolicy.js';
import { BaseLayer } from '../core/base.js';
import { selected } from '../core/masks.js';
import { BaseMixer, type StepArgs } from '../core/mixer.js';
import { BaseNormalization, LayerNorm } from '../normalizations.js';
import { Dropout, dropoutField, StochasticResidual } from '../stochastics.js';
import { keptPositions, TransformerFeedForward } from './feedForwards.js';
import { NormPolicy, NormPolicySchema } from './normPolicy.js';

/** A sequence that another one attends to, such as an encoder's output. */
export interface Memory {
  /** [B, M, D]. */
  readonly states: Tensor;
  /** Visibility of the M states to queries; all where absent. */
  readonly seen?: Visibility | undefined;
}

/** Arguments of transformer layers over whole sequences. */
export interface TransformerArgs {
  /** Visibility of positions to each other. */
  readonly seen?: Visibility | undefined;
  /** [B, T], 1 for padding, whose inputs count as 0; `seen` hides it. */
  readonly paddings?: Tensor | undefined;
  /** Required where `useCrossAttention` is set. */
  readonly memory?: Memory | undefined;
}

/** Sub-layers of a block in one pass, over whole sequences or token by token: [B, T, D] to [B, T, D]. */
export interface Attends {
  readonly self: (x: Tensor) => Tensor;
  /** Attention to the memory, where the block has one. */
  readonly cross?: ((x: Tensor) => Tensor) | undefined;
  /** [B, T], 1 for padding. */
  readonly paddings?: Tensor | undefined;
}

/**
 * Self-attention, attention to a memory where `useCrossAttention` is set, and feed-forward, each with norm, dropout and
 * residual connection.
 *
 * Subclasses may override: `subLayers` (their order, or further ones), `residual` (norms and connection), `createMixer` and
 * `createFeedForward` (other layers).
 */
export class Transformer extends BaseLayer.with({
  inputDims: z.int().positive().describe('Depth of the model.'),
  hiddenDims: z.int().positive().describe('Hidden depth of the feed-forward layer.'),
  numHeads: z.int().positive().default(1).describe('Attention heads.'),
  dimPerHead: dimPerHeadField('inputDims'),
  normPolicy: NormPolicySchema,
  lnTpl: sub(BaseNormalization, () => LayerNorm.config()).describe('The norm around the self-attention.'),
  trAttenTpl: sub(DotProductAttention).describe('The self-attention.'),
  mixerTpl: sub(BaseMixer, null)
    .nullable()
    .default(null)
    .describe("What stands in the self-attention's place, such as a recurrence; null: trAttenTpl."),
  useCrossAttention: z
    .boolean()
    .default(false)
    .describe("Whether an attention to a memory, such as an encoder's output, follows the self-attention."),
  crossAttenTpl: sub(DotProductAttention, null)
    .nullable()
    .default(null)
    .describe('The attention to the memory; null: trAttenTpl.'),
  trFflayerTpl: sub(TransformerFeedForward).describe('The feed-forward layer.'),
  residualDropoutTpl: sub(Dropout).describe("Dropout of the attention's output."),
  residualDropoutProb: dropoutField('an output element'),
  attenDropoutProb: dropoutField('an attention weight'),
  reluDropoutProb: dropoutField('an activation'),
  residualDroppathProb: dropoutField("a sequence's output of a sub-layer"),
}) {
  protected norms!: NormPolicy;
  protected selfAttention!: BaseMixer;
  protected crossAttention: DotProductAttention | null = null;
  protected crossNorms!: NormPolicy;
  protected residualDropout!: Dropout;
  protected droppath: StochasticResidual | null = null;
  protected feedForward!: TransformerFeedForward;

  protected override setup(): void {
    const { hp } = this;
    const { inputDims, numHeads, dimPerHead, normPolicy } = hp;
    const { attenDropoutProb, residualDropoutProb, residualDroppathProb } = hp;
    const ofAttention = { inputDim: inputDims, hiddenDim: inputDims, numHeads, dimPerHead, attenDropoutProb };
    this.norms = NormPolicy.create(normPolicy, hp.lnTpl, (name, template) =>
      this.createChild(name, template, { dim: inputDims }),
    );
    this.selfAttention = this.createMixer() ?? this.createChild('self_attention', hp.trAttenTpl, ofAttention);
    if (hp.useCrossAttention) {
      this.crossNorms = NormPolicy.create(normPolicy, deepCopy(hp.lnTpl), (name, template) =>
        this.createChild(name.replace('layer_norm', 'cross_layer_norm'), template, { dim: inputDims }),
      );
      this.crossAttention = this.createChild('cross_attention', deepCopy(hp.crossAttenTpl ?? hp.trAttenTpl), {
        ...ofAttention,
        cacheTpl: MemoryCache.config(),
      });
    }
    this.residualDropout = this.createChild('residual_dropout', hp.residualDropoutTpl, {
      keepProb: 1 - residualDropoutProb,
    });
    if (residualDroppathProb > 0)
      this.droppath = this.createChild(
        'residual_droppath',
        StochasticResidual.config({ survivalProb: 1 - residualDroppathProb }),
      );
    this.createFeedForward();
  }

  /** The layer in the attention's place, if there is one. */
  protected createMixer(): BaseMixer | null {
    return this.hp.mixerTpl && this.createMixerOf('mixer', this.hp.mixerTpl, this.hp.inputDims);
  }

  /** A mixer, from vectors of a depth to vectors of the same depth. @throws LayerError for another one */
  protected createMixerOf(name: string, template: Config<BaseMixer>, inputDim: number): BaseMixer {
    const mixer = this.createChild(name, template, { inputDim });
    if (mixer.outputDim === inputDim) return mixer;
    throw this.error(`mixerTpl: expected outputs of depth ${inputDim}, got ${mixer.outputDim}.`);
  }

  /** Creates what follows the attentions. */
  protected createFeedForward(): void {
    const { inputDims, hiddenDims, normPolicy, ...hp } = this.hp;
    const { residualDropoutProb, reluDropoutProb, residualDroppathProb } = hp;
    this.feedForward = this.createChild('ff_layer', this.feedForwardTpl(), {
      ...{ inputDims, hiddenDims },
      ...{ normPolicy, residualDropoutProb, reluDropoutProb, residualDroppathProb },
    });
  }

  /** Config of the feed-forward layer, without what the block sets. */
  protected feedForwardTpl(): Config<TransformerFeedForward> {
    return this.hp.trFflayerTpl;
  }

  /** [B, T, D] to [B, T, D]. */
  fprop(inputs: Tensor, { seen = {}, paddings, memory }: TransformerArgs = {}): Tensor {
    const { crossAttention } = this;
    if (crossAttention && !memory) throw this.error('useCrossAttention is set, and there is no memory.');
    const x = paddings ? selected(inputs, keptPositions(this, inputs, paddings)) : inputs;
    const outputs = this.subLayers(x, {
      self: (x) => this.selfAttention.fprop(x, { seen }),
      cross: crossAttention
        ? (x) => crossAttention.fprop(x, { seen: memory!.seen, keyVec: memory!.states })
        : undefined,
      paddings,
    });
    return checkpointName(outputs, 'transformer_layer_out');
  }

  /** Begins a decode: keys and values of the memory's states [B, M, D] are computed once. */
  begin(states: Tensor): void {
    this.crossAttention?.begin(states);
  }

  /** The next T tokens: inputs [B, T, D] to [B, T, D]. */
  extendStep(inputs: Tensor, args: StepArgs): Tensor {
    const { crossAttention } = this;
    return this.subLayers(inputs, {
      self: (x) => this.selfAttention.extendStep(x, args),
      cross: crossAttention ? (x) => crossAttention.extendStep(x, args) : undefined,
    });
  }

  /** Applies the sub-layers in order, [B, T, D]. */
  protected subLayers(inputs: Tensor, { self, cross, paddings }: Attends): Tensor {
    const attended = this.residual(inputs, self);
    const crossed = cross ? this.residual(attended, cross, this.crossNorms) : attended;
    return this.feedForward.fprop(crossed, paddings);
  }

  /** Adds the result of `branch` to inputs, with norms and dropout. */
  protected residual(inputs: Tensor, branch: (x: Tensor) => Tensor, norms = this.norms): Tensor {
    return this.added(inputs, branch(norms.before(inputs)), norms);
  }

  /** Adds a branch's outputs to its inputs, with the norms that come behind it, and dropout. */
  protected added(inputs: Tensor, outputs: Tensor, norms = this.norms): Tensor {
    const kept = this.residualDropout.fprop(norms.after(outputs));
    return norms.afterSkip(this.droppath ? this.droppath.fprop(inputs, kept) : tf.add(inputs, kept));
  }
}

// In documents, the short name refers to the layer; learners have a schedule with this name.
registerAlias('Transformer', Transformer);
