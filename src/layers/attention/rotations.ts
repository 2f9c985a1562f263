/** @file Rotations of queries and keys by their position (praxis/layers/embedding_softmax.py). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../../compiler/index.js';
import { build, type Config, type Report, sub } from '../../hparams/index.js';
import { BaseLayer } from '../core/base.js';
import { timescaleFields } from './positions.js';
import { BaseRotaryScaling, type Rotations } from './rotaryScalings.js';

/** Rotates pairs of elements by angles proportional to the position (RoPE, Su et al., 2021). */
export class RotaryPositionalEmbedding extends BaseLayer.with({
  embeddingDims: z.int().positive().multipleOf(2).describe('Size of the last dimension: that of a head.'),
  ...timescaleFields,
  rotaryFraction: z
    .number()
    .positive()
    .max(1)
    .default(1)
    .describe('Which part of the elements, the first ones, is rotated; the others stay.'),
  pairs: z
    .enum(['halves', 'interleaved'])
    .default('halves')
    .describe('Whether pairs are elements i and i + n / 2 of the n rotated ones, or 2 i and 2 i + 1.'),
  scalingTpl: sub(BaseRotaryScaling, null)
    .nullable()
    .default(null)
    .describe('The rule for texts longer than those of the training; null: none.'),
}) {
  static override validate(config: Config<RotaryPositionalEmbedding>, report: Report): void {
    const { embeddingDims, rotaryFraction } = config;
    const rotated = Math.floor(embeddingDims * rotaryFraction);
    if (rotated % 2 === 1 || rotated === 0)
      report(
        `expected an even number of elements to rotate, got ${rotated} of ${embeddingDims}`,
        'rotaryFraction',
      );
  }

  #scaling: BaseRotaryScaling | null = null;

  protected override setup(): void {
    const { scalingTpl } = this.hp;
    if (scalingTpl) this.#scaling = build(scalingTpl);
  }

  /** Number of rotated elements. */
  get #dims(): number {
    return Math.floor(this.hp.embeddingDims * this.hp.rotaryFraction);
  }

  #rotations(): Rotations {
    const { minTimescale, maxTimescale } = this.hp;
    const dims = this.#dims;
    const ratio = maxTimescale / minTimescale;
    const frequencies = Float32Array.from(
      { length: dims / 2 },
      (_, i) => 1 / (minTimescale * ratio ** ((2 * i) / dims)),
    );
    const unscaled = { frequencies, ratio, amplitude: 1 };
    return this.#scaling?.scaled(unscaled) ?? unscaled;
  }

  /**
   * @param inputs [B, T, N, embeddingDims].
   * @param position int32 [B, T] or [1, T]; 0 to T - 1 where absent.
   * @returns the shape of inputs.
   */
  fprop(inputs: Tensor, position?: Tensor): Tensor {
    const { embeddingDims } = this.hp;
    const dims = this.#dims;
    const angles = position ? this.#anglesAt(position) : this.#anglesUpTo(inputs.shape[1]!);
    if (dims === embeddingDims) return this.#rotated(inputs, angles);
    const [rotary, rest] = tf.split(inputs, [dims, embeddingDims - dims], -1) as [Tensor, Tensor];
    return tf.concat([this.#rotated(rotary, angles), rest], -1);
  }

  #rotated(x: Tensor, { sin, cos }: { readonly sin: Tensor; readonly cos: Tensor }): Tensor {
    const turned = (first: Tensor, second: Tensor): [Tensor, Tensor] => [
      tf.sub(tf.mul(first, cos), tf.mul(second, sin)),
      tf.add(tf.mul(second, cos), tf.mul(first, sin)),
    ];
    if (this.hp.pairs === 'halves') return tf.concat(turned(...(tf.split(x, 2, -1) as [Tensor, Tensor])), -1);
    const leading = x.shape.slice(0, -1);
    const parts = tf.unstack(tf.reshape(x, [...leading, x.shape.at(-1)! / 2, 2]), -1) as [Tensor, Tensor];
    return tf.reshape(tf.stack(turned(...parts), -1), x.shape);
  }

  /** Constants [1, T, 1, pairs]. */
  #anglesUpTo(length: number): { sin: Tensor; cos: Tensor } {
    const { frequencies, amplitude } = this.#rotations();
    const pairs = frequencies.length;
    const table = (f: (x: number) => number): Tensor =>
      ops.hostConstant(
        `rotations ${f.name} ${length} ${frequencies} ${amplitude}`,
        { shape: [1, length, 1, pairs], dtype: 'float32' },
        () =>
          Float32Array.from(
            { length: length * pairs },
            (_, i) => amplitude * f(Math.floor(i / pairs) * frequencies[i % pairs]!),
          ),
      );
    return { sin: table(Math.sin), cos: table(Math.cos) };
  }

  /** [B, T, 1, pairs] for positions [B, T]. */
  #anglesAt(position: Tensor): { sin: Tensor; cos: Tensor } {
    const { frequencies, amplitude } = this.#rotations();
    const column = tf.reshape(tf.cast(position, 'float32'), [...position.shape, 1, 1]);
    const angles = tf.mul(column, tf.tensor1d(frequencies, 'float32'));
    const table = (x: Tensor): Tensor => (amplitude === 1 ? x : tf.mul(x, amplitude));
    return { sin: table(tf.sin(angles)), cos: table(tf.cos(angles)) };
  }
}
