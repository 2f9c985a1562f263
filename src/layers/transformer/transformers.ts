/** @file Transformer blocks: feed-forward, self-attention with residual, and stacks (praxis/layers/transformers.py). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../../compiler/index.js';
import {
  type Config,
  type ConfigValues,
  deepCopy,
  deepCopyWith,
  registerAlias,
  sub,
} from '../../hparams/index.js';
import { activationField, Identity, ReLU } from '../activations.js';
import { DotProductAttention, dimPerHeadField } from '../attention/attentions.js';
import { MemoryCache } from '../attention/caches.js';
import type { Visibility } from '../attention/visibility.js';
import { CHECKPOINT_POLICIES, checkpointPolicyField } from '../checkpointPolicy.js';
import { BaseLayer } from '../core/base.js';
import { selected, unpadded } from '../core/masks.js';
import { BaseMixer, type StepArgs } from '../core/mixer.js';
import { WeightInit } from '../core/weightInit.js';
import { FeedForward } from '../linears.js';
import { BaseNormalization, LayerNorm } from '../normalizations.js';
import { Dropout, dropoutField } from '../stochastics.js';
import { NormPolicy, NormPolicySchema } from './normPolicy.js';

/** Positions of inputs [..., D] that are no padding, bool [..., 1]. */
const keptPositions = (layer: BaseLayer, inputs: Tensor, paddings: Tensor): Tensor =>
  tf.expandDims(unpadded(layer, paddings, inputs.shape.slice(0, -1)), -1);

/**
 * activation(x W1 + b1) W2 + b2 with norm, dropouts and residual connection (Vaswani et al., 2017, section 3.3).
 *
 * Subclasses may override: `hidden` (between the two layers), `output`, `residual` (norms and connection).
 */
