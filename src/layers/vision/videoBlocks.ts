/** @file Blocks of networks over videos, causal in time (praxis/layers/video/enc_dec_3dcnn.py). */
import { z } from 'zod';
import { sizeOf, type Tensor, tf } from '../../compiler/index.js';
import { deepCopy, sub } from '../../hparams/index.js';
import { activationField, activationLayer, type BaseActivation, Swish } from '../activations.js';
import { Conv3D } from '../convolution/convolutions.js';
import { BaseLayer } from '../core/base.js';
import { GroupNorm } from '../groupNorm.js';
import { Bias, Linear } from '../linears.js';
import { BaseNormalization } from '../normalizations.js';

const size = () => z.int().positive();

/** `x` with one axis changed by `f`, which is given and returns [rows, cells, width]: all before the axis, it, all behind it. */
export function alongAxis(x: Tensor, axis: number, f: (lines: Tensor) => Tensor): Tensor {
  const [before, after] = [x.shape.slice(0, axis), x.shape.slice(axis + 1)];
  const changed = f(tf.reshape(x, [sizeOf(before), x.shape[axis]!, sizeOf(after)]));
  return tf.reshape(changed, [...before, changed.shape[1]!, ...after]);
}

/** The first and the last slice of an axis repeated, in front and behind. */
function withEdges(x: Tensor, axis: number, [before, after]: readonly [number, number]): Tensor {
  const edge = (place: number, count: number): Tensor => {
    const begin = x.shape.map((_, i) => (i === axis ? place : 0));
    const slice = tf.slice(
      x,
      begin,
      x.shape.map((cells, i) => (i === axis ? 1 : cells)),
    );
    return tf.tile(
      slice,
      x.shape.map((_, i) => (i === axis ? count : 1)),
    );
  };
  const parts = [
    ...(before > 0 ? [edge(0, before)] : []),
    x,
    ...(after > 0 ? [edge(x.shape[axis]! - 1, after)] : []),
  ];
  return parts.length > 1 ? tf.concat(parts, axis) : x;
}

/**
 * A convolution that sees no later frames: the first frame stands in for those before it, and the edges of frames for what is
 * beyond them.
 */
export class CausalConv extends Conv3D.with({
  bias: z.boolean().default(true).describe('Whether a bias is added.'),
  padding: z
    .literal('VALID')
    .default('VALID')
    .describe('Windows lie within the input and its repeated edges.'),
}) {
  /** [B, T, H, W, I] to [B, ceil(T / stride), ceil(H / stride), ceil(W / stride), O]. */
  override fprop(inputs: Tensor): Tensor {
    const [time, height, width] = this.hp.filterShape;
    const around = (taps: number) => [Math.floor((taps - 1) / 2), Math.floor(taps / 2)] as const;
    const pads = [[time - 1, 0] as const, around(height), around(width)];
    return this.convolved(pads.reduce((x, pad, axis) => withEdges(x, axis + 1, pad), inputs));
  }
}

/** Group norm of each frame for itself, so that no frame sees a later one. */
export class GroupNormSpatial extends GroupNorm.with({
  epsilon: z.number().positive().default(1e-6).describe('Added to the variance.'),
}) {
  /** [B, T, H, W, dim] to the same shape. */
  override fprop(inputs: Tensor): Tensor {
    const [batch, time, ...frame] = inputs.shape as [number, number, ...number[]];
    const frames = tf.reshape(inputs, [batch * time, ...frame]) as Tensor;
    return tf.reshape(super.fprop(frames), inputs.shape);
  }
}

/** norm(x) (1 + gamma(emb)) + beta(emb): a norm whose scale and bias are projections of another tensor, cell by cell. */
export class CondNormLayer extends BaseLayer.with({
  groupNormTpl: sub(GroupNorm, () => GroupNormSpatial.config()).describe('The norm, without variables.'),
  linearTpl: sub(Linear).describe('Projections to scale and bias.'),
  biasTpl: sub(Bias).describe('What is added to them.'),
  embDim: size().describe('Depth of the other tensor.'),
  dim: size().describe('Depth of the input.'),
}) {
  #norm!: GroupNorm;
  #gamma!: (emb: Tensor) => Tensor;
  #beta!: (emb: Tensor) => Tensor;

  protected override setup(): void {
    const { groupNormTpl, dim } = this.hp;
    this.#norm = this.createChild('group_norm', groupNormTpl, { dim, useScale: false, useBias: false });
    this.#gamma = this.#projection('gamma');
    this.#beta = this.#projection('beta');
  }

  #projection(name: string): (emb: Tensor) => Tensor {
    const { linearTpl, biasTpl, embDim: inputDims, dim } = this.hp;
    const linear = this.createChild(`${name}_linear`, deepCopy(linearTpl), { inputDims, outputDims: dim });
    const bias = this.createChild(`${name}_bias`, deepCopy(biasTpl), { dims: dim });
    return (emb) => bias.fprop(linear.fprop(emb));
  }

  /** inputs [B, T, H, W, dim] and emb [B, T, H, W, embDim] to the shape of inputs. */
  fprop(inputs: Tensor, emb: Tensor): Tensor {
    const scaled = tf.mul(this.#norm.fprop(inputs), tf.add(this.#gamma(emb), 1));
    return tf.add(scaled, this.#beta(emb));
  }
}

/** shortcut(x) + conv(act(norm(conv(act(norm(x)))))), where the shortcut is a convolution if depths differ (Pax's ResBlock). */
export class VideoResBlock extends BaseLayer.with({
  inputDim: size().describe('Depth of the input.'),
  outputDim: size().default(128).describe('Depth of the output.'),
  useConvShortcut: z
    .boolean()
    .default(false)
    .describe('Whether the shortcut has a 3x3x3 window; else 1x1x1.'),
  normLayerTpl: sub(BaseNormalization, () => GroupNormSpatial.config()).describe('Each norm.'),
  convLayerTpl: sub(Conv3D, () => CausalConv.config()).describe('Each convolution; it has no bias.'),
  activationTpl: activationField(() => Swish.config()),
}) {
  #norms!: readonly [BaseNormalization, BaseNormalization];
  #convs!: readonly [Conv3D, Conv3D];
  #shortcut: Conv3D | null = null;
  #activation!: BaseActivation;

  protected override setup(): void {
    const { inputDim, outputDim, useConvShortcut, normLayerTpl, convLayerTpl, activationTpl } = this.hp;
    const norm = (name: string, dim: number) => this.createChild(name, deepCopy(normLayerTpl), { dim });
    const conv = (name: string, from: number, taps = 3) =>
      this.createChild(name, deepCopy(convLayerTpl), {
        ...{ filterShape: [taps, taps, taps, from, outputDim], bias: false },
      });
    this.#norms = [norm('norm_0', inputDim), norm('norm_1', outputDim)];
    this.#convs = [conv('conv_0', inputDim), conv('conv_1', outputDim)];
    if (inputDim !== outputDim) this.#shortcut = conv('conv_shortcut', inputDim, useConvShortcut ? 3 : 1);
    this.#activation = this.createChild('activation', activationLayer(activationTpl));
  }

  /** [B, T, H, W, inputDim] to [B, T, H, W, outputDim]. */
  fprop(inputs: Tensor): Tensor {
    const branch = this.#convs.reduce(
      (x, conv, i) => conv.fprop(this.#activation.fprop(this.#norms[i]!.fprop(x))),
      inputs,
    );
    return tf.add(branch, this.#shortcut ? this.#shortcut.fprop(inputs) : inputs);
  }
}
