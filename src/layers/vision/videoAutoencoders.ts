/** @file Encoder and decoder of videos, and the autoencoder of codes (praxis/layers/video/vqvae.py). */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { type Config, deepCopyWith, sub } from '../../hparams/index.js';
import { activationField, activationLayer, type BaseActivation, Swish } from '../activations.js';
import { Conv3D } from '../convolution/convolutions.js';
import { BaseLayer } from '../core/base.js';
import { BaseNormalization } from '../normalizations.js';
import { LookupFreeQuantizer } from '../quantizers/fixedQuantizers.js';
import { alongAxis, CausalConv, CondNormLayer, GroupNormSpatial, VideoResBlock } from './videoBlocks.js';

const size = () => z.int().positive();

const filtersField = (filters: number) =>
  size().default(filters).describe('Depth at the finest size, times channelMultipliers.');

/** Fields that encoder, decoder and autoencoder have in common. */
const sizes = {
  embeddingDim: size().default(8).describe('Depth of the encoded video.'),
  numResBlocks: size().default(4).describe('Residual blocks at each size, and at the coarsest once more.'),
  temporalDownsample: z
    .array(z.boolean())
    .default([false, true, true])
    .describe('Whether time is halved too, at each size but the coarsest.'),
  channelMultipliers: z
    .array(size())
    .min(1)
    .default([1, 2, 2, 4])
    .describe('Depth of each size, in filters.'),
};

const parts = {
  normTpl: sub(BaseNormalization, () => GroupNormSpatial.config()).describe(
    'The norm before the last convolution.',
  ),
  convTpl: sub(Conv3D, () => CausalConv.config()).describe('Each convolution outside of the blocks.'),
  resBlockTpl: sub(VideoResBlock).describe('Each residual block.'),
  activationTpl: activationField(() => Swish.config()),
};

/** Base of encoder and decoder. */
abstract class VideoNetwork extends BaseLayer.with({ filters: filtersField(128), ...sizes, ...parts }) {
  static override readonly isAbstract = true;
  #finish!: (x: Tensor) => Tensor;

  protected checkSizes(): void {
    const { temporalDownsample, channelMultipliers } = this.hp;
    const expected = channelMultipliers.length - 1;
    if (temporalDownsample.length !== expected)
      throw this.error(
        `temporalDownsample: expected ${expected} values, one less than channelMultipliers, got ${temporalDownsample.length}.`,
      );
  }

  protected get depths(): number[] {
    return this.hp.channelMultipliers.map((times) => times * this.hp.filters);
  }

  /** Factor of time between the size `i` and the next coarser one. */
  protected timeStride(i: number): number {
    return this.hp.temporalDownsample[i] ? 2 : 1;
  }

  protected conv(taps: number, from: number, to: number, bias = true): Config<Conv3D> {
    return deepCopyWith(this.hp.convTpl, { filterShape: [taps, taps, taps, from, to], bias });
  }

  /** Configs of the residual blocks of one size, from one depth to another. */
  protected blocksOf(from: number, to: number): Config<VideoResBlock>[] {
    const { numResBlocks, resBlockTpl } = this.hp;
    return Array.from({ length: numResBlocks }, (_, i) =>
      deepCopyWith(resBlockTpl, { inputDim: i === 0 ? from : to, outputDim: to }),
    );
  }

  /** Creates norm, activation and convolution behind the last block. */
  protected createEnd(taps: number, from: number, to: number): void {
    const norm = this.createChild('norm', this.hp.normTpl, { dim: from });
    const activation: BaseActivation = this.createChild('activation', activationLayer(this.hp.activationTpl));
    const conv = this.createChild('conv_last', this.conv(taps, from, to));
    this.#finish = (x) => conv.fprop(activation.fprop(norm.fprop(x)));
  }

  protected finish(x: Tensor): Tensor {
    return this.#finish(x);
  }

  /** The `i`-th group of numResBlocks blocks. */
  protected through(blocks: readonly VideoResBlock[], i: number, x: Tensor): Tensor {
    const { numResBlocks } = this.hp;
    return blocks.slice(i * numResBlocks, (i + 1) * numResBlocks).reduce((y, block) => block.fprop(y), x);
  }
}