export class TransformerFeedForward extends BaseLayer.with({
  inputDims: z.int().positive().describe('Depth of the input and of the output.'),
  hiddenDims: z.int().positive().describe('Depth between the two layers.'),
  hasBias: z.boolean().default(true).describe('Whether the layers have biases.'),
  activationTpl: activationField(() => ReLU.config()),
  useGatedActivation: z
    .boolean()
    .default(false)
    .describe('Multiply activation(gate layer) by a first layer without activation (GLU, Shazeer, 2020).'),
  fflayerTpl: sub(FeedForward).describe('Both layers.'),
  outputProjInit: sub(WeightInit, null)
    .optional()
    .describe("Initial values of the second layer's weights; fflayerTpl's where absent."),
  lnTpl: sub(BaseNormalization, () => LayerNorm.config()).describe('The norm.'),
  normPolicy: NormPolicySchema,
  residualDropoutTpl: sub(Dropout).describe('Dropout of the output; keepProb is 1 - residualDropoutProb.'),
  residualDropoutProb: dropoutField('an output element'),
  reluDropoutTpl: sub(Dropout).describe('Dropout of the activations; keepProb is 1 - reluDropoutProb.'),
  reluDropoutProb: dropoutField('an activation'),
  addSkipConnection: z.boolean().default(true).describe('Whether the input is added to the output.'),
  residualWeight: z.number().default(1).describe('Factor on the output before the input is added.'),
}) {
  protected norms!: NormPolicy;
  protected gate: FeedForward | null = null;
  protected layer1!: FeedForward;
  protected reluDropout!: Dropout;
  protected layer2!: FeedForward;
  protected residualDropout!: Dropout;

  protected override setup(): void {
    const { hp } = this;
    const { inputDims, hiddenDims, useGatedActivation, activationTpl } = hp;
    this.norms = NormPolicy.create(hp.normPolicy, hp.lnTpl, (name, template) =>
      this.createChild(name, template, { dim: inputDims }),
    );
    const expanding = { inputDims, outputDims: hiddenDims };
    if (useGatedActivation) this.gate = this.#createLayer('ffn_layer1_gate', { ...expanding, activationTpl });
    this.layer1 = this.#createLayer('ffn_layer1', {
      ...expanding,
      activationTpl: useGatedActivation ? Identity.config() : activationTpl,
    });
    this.reluDropout = this.createChild('relu_dropout', hp.reluDropoutTpl, {
      keepProb: 1 - hp.reluDropoutProb,
    });
    this.layer2 = this.#createLayer('ffn_layer2', {
      inputDims: hiddenDims,
      outputDims: inputDims,
      activationTpl: Identity.config(),
      ...(hp.outputProjInit && {
        linearTpl: deepCopyWith(hp.fflayerTpl.linearTpl, { paramsInit: hp.outputProjInit }),
      }),
    });
    this.residualDropout = this.createChild('residual_dropout', hp.residualDropoutTpl, {
      keepProb: 1 - hp.residualDropoutProb,
    });
  }

  /** Copies the template: children made from one config object would be one layer. */
  #createLayer(name: string, values: Partial<ConfigValues<FeedForward>>): FeedForward {
    const { fflayerTpl, hasBias } = this.hp;
    return this.createChild(
      name,
      deepCopyWith(fflayerTpl, { ...values, hasBias } as Partial<Config<FeedForward>>),
    );
  }

  /**
   * @param inputs [..., inputDims].
   * @param paddings [...], 1 for padding, whose inputs count as 0 and whose update is 0; sizes may be 1. Optional.
   * @returns the shape of inputs.
   */
  fprop(inputs: Tensor, paddings?: Tensor): Tensor {
    if (!paddings) return this.residual(inputs, (x) => this.output(this.hidden(x)));
    const kept = keptPositions(this, inputs, paddings);
    return this.residual(selected(inputs, kept), (x) => selected(this.output(this.hidden(x)), kept));
  }

  /** activation(x W1 + b1), times x W + b for gated activations: [..., inputDims] to [..., hiddenDims]. */
  protected hidden(x: Tensor): Tensor {
    const activations = this.layer1.fprop(x);
    return this.gate ? tf.mul(this.gate.fprop(x), activations) : activations;
  }

  /** hidden W2 + b2, after dropout: [..., hiddenDims] to [..., inputDims]. */
  protected output(hidden: Tensor): Tensor {
    return this.layer2.fprop(this.reluDropout.fprop(hidden));
  }

  /**
   * Adds the weighted result of `branch` to inputs, with norms and dropout; without a skip connection, returns the
   * result only.
   */
  protected residual(inputs: Tensor, branch: (x: Tensor) => Tensor): Tensor {
    const { addSkipConnection, residualWeight } = this.hp;
    let outputs = this.residualDropout.fprop(this.norms.after(branch(this.norms.before(inputs))));
    if (addSkipConnection) {
      if (residualWeight !== 1) outputs = tf.mul(outputs, residualWeight);
      outputs = tf.add(inputs, outputs);
    }
    return this.norms.afterSkip(outputs);
  }
}

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
 * Subclasses may override: `subLayers` (their order, or further ones), `residual` (norms and connection).
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
}) {
  protected norms!: NormPolicy;
  protected selfAttention!: BaseMixer;
  protected crossAttention: DotProductAttention | null = null;
  protected crossNorms!: NormPolicy;
  protected residualDropout!: Dropout;
  protected feedForward!: TransformerFeedForward;

  protected override setup(): void {
    const { hp } = this;
    const { inputDims, hiddenDims, numHeads, dimPerHead, normPolicy } = hp;
    const { attenDropoutProb, residualDropoutProb, reluDropoutProb } = hp;
    const ofAttention = { inputDim: inputDims, hiddenDim: inputDims, numHeads, dimPerHead, attenDropoutProb };
    this.norms = NormPolicy.create(normPolicy, hp.lnTpl, (name, template) =>
      this.createChild(name, template, { dim: inputDims }),
    );
    this.selfAttention = hp.mixerTpl
      ? this.createChild('mixer', hp.mixerTpl, { inputDim: inputDims })
      : this.createChild('self_attention', hp.trAttenTpl, ofAttention);
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
    this.feedForward = this.createChild('ff_layer', hp.trFflayerTpl, {
      ...{ inputDims, hiddenDims },
      ...{ normPolicy, residualDropoutProb, reluDropoutProb },
    });
  }

  /** [B, T, D] to [B, T, D]. */
  fprop(inputs: Tensor, { seen = {}, paddings, memory }: TransformerArgs = {}): Tensor {
    const { crossAttention } = this;
    if (crossAttention && !memory) throw this.error('useCrossAttention is set, and there is no memory.');
    const x = paddings ? selected(inputs, keptPositions(this, inputs, paddings)) : inputs;
    return this.subLayers(x, {
      self: (x) => this.selfAttention.fprop(x, { seen }),
      cross: crossAttention
        ? (x) => crossAttention.fprop(x, { seen: memory!.seen, keyVec: memory!.states })
        : undefined,
      paddings,
    });
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
    const outputs = norms.after(branch(norms.before(inputs)));
    return norms.afterSkip(tf.add(inputs, this.residualDropout.fprop(outputs)));
  }
}

