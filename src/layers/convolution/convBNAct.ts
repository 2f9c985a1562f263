/** @file Convolution, norm and activation, as image encoders chain them (praxis/layers/convolutions.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { sub } from '../../hparams/index.js';
import { activationField, activationLayer, type BaseActivation, ReLU } from '../activations.js';
import { selected, unpadded } from '../core/masks.js';
import { BaseNormalization, BatchNorm } from '../normalizations.js';
import { Conv2D } from './convolutions.js';

/** activation(norm(convolution)). The variables of the convolution are the layer's own, those of the norm are in `bn`. */
export class ConvBNAct extends Conv2D.with({
  batchNormTpl: sub(BaseNormalization, () => BatchNorm.config())
    .nullable()
    .describe('The norm over the outputs; null: none.'),
  activationTpl: activationField(() => ReLU.config()),
}) {
  #norm: BaseNormalization | null = null;
  #activation!: BaseActivation;

  protected override setup(): void {
    super.setup();
    const { batchNormTpl, activationTpl, filterShape } = this.hp;
    if (batchNormTpl) this.#norm = this.createChild('bn', batchNormTpl, { dim: filterShape[3] });
    this.#activation = this.createChild('activation', activationLayer(activationTpl));
  }

  /** As Conv2D.fprop. */
  override fprop(inputs: Tensor): Tensor {
    return this.activated(this.convolved(inputs));
  }

  /** Norm and activation of the convolution's outputs. @param paddings [B, H'], 1 for padding, which does not count */
  protected activated(outputs: Tensor, paddings?: Tensor): Tensor {
    return this.#activation.fprop(this.#norm ? this.#norm.fprop(outputs, paddings) : outputs);
  }
}

/**
 * The same over sequences: rows [B, H] of an image are times, some of which are padding. It counts as 0 in the convolution, does
 * not count in the norm, and is 0 in the outputs.
 */
export class ConvBNActWithPadding extends ConvBNAct.with({
  compatWithLingvo: z
    .boolean()
    .default(false)
    .describe('Whether of each stride of times the last tells if the output is padding, not the first.'),
}) {
  protected override setup(): void {
    super.setup();
    const { compatWithLingvo, dilations } = this.hp;
    if (compatWithLingvo && Math.max(...dilations) > 1)
      throw this.error(`compatWithLingvo with dilations [${dilations.join(', ')}]: expected [1, 1].`);
  }

  /**
   * As Conv2D.fprop. @param paddings [B, H], 1 for padding; absent: none. Either size may be 1.
   *
   * @throws LayerError for paddings of another shape
   */
  override fprop(inputs: Tensor, paddings?: Tensor): Tensor {
    if (!paddings) return super.fprop(inputs);
    const [batch, height] = inputs.shape as [number, number];
    const all = tf.broadcastTo(paddings, [batch, height]);
    const rows = (kept: Tensor): Tensor => tf.reshape(kept, [...kept.shape, 1, 1]);
    const kept = rows(unpadded(this, paddings, [batch, height]));
    const ofOutputs = this.outputPaddings(all);
    const outputs = this.activated(this.convolved(selected(inputs, kept)), ofOutputs);
    return selected(outputs, rows(tf.less(ofOutputs, 0.5)));
  }

  /**
   * Paddings [B, H'] of outputs, from those of inputs [B, H]. With 'SAME', those of the first time of each stride; with 'VALID',
   * 1 for windows of only padding.
   */
  outputPaddings(paddings: Tensor): Tensor {
    const { padding, compatWithLingvo, filterShape, filterStride, dilations } = this.hp;
    const [stride] = filterStride;
    const [batch, height] = paddings.shape as [number, number];
    if (padding === 'VALID') {
      const window = (filterShape[0] - 1) * dilations[0] + 1;
      const image = tf.reshape(tf.neg(paddings), [batch, height, 1, 1]) as tf.Tensor4D;
      return tf.neg(tf.squeeze(tf.maxPool(image, [window, 1], [stride, 1], 'valid'), [2, 3]));
    }
    if (stride === 1) return paddings;
    const first = compatWithLingvo ? stride - 1 : 0;
    const wide = tf.pad(
      paddings,
      [
        [0, 0],
        [0, first],
      ],
      1,
    );
    return tf.stridedSlice(wide, [0, first], [batch, height + first], [1, stride]);
  }
}
