/** @file TransformerFeedForward: two maps with norm, dropouts and residual connection (praxis/layers/transformers.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { type Config, type ConfigValues, deepCopyWith, sub } from '../../hparams/index.js';
import { activationField, BaseActivation, Identity, ReLU } from '../activations.js';
import { checkpointName } from '../checkpointPolicy.js';
import { BaseLayer } from '../core/base.js';
import { selected, unpadded } from '../core/masks.js';
import { WeightInit } from '../core/weightInit.js';
import { FeedForward } from '../linears.js';
import { BaseNormalization, LayerNorm } from '../normalizations.js';
import { Dropout, dropoutField, StochasticResidual } from '../stochastics.js';
import { NormPolicy, NormPolicySchema } from './normPolicy.js';

/** Positions of inputs [..., D] that are no padding, bool [..., 1]. */
export const keptPositions = (layer: BaseLayer, inputs: Tensor, paddings: Tensor): Tensor =>
  tf.expandDims(unpadded(layer, paddings, inputs.shape.slice(0, -1)), -1);

/**
 * activation(x W1 + b1) W2 + b2 with norm, dropouts and residual connection (Vaswani et al., 2017, section 3.3).
 *
 * Subclasses may override: `branch` (all between the norms), `hidden` (between the two layers), `output`, `residual` (norms
 * and connection), `createLayers`.
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
  linearPathActivationTpl: sub(BaseActivation, null)
    .optional()
    .describe('With useGatedActivation, the activation of the layer that the gate multiplies; absent: none.'),
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
  residualDroppathProb: dropoutField("a sequence's output"),
  addSkipConnection: z.boolean().default(true).describe('Whether the input is added to the output.'),
  residualWeight: z.number().default(1).describe('Factor on the output before the input is added.'),
}) {
  protected norms!: NormPolicy;
  protected gate: FeedForward | null = null;
  protected layer1!: FeedForward;
  protected reluDropout!: Dropout;
  protected layer2!: FeedForward;
  protected residualDropout!: Dropout;
  protected droppath: StochasticResidual | null = null;

  protected override setup(): void {
    const { hp } = this;
    this.norms = NormPolicy.create(hp.normPolicy, hp.lnTpl, (name, template) =>
      this.createChild(name, template, { dim: hp.inputDims }),
    );
    if (hp.linearPathActivationTpl && !hp.useGatedActivation)
      throw this.error('linearPathActivationTpl is set, and useGatedActivation is not.');
    this.createLayers(hp.hiddenDims);
    this.residualDropout = this.createChild('residual_dropout', hp.residualDropoutTpl, {
      keepProb: 1 - hp.residualDropoutProb,
    });
    if (hp.residualDroppathProb > 0)
      this.droppath = this.createChild(
        'residual_droppath',
        StochasticResidual.config({
          residualWeight: hp.residualWeight,
          survivalProb: 1 - hp.residualDroppathProb,
        }),
      );
  }

  /** Creates what `branch` computes with. @param hiddenDims between the two layers. */
  protected createLayers(hiddenDims: number): void {
    const { hp } = this;
    const { inputDims, useGatedActivation, activationTpl, linearPathActivationTpl } = hp;
    const expanding = { inputDims, outputDims: hiddenDims };
    if (useGatedActivation) this.gate = this.#createLayer('ffn_layer1_gate', { ...expanding, activationTpl });
    this.layer1 = this.#createLayer('ffn_layer1', {
      ...expanding,
      activationTpl: useGatedActivation ? (linearPathActivationTpl ?? Identity.config()) : activationTpl,
    });
    this.createReluDropout();
    this.layer2 = this.#createLayer('ffn_layer2', {
      inputDims: hiddenDims,
      outputDims: inputDims,
      activationTpl: Identity.config(),
      ...(hp.outputProjInit && {
        linearTpl: deepCopyWith(hp.fflayerTpl.linearTpl, { paramsInit: hp.outputProjInit }),
      }),
    });
  }

  protected createReluDropout(): void {
    const { reluDropoutTpl, reluDropoutProb } = this.hp;
    this.reluDropout = this.createChild('relu_dropout', reluDropoutTpl, { keepProb: 1 - reluDropoutProb });
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
    if (!paddings) return this.residual(inputs, (x) => this.branch(x));
    const kept = keptPositions(this, inputs, paddings);
    return this.residual(selected(inputs, kept), (x) => selected(this.branch(x, paddings), kept));
  }

  /** What is added to the input, before norms and dropout: [..., inputDims] to the same shape. */
  protected branch(x: Tensor, _paddings?: Tensor): Tensor {
    return this.output(this.hidden(x));
  }

  /** activation(x W1 + b1), times x W + b for gated activations: [..., inputDims] to [..., hiddenDims]. */
  protected hidden(x: Tensor): Tensor {
    const activations = this.layer1.fprop(x);
    return checkpointName(this.gate ? tf.mul(this.gate.fprop(x), activations) : activations, 'ffn1');
  }

  /** hidden W2 + b2, after dropout: [..., hiddenDims] to [..., inputDims]. */
  protected output(hidden: Tensor): Tensor {
    return checkpointName(this.layer2.fprop(this.reluDropout.fprop(hidden)), 'ffn2');
  }

  /**
   * Adds the weighted result of `branch` to inputs, with norms and dropout; without a skip connection, returns the
   * result only.
   */
  protected residual(inputs: Tensor, branch: (x: Tensor) => Tensor): Tensor {
    const outputs = this.residualDropout.fprop(this.norms.after(branch(this.norms.before(inputs))));
    return this.norms.afterSkip(this.hp.addSkipConnection ? this.#added(inputs, outputs) : outputs);
  }

  #added(inputs: Tensor, outputs: Tensor): Tensor {
    if (this.droppath) return this.droppath.fprop(inputs, outputs);
    const { residualWeight } = this.hp;
    return tf.add(inputs, residualWeight === 1 ? outputs : tf.mul(outputs, residualWeight));
  }
}
