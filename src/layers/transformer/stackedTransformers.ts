/** @file StackedTransformer: transformer layers in sequence, of one kind or several (praxis/layers/transformers.py). */
import { z } from 'zod';
import { ops, type Tensor } from '../../compiler/index.js';
import { type Config, deepCopyWith, isEqual, isSet, sub } from '../../hparams/index.js';
import { dimPerHeadField } from '../attention/attentionFields.js';
import { CHECKPOINT_POLICIES, checkpointPolicyField } from '../checkpointPolicy.js';
import { BaseLayer } from '../core/base.js';
import type { StepArgs } from '../core/mixer.js';
import { moeFields } from '../moe/expertFields.js';
import { TransformerFeedForwardMoe } from '../moe/transformerFeedForwardMoe.js';
import { Dropout, dropoutField } from '../stochastics.js';
import { Transformer, type TransformerArgs } from './transformers.js';

/** Dropout probability of one kind of values; defaults to the stack's dropoutProb. */
const partDropoutField = (what: string) =>
  z.number().min(0).lt(1).nullable().default(null).describe(`For ${what}; null: dropoutProb.`);

/** Fields of a stack. */
const stackFields = {
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
  residualDroppathProb: z
    .number()
    .min(0)
    .lt(1)
    .default(0)
    .describe(
      "p: training drops a sub-layer's output for a sequence with probability p i / numLayers in layer i (stochastic depth).",
    ),
  inputDropoutProb: dropoutField('an input element'),
  useCrossAttention: z
    .boolean()
    .default(false)
    .describe("Whether all layers attend to a memory, such as an encoder's output."),
  transformerLayerParamsTpl: sub(Transformer).describe('Each layer.'),
  transformerLayerParamsTpls: z
    .array(sub(Transformer, null))
    .default([])
    .describe('Several kinds of layers in place of it: each is that of as many consecutive layers.'),
  moeLayers: z
    .array(z.int().nonnegative())
    .default([])
    .describe('Layers, from 0, whose feed-forward is moeLayerTpl.'),
  moeLayerTpl: sub(TransformerFeedForwardMoe).describe(
    'The feed-forward layer with experts. If it sets hiddenDims, its hidden depth is another than that of the others.',
  ),
  numExperts: z.int().nonnegative().default(0).describe('Experts of each of moeLayers.'),
  nopeLayers: z
    .array(z.int().nonnegative())
    .default([])
    .describe(
      'Layers, from 0, whose self-attention has no positions: neither rotations nor relative biases (NoPE). Of a repeated ' +
        'stack they are those of a block.',
    ),
  numGroups: moeFields.numGroups,
  minGroupSize: moeFields.minGroupSize,
  gatingFunc: moeFields.gatingFunc,
  remat: z
    .boolean()
    .default(false)
    .describe('Whether gradients compute the activations of each layer again instead of keeping them.'),
  checkpointPolicy: checkpointPolicyField,
};

/** `numLayers` transformer layers in sequence. Subclasses with further kinds of layers override `layerTpl`. */
export class StackedTransformer extends BaseLayer.with(stackFields) {
  protected inputDropout!: Dropout;
  protected layers: Transformer[] = [];

  /**
   * The fields of this layer for a stack that it is made of.
   *
   * @param name of the field that has the stack's config.
   * @param ofWhole fields that the stack is not given.
   * @throws LayerError for a config that sets one of them to something else.
   */
  protected fieldsFor(
    name: string,
    stack: Config<StackedTransformer>,
    ofWhole: readonly string[],
  ): Partial<Config<StackedTransformer>> {
    const { hp } = this;
    const given = (Object.keys(stackFields) as (keyof typeof stackFields)[]).filter(
      (field) => !ofWhole.includes(field),
    );
    // A change of all configs of a class reaches both.
    for (const field of given)
      if (isSet(stack, field) && !isEqual(stack[field], hp[field]))
        throw this.error(`${name} sets ${field}, which is a field of this layer: set it here.`);
    return Object.fromEntries(given.map((field) => [field, hp[field]]));
  }

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
    const { modelDims: inputDims, hiddenDims, numHeads, dimPerHead, dropoutProb, numLayers } = hp;
    this.#checkKinds();
    const layer = (_: unknown, index: number) => {
      const template = this.#positioned(index);
      const dims = { inputDims, hiddenDims, numHeads, dimPerHead };
      const made = deepCopyWith(template, {
        ...dims,
        attenDropoutProb: hp.attenDropoutProb ?? dropoutProb,
        residualDropoutProb: hp.residualDropoutProb ?? dropoutProb,
        reluDropoutProb: hp.reluDropoutProb ?? dropoutProb,
        residualDroppathProb: (hp.residualDroppathProb * index) / numLayers,
        useCrossAttention: hp.useCrossAttention || template.useCrossAttention,
      });
      return hp.moeLayers.includes(index) ? this.withExperts(made) : made;
    };
    this.layers = this.createChildren('x_layers', Array.from({ length: numLayers }, layer));
  }

  #checkKinds(): void {
    const { numLayers, moeLayers, nopeLayers, numExperts, transformerLayerParamsTpls: kinds } = this.hp;
    if (kinds.length > 0 && numLayers % kinds.length !== 0)
      throw this.error(
        `numLayers ${numLayers} is not a multiple of the ${kinds.length} kinds of transformerLayerParamsTpls.`,
      );
    for (const [name, chosen] of Object.entries({ moeLayers, nopeLayers })) {
      const beyond = chosen.find((index) => index >= numLayers);
      if (beyond !== undefined)
        throw this.error(`${name}: expected layers from 0 to ${numLayers - 1}, got ${beyond}.`);
    }
    if (moeLayers.length > 0 && numExperts === 0) throw this.error('moeLayers is set, and numExperts is 0.');
  }

  /** A layer's config, without positions where it is one of `nopeLayers`. */
  #positioned(index: number): Config<Transformer> {
    const layer = this.layerTpl(index);
    if (!this.hp.nopeLayers.includes(index)) return layer;
    const { mixerTpl, trAttenTpl } = layer;
    if (mixerTpl) throw this.error(`nopeLayers: layer ${index} has a mixer in the place of its attention.`);
    if (!trAttenTpl.useRotaryPositionEmb && !trAttenTpl.relativeBiasTpl)
      throw this.error(
        `nopeLayers: the attention of layer ${index} has neither a rotation nor a relative bias to leave out.`,
      );
    const bare = { useRotaryPositionEmb: false, relativeBiasTpl: null };
    return deepCopyWith(layer, { trAttenTpl: deepCopyWith(trAttenTpl, bare) });
  }

  /** A layer's config with experts in place of its feed-forward layer. */
  protected withExperts(layer: Config<Transformer>): Config<Transformer> {
    const { moeLayerTpl, numExperts, numGroups, minGroupSize, gatingFunc } = this.hp;
    return deepCopyWith(layer, {
      trFflayerTpl: deepCopyWith(moeLayerTpl, { numExperts, numGroups, minGroupSize, gatingFunc }),
      ...(isSet(moeLayerTpl, 'hiddenDims') && { hiddenDims: moeLayerTpl.hiddenDims }),
    });
  }

  /**
   * Config of a layer, without the depths, heads, dropouts and experts that the stack sets. @param index from 0 to numLayers
   * - 1.
   */
  protected layerTpl(index: number): Config<Transformer> {
    const { numLayers, transformerLayerParamsTpl, transformerLayerParamsTpls: kinds } = this.hp;
    return kinds[Math.floor((index * kinds.length) / numLayers)] ?? transformerLayerParamsTpl;
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
