/** @file The blocks of a transformer: feed-forward, self-attention with residual, and stacks of them. */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { type Config, deepCopy, derive, sub } from '../hparams/index.js';
import { BaseActivation, Identity, ReLU } from './activations.js';
import { type AttentionArgs, DotProductAttention } from './attentions.js';
import { BaseLayer } from './baseLayer.js';
import { dimPerHeadField, dropoutField } from './fields.js';
import { FeedForward } from './linears.js';
import { BaseNormalization, LayerNorm } from './normalizations.js';
import { NormPolicy, NormPolicySchema } from './normPolicy.js';
import { Dropout } from './stochastics.js';
import { WeightInit } from './weightInit.js';

/** Two feed-forward layers around an activation, with norm, dropouts and residual connection. */
export class TransformerFeedForward extends BaseLayer.with({
  inputDims: z.int().positive().describe('Depth of the input and of the output.'),
  hiddenDims: z.int().positive().describe('Depth between the two layers.'),
  hasBias: z.boolean().default(true).describe('Whether the layers have biases.'),
  activationTpl: sub(BaseActivation, () => ReLU.config()).describe('The activation function.'),
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
  #norms!: NormPolicy;
  #gate: FeedForward | null = null;
  #layer1!: FeedForward;
  #reluDropout!: Dropout;
  #layer2!: FeedForward;
  #residualDropout!: Dropout;

  protected override setup(): void {
    const { hp } = this;
    const { inputDims, hiddenDims, useGatedActivation, activationTpl } = hp;
    this.#norms = NormPolicy.create(hp.normPolicy, hp.lnTpl, inputDims, (name, p) =>
      this.createChild(name, p),
    );
    const expand = (activation: typeof activationTpl) =>
      this.#layerConfig(inputDims, hiddenDims, (p) => {
        p.activationTpl = activation;
      });
    if (useGatedActivation) this.#gate = this.createChild('ffn_layer1_gate', expand(activationTpl));
    this.#layer1 = this.createChild(
      'ffn_layer1',
      expand(useGatedActivation ? Identity.config() : activationTpl),
    );
    this.#reluDropout = this.createChild('relu_dropout', withDropout(hp.reluDropoutTpl, hp.reluDropoutProb));
    this.#layer2 = this.createChild(
      'ffn_layer2',
      this.#layerConfig(hiddenDims, inputDims, (p) => {
        p.activationTpl = Identity.config();
        if (hp.outputProjInit) p.linearTpl.paramsInit = hp.outputProjInit;
      }),
    );
    this.#residualDropout = this.createChild(
      'residual_dropout',
      withDropout(hp.residualDropoutTpl, hp.residualDropoutProb),
    );
  }

  /** A copy of fflayerTpl of its own: the template serves several children, which must not be one layer. */
  #layerConfig(inputDims: number, outputDims: number, edit: (p: typeof this.hp.fflayerTpl) => void) {
    const config = deepCopy(this.hp.fflayerTpl);
    Object.assign(config, { inputDims, outputDims, hasBias: this.hp.hasBias });
    edit(config);
    return config;
  }

  /**
   * @param inputs [..., inputDims].
   * @param paddings [...], 1 for padding, whose outputs become those of a zero update; none where absent.
   * @returns the shape of inputs.
   */
  fprop(inputs: Tensor, paddings?: Tensor): Tensor {
    const { addSkipConnection, residualWeight } = this.hp;
    const keep = paddings ? tf.expandDims(tf.sub(1, paddings), -1) : null;
    const mask = (x: Tensor): Tensor => (keep ? tf.mul(x, keep) : x);
    const normalized = this.#norms.before(inputs);
    let activations = this.#layer1.fprop(normalized);
    if (this.#gate) activations = tf.mul(this.#gate.fprop(normalized), activations);
    activations = this.#reluDropout.fprop(mask(activations));
    let outputs = this.#norms.after(mask(this.#layer2.fprop(activations)));
    outputs = this.#residualDropout.fprop(outputs);
    if (addSkipConnection) {
      if (residualWeight !== 1) outputs = tf.mul(outputs, residualWeight);
      outputs = tf.add(inputs, outputs);
    }
    return this.#norms.afterSkip(outputs);
  }
}

