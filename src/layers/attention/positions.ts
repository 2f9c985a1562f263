/** @file Position embeddings: sinusoids, a trained table, rotations (praxis/layers/embedding_softmax.py). */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../../compiler/index.js';
import type { Config, Report } from '../../hparams/index.js';
import { BaseLayer } from '../core/base.js';
import type { Theta } from '../core/weights.js';

/** Base of layers whose output is added to token embeddings. */
export abstract class BasePositionalEmbedding extends BaseLayer.with({
  embeddingDims: z.int().positive().describe('Depth of an embedding.'),
}) {
  static override readonly isAbstract = true;
  /** The embeddings of positions 0 to seqLength - 1: [seqLength, embeddingDims]. */
  abstract fprop(seqLength: number): Tensor;
  /** @throws LayerError where there is no embedding for each position of so long a sequence */
  checkLength(_seqLength: number): void {}
  /** The embeddings of int32 positions [...]: [..., embeddingDims]. */
  abstract atPositions(position: Tensor): Tensor;
}

/** The positions of `steps` tokens, the first of which is at `timeStep` (int32 scalar, or [B]): int32 [1 or B, steps]. */
export function stepsFrom(timeStep: Tensor, steps: number): Tensor {
  const first = tf.reshape(timeStep, [timeStep.size, 1]);
  return steps === 1 ? first : tf.add(first, tf.range(0, steps, 1, 'int32'));
}

const timescaleFields = {
  minTimescale: z.number().positive().default(1).describe('Shortest wavelength over 2 pi.'),
  maxTimescale: z.number().positive().default(10_000).describe('Longest wavelength over 2 pi.'),
};

/** Sines, then cosines, of the position at geometrically spaced wavelengths (Vaswani et al., 2017). */
export class PositionalEmbedding extends BasePositionalEmbedding.with(timescaleFields) {
  /** 1 / timescale of each of the embeddingDims / 2 wavelengths. */
  #frequencies(): Float32Array {
    const { minTimescale, maxTimescale, embeddingDims } = this.hp;
    const count = Math.floor(embeddingDims / 2);
    const step = Math.log(maxTimescale / minTimescale) / Math.max(count - 1, 1);
    return Float32Array.from({ length: count }, (_, i) => Math.exp(-i * step) / minTimescale);
  }

  override fprop(seqLength: number): Tensor {
    const { embeddingDims, minTimescale, maxTimescale } = this.hp;
    const shape = [seqLength, embeddingDims];
    const key = `sinusoids ${[...shape, minTimescale, maxTimescale]}`;
    return ops.hostConstant(key, { shape, dtype: 'float32' }, () => this.#table(seqLength));
  }

  #table(seqLength: number): Float32Array {
    const { embeddingDims } = this.hp;
    const frequencies = this.#frequencies();
    const table = new Float32Array(seqLength * embeddingDims);
    for (let t = 0; t < seqLength; t++) {
      frequencies.forEach((frequency, i) => {
        table[t * embeddingDims + i] = Math.sin(t * frequency);
        table[t * embeddingDims + frequencies.length + i] = Math.cos(t * frequency);
      });
    }
    return table;
  }

  override atPositions(position: Tensor): Tensor {
    const frequencies = this.#frequencies();
    const angles = tf.mul(
      tf.expandDims(tf.cast(position, 'float32'), -1),
      tf.tensor1d(frequencies, 'float32'),
    );
    const signal = [tf.sin(angles), tf.cos(angles)];
    // An odd depth has one element without a wavelength.
    if (this.hp.embeddingDims % 2 === 1) signal.push(tf.zeros([...position.shape, 1]));
    return tf.concat(signal, -1);
  }
}

/** A trained row for each position. */
export class TrainablePositionalEmbedding extends BasePositionalEmbedding.with({
  maxSeqLength: z.int().positive().default(10_240).describe('Rows of the table: the longest sequence.'),
}) {
  declare readonly theta: Theta<'emb_var'>;

  protected override setup(): void {
    this.createVariable('emb_var', { shape: [this.hp.maxSeqLength, this.hp.embeddingDims] });
  }

  override checkLength(seqLength: number): void {
    const { maxSeqLength } = this.hp;
    if (seqLength > maxSeqLength)
      throw this.error(`a sequence of ${seqLength} tokens is longer than maxSeqLength ${maxSeqLength}.`);
  }

  override fprop(seqLength: number): Tensor {
    const { maxSeqLength, embeddingDims } = this.hp;
    this.checkLength(seqLength);
    const table = this.theta.emb_var;
    return seqLength === maxSeqLength ? table : tf.slice(table, [0, 0], [seqLength, embeddingDims]);
  }

  override atPositions(position: Tensor): Tensor {
    return ops.embeddingLookup(this.theta.emb_var, position);
  }
}

