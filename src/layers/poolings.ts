/** @file Max and average pooling over windows of an image, or over whole dimensions (praxis/layers/poolings.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { paddingField, pairField } from './convolutions.js';
import { BaseLayer } from './core/base.js';

const poolingTypeField = z
  .enum(['MAX', 'AVG'])
  .default('MAX')
  .describe('Whether the largest element is taken or the mean.');

/** Below every input that is not padding. */
const LEAST = -3.4028234663852886e38;

/** x where `isPadding` is 0, else `value`; the shapes broadcast. */
const unlessPadding = (x: Tensor, isPadding: Tensor, value: number): Tensor =>
  tf.where(tf.greater(isPadding, 0.5), tf.scalar(value), x);

/** Maximum or mean of each window of an image. */
export class Pooling extends BaseLayer.with({
  windowShape: pairField().describe('Height and width of a window.'),
  windowStride: pairField()
    .nullable()
    .default(null)
    .describe('Cells from one window to the next, down and across; null: windowShape.'),
  poolingType: poolingTypeField,
  padding: paddingField,
}) {
  /**
   * [B, H, W, D] to [B, H', W', D]. Cells outside of the image do not count.
   *
   * @param paddings [B, H], 1 for a padding row, such as a time step: it does not count, and windows of only padding
   *   give 0.
   */
  fprop(inputs: Tensor, paddings: Tensor | null = null): Tensor {
    const isMax = this.hp.poolingType === 'MAX';
    if (paddings === null) return isMax ? this.#largest(inputs) : this.#mean(inputs);
    const rows = (x: Tensor): Tensor => tf.reshape(x, [...x.shape, 1, 1]);
    const isPadding = rows(paddings);
    if (isMax) {
      const largest = this.#largest(unlessPadding(inputs, isPadding, LEAST));
      return unlessPadding(largest, rows(this.pooledPaddings(paddings)), 0);
    }
    const sums = this.#mean(unlessPadding(inputs, isPadding, 0));
    const [B, H, W] = inputs.shape as [number, number, number];
    const counted = this.#mean(tf.broadcastTo(tf.sub(1, isPadding), [B, H, W, 1]));
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

/** Maximum or mean over whole dimensions. */
export class GlobalPooling extends BaseLayer.with({
  poolingDims: z
    .array(z.int().nonnegative())
    .nonempty()
    .describe('Dimensions that are pooled over, counted from 0: 1 and 2 of an image [B, H, W, D].'),
  poolingType: poolingTypeField,
  keepdims: z.boolean().default(false).describe('Whether pooled dimensions stay, with size 1.'),
}) {
  /**
   * inputs reduced over poolingDims.
   *
   * @param paddings 1 for elements that do not count; broadcastable to the shape of inputs. Without other elements, the
   *   result is 0.
   */
  fprop(inputs: Tensor, paddings: Tensor | null = null): Tensor {
    const { poolingDims, poolingType, keepdims } = this.hp;
    const outside = poolingDims.find((dim) => dim >= inputs.rank);
    if (outside !== undefined)
      throw this.error(`poolingDims has ${outside}, and the inputs are [${inputs.shape.join(', ')}].`);
    const over = (f: typeof tf.max, x: Tensor): Tensor => f(x, [...poolingDims], keepdims);
    if (paddings === null) return over(poolingType === 'MAX' ? tf.max : tf.mean, inputs);
    const isPadding = tf.broadcastTo(paddings, inputs.shape);
    const counted = over(tf.sum, tf.sub(1, isPadding));
    if (poolingType === 'AVG')
      return tf.div(over(tf.sum, unlessPadding(inputs, isPadding, 0)), tf.maximum(counted, 1));
    const largest = over(tf.max, unlessPadding(inputs, isPadding, LEAST));
    return tf.where(tf.greater(counted, 0), largest, tf.zerosLike(largest));
  }
}