/** Dropout probability of one kind of values; defaults to the stack's dropoutProb. */
const partDropoutField = (what: string) =>
  z.number().min(0).lt(1).nullable().default(null).describe(`For ${what}; null: dropoutProb.`);

/** `numLayers` transformer layers in sequence. Subclasses with several kinds of layers override `layerTpl`. */
export class StackedTransformer extends BaseLayer.with({
  numLayers: z.int().positive().describe('Number of layers.'),
  modelDims: z.int().positive().describe('Depth of the model.'),
  hiddenDims: z.int().positive().describe('Hidden depth of the feed-forward layers.'),
  numHeads: z.int().positive().default(1).describe('Attention heads.'),
  dimPerHead: dimPerHeadField('modelDims'),
  dropoutProb: z
    .number()
    .min(0)
    .lt(1)
    .default(0)
    .describe(
      'Probability of dropout after attention and feed-forward, of attention weights and activations.',
    ),
  attenDropoutProb: partDropoutField('attention weights'),
  residualDropoutProb: partDropoutField('outputs'),
  reluDropoutProb: partDropoutField('activations'),
  inputDropoutProb: dropoutField('an input element'),
  transformerLayerParamsTpl: sub(Transformer).describe('Each layer.'),
  remat: z
    .boolean()
    .default(false)
    .describe('Whether gradients compute the activations of each layer again instead of keeping them.'),
  checkpointPolicy: checkpointPolicyField,
}) {
  protected inputDropout!: Dropout;
  protected layers: Transformer[] = [];

  protected override setup(): void {
    const { hp } = this;
    this.inputDropout = this.createChild(
      'input_dropout',
      Dropout.config({ keepProb: 1 - hp.inputDropoutProb }),
    );
    this.createLayers();
  }

  /** Creates what is between the dropout of the input and the output. */
  protected createLayers(): void {
    const { hp } = this;
    const { modelDims: inputDims, hiddenDims, numHeads, dimPerHead, dropoutProb } = hp;
    const layer = (_: unknown, index: number) =>
      deepCopyWith(this.layerTpl(index), {
        ...{ inputDims, hiddenDims, numHeads, dimPerHead },
        attenDropoutProb: hp.attenDropoutProb ?? dropoutProb,
        residualDropoutProb: hp.residualDropoutProb ?? dropoutProb,
        reluDropoutProb: hp.reluDropoutProb ?? dropoutProb,
      });
    this.layers = this.createChildren('x_layers', Array.from({ length: hp.numLayers }, layer));
  }

  /**
   * Config of a layer, without the depths, heads and dropouts that the stack sets. @param _index from 0 to numLayers -
   * 1.
   */
  protected layerTpl(_index: number): Config<Transformer> {
    return this.hp.transformerLayerParamsTpl;
  }

  /** As Transformer.fprop. */
  fprop(inputs: Tensor, args: TransformerArgs = {}): Tensor {
    const { remat, checkpointPolicy } = this.hp;
    const call = (layer: Transformer, x: Tensor): Tensor => layer.fprop(x, args);
    const checked = remat ? ops.checkpoint(call, CHECKPOINT_POLICIES[checkpointPolicy]) : call;
    return this.layers.reduce((x, layer) => checked(layer, x), this.inputDropout.fprop(inputs));
  }

  /** As Transformer.begin. */
  begin(states: Tensor): void {
    for (const layer of this.layers) layer.begin(states);
  }

  /** As Transformer.extendStep. */
  extendStep(inputs: Tensor, args: StepArgs): Tensor {
    return this.layers.reduce((x, layer) => layer.extendStep(x, args), inputs);
  }
}

// In documents, the short name refers to the layer; learners have a schedule with this name.
registerAlias('Transformer', Transformer);