/**
 * Residual blocks at sizes that halve from one to the next, in space and, where `temporalDownsample` says so, in time. The
 * first frame is encoded for itself: there are 1 + k · 2^halvings frames (MAGVIT-v2, Yu et al., 2023; Pax's Encoder).
 */
export class VideoEncoder extends VideoNetwork.with({
  inputDim: size().default(3).describe('Depth of the videos.'),
}) {
  #first!: Conv3D;
  #blocks: VideoResBlock[] = [];
  #down: Conv3D[] = [];

  protected override setup(): void {
    this.checkSizes();
    const { inputDim, filters, embeddingDim } = this.hp;
    const { depths } = this;
    const last = depths.at(-1)!;
    this.#first = this.createChild('conv_first', this.conv(3, inputDim, filters, false));
    const blocks = depths.flatMap((depth, i) => this.blocksOf(depths[i - 1] ?? filters, depth));
    this.#blocks = this.createChildren('res_blocks', [...blocks, ...this.blocksOf(last, last)]);
    const down = depths
      .slice(0, -1)
      .map((depth, i) =>
        deepCopyWith(this.conv(4, depth, depth), { filterStride: [this.timeStride(i), 2, 2] }),
      );
    this.#down = this.createChildren('conv_downsample_layers', down);
    this.createEnd(1, last, embeddingDim);
  }

  /** [B, T, H, W, inputDim] to the encoded video, [B, 1 + (T - 1) / 2^halvings, ceil(H / 2^k), ceil(W / 2^k), embeddingDim]. */
  fprop(inputs: Tensor): Tensor {
    const factor = 2 ** this.hp.temporalDownsample.filter(Boolean).length;
    if (inputs.rank !== 5 || (inputs.shape[1]! - 1) % factor !== 0)
      throw this.error(
        `expected videos [B, T, H, W, ${this.hp.inputDim}] of 1 + k · ${factor} frames, got [${inputs.shape.join(', ')}].`,
      );
    const coarsest = this.depths.reduce((x, _, i) => {
      const y = this.through(this.#blocks, i, x);
      return this.#down[i]?.fprop(y) ?? y;
    }, this.#first.fprop(inputs));
    return this.finish(this.through(this.#blocks, this.depths.length, coarsest));
  }
}

/** `x` with each slice of an axis `times` times in a row. */
function stretched(x: Tensor, axis: number, times: number): Tensor {
  if (times === 1) return x;
  return alongAxis(x, axis, (lines) => {
    const [rows, cells, width] = lines.shape as [number, number, number];
    const tiled = tf.tile(tf.reshape(lines, [rows * cells, 1, width]), [1, times, 1]);
    return tf.reshape(tiled, [rows, cells * times, width]);
  });
}

/** Depth as cells: [B, T, H, W, time · 4 · D] to [B, time T, 2 H, 2 W, D]. */
function depthToSpace(x: Tensor, time: number): Tensor {
  const [batch, frames, height, width, depth] = x.shape as [number, number, number, number, number];
  const each = depth / (4 * time);
  const byTime = tf.transpose(tf.reshape(x, [batch * frames, height * width, time, 4 * each]), [0, 2, 1, 3]);
  const rows = tf.transpose(
    tf.reshape(byTime, [batch * frames * time * height, width, 2, 2 * each]),
    [0, 2, 1, 3],
  );
  return tf.reshape(rows, [batch, frames * time, 2 * height, 2 * width, each]);
}

/**
 * The way back from an encoded video: residual blocks at sizes that double, each behind a norm whose scale and bias are
 * projections of the encoded video itself, repeated to the size (Pax's Decoder).
 */
export class VideoDecoder extends VideoNetwork.with({
  outputDim: size().default(3).describe('Depth of the videos.'),
  condNormTpl: sub(CondNormLayer).describe('The norm at each size.'),
}) {
  #first!: Conv3D;
  #norms: CondNormLayer[] = [];
  #blocks: VideoResBlock[] = [];
  #up: Conv3D[] = [];

  protected override setup(): void {
    this.checkSizes();
    const { embeddingDim: embDim, outputDim, condNormTpl } = this.hp;
    // The coarsest size first.
    const depths = this.depths.toReversed();
    const before = depths.map((depth, i) => depths[i - 1] ?? depth);
    this.#first = this.createChild('conv_first', this.conv(3, embDim, depths[0]!));
    this.#norms = this.createChildren(
      'cond_norm_layers',
      before.map((dim) => deepCopyWith(condNormTpl, { embDim, dim })),
    );
    this.#blocks = this.createChildren('res_blocks', [
      ...this.blocksOf(depths[0]!, depths[0]!),
      ...depths.flatMap((depth, i) => this.blocksOf(before[i]!, depth)),
    ]);
    this.#up = this.createChildren(
      'conv_upsample_layers',
      depths.slice(0, -1).map((depth, i) => this.conv(3, depth, 4 * depth * this.#strideAfter(i))),
    );
    this.createEnd(3, depths.at(-1)!, outputDim);
  }

  /** Factor of time behind the `i`-th size, from the coarsest on. */
  #strideAfter(i: number): number {
    return this.timeStride(this.hp.channelMultipliers.length - 2 - i);
  }

  /** An encoded video [B, T, H, W, embeddingDim] to [B, 1 + (T - 1) 2^halvings, 2^k H, 2^k W, outputDim]. */
  fprop(inputs: Tensor): Tensor {
    let cond = inputs;
    let x = this.through(this.#blocks, 0, this.#first.fprop(inputs));
    for (const [i, norm] of this.#norms.entries()) {
      x = this.through(this.#blocks, i + 1, norm.fprop(x, cond));
      const up = this.#up[i];
      if (!up) break;
      const time = this.#strideAfter(i);
      // The first frame stands for itself alone.
      const cut = (y: Tensor): Tensor => tf.slice(y, [0, time - 1, 0, 0, 0], [-1, -1, -1, -1, -1]);
      x = cut(depthToSpace(up.fprop(x), time));
      cond = cut([time, 2, 2].reduce((y, times, axis) => stretched(y, axis + 1, times), cond));
    }
    return this.finish(x);
  }
}

/** A video as codes: encoder, quantizer and decoder (Pax's class of this name). Losses of the quantizer are for the caller to add. */
export class VQVaeModel extends BaseLayer.with({
  filters: filtersField(32),
  ...sizes,
  encoderTpl: sub(VideoEncoder).describe('The encoder; its sizes are those of this layer.'),
  decoderTpl: sub(VideoDecoder).describe('The decoder; its sizes are those of this layer.'),
  quantizerTpl: sub(LookupFreeQuantizer).describe('The quantizer of encoded videos.'),
}) {
  #encoder!: VideoEncoder;
  #decoder!: VideoDecoder;
  #quantizer!: LookupFreeQuantizer;

  protected override setup(): void {
    const { encoderTpl, decoderTpl, quantizerTpl, ...own } = this.hp;
    const { filters, embeddingDim, numResBlocks, temporalDownsample, channelMultipliers } = own;
    const shared = { filters, embeddingDim, numResBlocks, temporalDownsample, channelMultipliers };
    this.#encoder = this.createChild('encoder', encoderTpl, shared);
    this.#decoder = this.createChild('decoder', decoderTpl, shared);
    this.#quantizer = this.createChild('quantizer', quantizerTpl, { embeddingDim });
  }

  /** As the quantizer's `fprop` on an encoded video: signs, codes and losses. */
  encode(inputs: Tensor): ReturnType<LookupFreeQuantizer['fprop']> {
    return this.#quantizer.fprop(this.#encoder.fprop(inputs));
  }

  /** The video of quantized vectors, [B, T, H, W, embeddingDim]. */
  decode(quantized: Tensor): Tensor {
    return this.#decoder.fprop(quantized);
  }

  /** The video of codes as `encode` gives them. */
  decodeFromIndices(ids: Tensor): Tensor {
    return this.decode(this.#quantizer.decodeIds(ids));
  }

  /** Videos [B, T, H, W, 3] as they come back from their codes, with the results of `encode`. */
  fprop(inputs: Tensor): ReturnType<VQVaeModel['encode']> & { readonly outputs: Tensor } {
    const encoded = this.encode(inputs);
    return { outputs: this.decode(encoded.quantized), ...encoded };
  }
}