/** Self-attention and feed-forward, each with norm, dropout and residual connection. */
export class Transformer extends BaseLayer.with({
  inputDims: z.int().positive().describe('Depth of the model.'),
  hiddenDims: z.int().positive().describe('Hidden depth of the feed-forward layer.'),
  numHeads: z.int().positive().default(1).describe('Attention heads.'),
  dimPerHead: dimPerHeadField('inputDims'),
  normPolicy: NormPolicySchema,
  lnTpl: sub(BaseNormalization, () => LayerNorm.config()).describe('The norm around the self-attention.'),
  trAttenTpl: sub(DotProductAttention).describe('The self-attention.'),
  trFflayerTpl: sub(TransformerFeedForward).describe('The feed-forward layer.'),
  residualDropoutTpl: sub(Dropout).describe("Dropout of the attention's output."),
  residualDropoutProb: dropoutField('an output element'),
  attenDropoutProb: dropoutField('an attention weight'),
  reluDropoutProb: dropoutField('an activation'),
}) {
  #norms!: NormPolicy;
  #attention!: DotProductAttention;
  #residualDropout!: Dropout;
  #feedForward!: TransformerFeedForward;

  protected override setup(): void {
    const { hp } = this;
    const { inputDims, numHeads, dimPerHead } = hp;
    this.#norms = NormPolicy.create(hp.normPolicy, hp.lnTpl, inputDims, (name, p) =>
      this.createChild(name, p),
    );
    this.#attention = this.createChild(
      'self_attention',
      derive(hp.trAttenTpl, (p) => {
        p.inputDim = inputDims;
        p.hiddenDim = inputDims;
        p.numHeads = numHeads;
        p.dimPerHead = dimPerHead;
        p.attenDropoutProb = hp.attenDropoutProb;
      }),
    );
    this.#residualDropout = this.createChild(
      'residual_dropout',
      withDropout(hp.residualDropoutTpl, hp.residualDropoutProb),
    );
    this.#feedForward = this.createChild(
      'ff_layer',
      derive(hp.trFflayerTpl, (p) => {
        p.inputDims = inputDims;
        p.hiddenDims = hp.hiddenDims;
        p.normPolicy = hp.normPolicy;
        p.residualDropoutProb = hp.residualDropoutProb;
        p.reluDropoutProb = hp.reluDropoutProb;
      }),
    );
  }

  /**
   * @param inputs [B, T, D], or [B T, D] with `args.batchTime`.
   * @param paddings of inputs' leading shape, 1 for padding; none where absent.
   * @returns the shape of inputs.
   */
  fprop(inputs: Tensor, args: AttentionArgs = {}, paddings?: Tensor): Tensor {
    return this.#feedForward.fprop(
      this.#residual(inputs, (x) => this.#attention.fprop(x, args)),
      paddings,
    );
  }

  /** One token: inputs [B, D] at `timeStep` (int32 scalar) to [B, D]. */
  extendStep(inputs: Tensor, timeStep: Tensor): Tensor {
    return this.#feedForward.fprop(this.#residual(inputs, (x) => this.#attention.extendStep(x, timeStep)));
  }

  /** Several tokens of each sequence, the first at `timeStep`: inputs [B steps, D] to [B steps, D]. */
  prefill(inputs: Tensor, timeStep: Tensor, steps: number): Tensor {
    const attend = (x: Tensor) => this.#attention.prefill(x, timeStep, steps);
    return this.#feedForward.fprop(this.#residual(inputs, attend));
  }

  #residual(inputs: Tensor, attend: (x: Tensor) => Tensor): Tensor {
    const outputs = this.#norms.after(attend(this.#norms.before(inputs)));
    return this.#norms.afterSkip(tf.add(inputs, this.#residualDropout.fprop(outputs)));
  }
}

/** `numLayers` transformer layers, one after the other. */
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
  attenDropoutProb: z
    .number()
    .min(0)
    .lt(1)
    .nullable()
    .default(null)
    .describe('For attention weights; null: dropoutProb.'),
  residualDropoutProb: z
    .number()
    .min(0)
    .lt(1)
    .nullable()
    .default(null)
    .describe('For outputs; null: dropoutProb.'),
  reluDropoutProb: z
    .number()
    .min(0)
    .lt(1)
    .nullable()
    .default(null)
    .describe('For activations; null: dropoutProb.'),
  inputDropoutProb: dropoutField('an input element'),
  transformerLayerParamsTpl: sub(Transformer).describe('Each layer.'),
}) {
  #inputDropout!: Dropout;
  #layers: Transformer[] = [];

  protected override setup(): void {
    const { hp } = this;
    this.#inputDropout = this.createChild(
      'input_dropout',
      Dropout.config({ keepProb: 1 - hp.inputDropoutProb }),
    );
    const layer = () => {
      const p = deepCopy(hp.transformerLayerParamsTpl);
      p.inputDims = hp.modelDims;
      p.hiddenDims = hp.hiddenDims;
      p.numHeads = hp.numHeads;
      p.dimPerHead = hp.dimPerHead;
      p.attenDropoutProb = hp.attenDropoutProb ?? hp.dropoutProb;
      p.residualDropoutProb = hp.residualDropoutProb ?? hp.dropoutProb;
      p.reluDropoutProb = hp.reluDropoutProb ?? hp.dropoutProb;
      return p;
    };
    this.#layers = this.createChildren('x_layers', Array.from({ length: hp.numLayers }, layer));
  }

  /** As Transformer.fprop. */
  fprop(inputs: Tensor, args: AttentionArgs = {}, paddings?: Tensor): Tensor {
    return this.#layers.reduce(
      (x, layer) => layer.fprop(x, args, paddings),
      this.#inputDropout.fprop(inputs),
    );
  }

  /** As Transformer.extendStep. */
  extendStep(inputs: Tensor, timeStep: Tensor): Tensor {
    return this.#layers.reduce((x, layer) => layer.extendStep(x, timeStep), inputs);
  }

  /** As Transformer.prefill. */
  prefill(inputs: Tensor, timeStep: Tensor, steps: number): Tensor {
    return this.#layers.reduce((x, layer) => layer.prefill(x, timeStep, steps), inputs);
  }
}

/** `tpl` with the keepProb of this drop probability. */
function withDropout(tpl: Config<Dropout>, dropProb: number): Config<Dropout> {
  return derive(tpl, (p) => {
    p.keepProb = 1 - dropProb;
  });
}
