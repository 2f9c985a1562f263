/** @file Max and average pooling over windows of an image, or over whole dimensions (praxis/layers/poolings.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { paddingField, pairField } from './convolution/convolutions.js';
import { BaseLayer } from './core/base.js';
import { selected, unpadded } from './core/masks.js';

const poolingTypeField = z.enum(['MAX', 'AVG']).describe('Whether the largest element is taken or the mean.');

/** Below every input that is not padding. */
const LEAST = -3.4028234663852886e38;

/** Maximum or mean of each window of an image. */
export class Pooling extends BaseLayer.with({
  windowShape: pairField().describe('Height and width of a window.'),
  windowStride: pairField()
    .nullable()
    .default(null)
    .describe('Cells from one window to the next, down and across; null: windowShape.'),
  poolingType: poolingTypeField.default('MAX'),
  padding: paddingField,
}) {
  /**
   * [B, H, W, D] to [B, H', W', D]. Cells outside of the image do not count.
   *
   * @param paddings [B, H], 1 for a padding row, such as a time step: it does not count, and windows of only padding
   *   give 0. Either size may be 1.
   * @throws LayerError for paddings of another shape
   */
  fprop(inputs: Tensor, paddings: Tensor | null = null): Tensor {
    const isMax = this.hp.poolingType === 'MAX';
    if (paddings === null) return isMax ? this.#largest(inputs) : this.#mean(inputs);
    const rows = (x: Tensor): Tensor => tf.reshape(x, [...x.shape, 1, 1]);
    const [B, H, W] = inputs.shape as [number, number, number];
    const kept = rows(unpadded(this, paddings, [B, H]));
    if (isMax) {
      const largest = this.#largest(tf.where(kept, inputs, tf.scalar(LEAST)));
      return selected(largest, tf.less(rows(this.pooledPaddings(paddings)), 0.5));
    }
    const sums = this.#mean(selected(inputs, kept));
    const counted = this.#mean(tf.broadcastTo(tf.cast(kept, 'float32'), [B, H, W, 1]));
    return tf.div(sums, tf.maximum(counted, 1e-6));
  }

  /** Paddings [B, H'] of outputs, from those of inputs [B, H]: 1 for windows of only padding. */
  pooledPaddings(paddings: Tensor): Tensor {
    const [stride] = this.#stride();
    const image = tf.reshape(tf.neg(paddings), [...paddings.shape, 1, 1]);
    const largest = tf.maxPool(image as tf.Tensor4D, [this.hp.windowShape[0], 1], [stride, 1], this.#pad());
    return tf.neg(tf.squeeze(largest, [2, 3]));
  }

  #stride(): readonly [number, number] {
    return this.hp.windowStride ?? this.hp.windowShape;
  }

  #pad(): 'same' | 'valid' {
    return this.hp.padding === 'SAME' ? 'same' : 'valid';
  }

  #largest(x: Tensor): Tensor {
    return tf.maxPool(x as tf.Tensor4D, [...this.hp.windowShape], [...this.#stride()], this.#pad());
  }

  #mean(x: Tensor): Tensor {
    return tf.avgPool(x as tf.Tensor4D, [...this.hp.windowShape], [...this.#stride()], this.#pad());
  }
}

/** Maximum or mean of windows of time, for sequences of any rank; padded at the end as the last window needs. */
export class Pooling1D extends BaseLayer.with({
  window: z.int().positive().nullable().default(null).describe('Steps of a window; null: stride.'),
  stride: z.int().positive().default(1).describe('Steps from one window to the next.'),
  poolingType: poolingTypeField.default('AVG'),
}) {
  #windows!: Pooling;

  protected override setup(): void {
    const { window, stride, poolingType } = this.hp;
    this.#windows = this.createChild(
      'windows',
      Pooling.config({ windowShape: [window ?? stride, 1], windowStride: [stride, 1], poolingType }),
    );
  }

  /**
   * [B, T, ...] to [B, ceil(T / stride), ...].
   *
   * @param paddings [B, T], 1 for padding: it does not count, and outputs are 0 where `pooledPaddings` says so.
   * @throws LayerError for paddings of another shape
   */
  fprop(inputs: Tensor, paddings: Tensor | null = null): Tensor {
    const [batch, time, ...rest] = inputs.shape as [number, number, ...number[]];
    const depth = rest.reduce((a, b) => a * b, 1);
    const pooled = this.#windows.fprop(tf.reshape(inputs, [batch, time, 1, depth]), paddings);
    const outputs = tf.reshape(pooled, [batch, pooled.shape[1]!, ...rest]);
    if (paddings === null) return outputs;
    const kept = tf.less(this.pooledPaddings(tf.broadcastTo(paddings, [batch, time])), 0.5);
    return selected(outputs, tf.reshape(kept, [...kept.shape, ...rest.map(() => 1)]));
  }

  /** Paddings [B, ceil(T / stride)] of outputs, from those of inputs [B, T]: those of the first step of each stride. */
  pooledPaddings(paddings: Tensor): Tensor {
    return tf.stridedSlice(paddings, [0, 0], [...paddings.shape], [1, this.hp.stride]);
  }
}

/** Maximum or mean over whole dimensions. */
export class GlobalPooling extends BaseLayer.with({
  poolingDims: z
    .array(z.int().nonnegative())
    .nonempty()
    .describe('Dimensions that are pooled over, counted from 0: 1 and 2 of an image [B, H, W, D].'),
  poolingType: poolingTypeField.default('AVG'),
  keepdims: z.boolean().default(false).describe('Whether pooled dimensions stay, with size 1.'),
}) {
  /**
   * inputs reduced over poolingDims.
   *
   * @param paddings 1 for elements that do not count, of the shape of inputs; sizes may be 1. Without other elements, the
   *   result is 0.
   * @throws LayerError for paddings of another shape
   */
  fprop(inputs: Tensor, paddings: Tensor | null = null): Tensor {
    const { poolingDims, poolingType, keepdims } = this.hp;
    const outside = poolingDims.find((dim) => dim >= inputs.rank);
    if (outside !== undefined)
      throw this.error(`poolingDims has ${outside}, and the inputs are [${inputs.shape.join(', ')}].`);
    const over = (f: typeof tf.max, x: Tensor): Tensor => f(x, [...poolingDims], keepdims);
    if (paddings === null) return over(poolingType === 'MAX' ? tf.max : tf.mean, inputs);
    const kept = tf.broadcastTo(unpadded(this, paddings, inputs.shape), inputs.shape);
    const counted = over(tf.sum, tf.cast(kept, 'float32'));
    if (poolingType === 'AVG') return tf.div(over(tf.sum, selected(inputs, kept)), tf.maximum(counted, 1));
    const largest = over(tf.max, tf.where(kept, inputs, tf.scalar(LEAST)));
    return selected(largest, tf.greater(counted, 0));
  }
}