/**
 * Rotates pairs of elements (i, i + dims / 2) by angles proportional to the position (RoPE, Su et al., 2021).
 *
 * Subclasses may override: `frequencies`.
 */
export class RotaryPositionalEmbedding extends BaseLayer.with({
  embeddingDims: z.int().positive().multipleOf(2).describe('Size of the last dimension: that of a head.'),
  ...timescaleFields,
}) {
  /** 1 / timescale of each of the embeddingDims / 2 rotations. */
  protected frequencies(): Float32Array {
    const { minTimescale, maxTimescale, embeddingDims } = this.hp;
    const ratio = maxTimescale / minTimescale;
    return Float32Array.from(
      { length: embeddingDims / 2 },
      (_, i) => 1 / (minTimescale * ratio ** ((2 * i) / embeddingDims)),
    );
  }

  /**
   * @param inputs [B, T, N, embeddingDims].
   * @param position int32 [B, T] or [1, T]; 0 to T - 1 where absent.
   * @returns the shape of inputs.
   */
  fprop(inputs: Tensor, position?: Tensor): Tensor {
    const { sin, cos } = position ? this.#anglesAt(position) : this.#anglesUpTo(inputs.shape[1]!);
    const [first, second] = tf.split(inputs, 2, -1) as [Tensor, Tensor];
    return tf.concat(
      [tf.sub(tf.mul(first, cos), tf.mul(second, sin)), tf.add(tf.mul(second, cos), tf.mul(first, sin))],
      -1,
    );
  }

  /** Constants [1, T, 1, embeddingDims / 2]. */
  #anglesUpTo(length: number): { sin: Tensor; cos: Tensor } {
    const frequencies = this.frequencies();
    const half = frequencies.length;
    const table = (f: (x: number) => number): Tensor =>
      ops.hostConstant(
        `rotations ${f.name} ${length} ${frequencies}`,
        { shape: [1, length, 1, half], dtype: 'float32' },
        () =>
          Float32Array.from({ length: length * half }, (_, i) =>
            f(Math.floor(i / half) * frequencies[i % half]!),
          ),
      );
    return { sin: table(Math.sin), cos: table(Math.cos) };
  }

  /** [B, T, 1, embeddingDims / 2] for positions [B, T]. */
  #anglesAt(position: Tensor): { sin: Tensor; cos: Tensor } {
    const column = tf.reshape(tf.cast(position, 'float32'), [...position.shape, 1, 1]);
    const angles = tf.mul(column, tf.tensor1d(this.frequencies(), 'float32'));
    return { sin: tf.sin(angles), cos: tf.cos(angles) };
  }
}

/**
 * Rotations for texts longer than those that a model was trained on (Llama 3.1): slow ones, with wavelengths above
 * originalMaxSeqLength / lowFrequencyFactor, are slower by `factor`; fast ones, below originalMaxSeqLength /
 * highFrequencyFactor, stay; those between are interpolated.
 */
export class ScaledRotaryPositionalEmbedding extends RotaryPositionalEmbedding.with({
  factor: z.number().positive().default(8).describe('Divides the frequencies of slow rotations.'),
  lowFrequencyFactor: z.number().positive().default(1).describe('Slow rotations turn less often than this …'),
  highFrequencyFactor: z
    .number()
    .positive()
    .default(4)
    .describe('… and fast ones more often than this, over originalMaxSeqLength tokens.'),
  originalMaxSeqLength: z
    .int()
    .positive()
    .default(8192)
    .describe('Longest sequence of the training with unscaled rotations.'),
}) {
  static override validate(
    { lowFrequencyFactor, highFrequencyFactor }: Config<ScaledRotaryPositionalEmbedding>,
    report: Report,
  ): void {
    if (highFrequencyFactor > lowFrequencyFactor) return;
    report(`expected more than lowFrequencyFactor (${lowFrequencyFactor})`, 'highFrequencyFactor');
  }

  protected override frequencies(): Float32Array {
    const { factor, lowFrequencyFactor, highFrequencyFactor, originalMaxSeqLength } = this.hp;
    return super.frequencies().map((frequency) => {
      const turns = (originalMaxSeqLength * frequency) / (2 * Math.PI);
      const share = (turns - lowFrequencyFactor) / (highFrequencyFactor - lowFrequencyFactor);
      const kept = Math.min(Math.max(share, 0), 1);
      return frequency * ((1 - kept) / factor + kept);
    });
  }
}
