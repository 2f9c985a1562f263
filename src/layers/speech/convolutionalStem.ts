/** @file ConvolutionalStem: frames of features to fewer vectors, by convolutions over time (Radford et al., 2022, section 2.2). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { deepCopy } from '../../hparams/index.js';
import { activationField, activationLayer, type BaseActivation, GELU } from '../activations.js';
import { Conv1D } from '../convolution/convolutions.js';
import { BaseLayer } from '../core/base.js';
import { selected, unpadded } from '../core/masks.js';
import type { EncodedFrames } from './conformerEncoders.js';

/** Convolutions, each with an activation: Whisper's two, the second of which halves the frames. */
export class ConvolutionalStem extends BaseLayer.with({
  inputDims: z.int().positive().describe('Depth of a frame of the input, such as 80 mels.'),
  outputDims: z.int().positive().describe('Depth of the output.'),
  kernelSize: z.int().positive().default(3).describe('Frames that a convolution sees.'),
  strides: z
    .array(z.int().positive())
    .nonempty()
    .default([1, 2])
    .describe('Of each convolution, frames from one output to the next.'),
  activationTpl: activationField(() => GELU.config({ approximate: false })),
}) {
  #convolutions: readonly Conv1D[] = [];
  #activation!: BaseActivation;

  protected override setup(): void {
    const { inputDims, outputDims, kernelSize, strides, activationTpl } = this.hp;
    const convolution = (stride: number, i: number) =>
      Conv1D.config({
        filterShape: [kernelSize, i === 0 ? inputDims : outputDims, outputDims],
        filterStride: [stride],
        bias: true,
      });
    this.#convolutions = this.createChildren('convs', strides.map(convolution));
    this.#activation = this.createChild('activation', activationLayer(deepCopy(activationTpl)));
  }

  /** Frames of the output for `count` of the input. */
  numFrames(count: number): number {
    return this.hp.strides.reduce((frames, stride) => Math.ceil(frames / stride), count);
  }

  /**
   * Frames [B, T, inputDims] to [B, T', outputDims]; T' is T over each stride, rounded up.
   *
   * @param paddings [B, T], 1 for padding, which counts as 0; none where absent. An output is padding where the frame in its middle is.
   */
  fprop(inputs: Tensor, paddings?: Tensor): Partial<EncodedFrames> & Pick<EncodedFrames, 'features'> {
    let [x, kept] = [inputs, paddings && unpadded(this, paddings, inputs.shape.slice(0, 2))];
    for (const [i, convolution] of this.#convolutions.entries()) {
      const stride = this.hp.strides[i]!;
      const seen: Tensor = kept ? selected(x, tf.expandDims(kept, -1)) : x;
      x = this.#activation.fprop(convolution.fprop(seen));
      if (kept) kept = tf.stridedSlice(kept, [0, 0], [...kept.shape], [1, stride]);
    }
    return { features: x, ...(kept && { paddings: tf.sub(1, tf.cast(kept, 'float32')) as Tensor }) };
  }
}
