/** @file Position embeddings that are added: sinusoids, over a grid too, and a trained table (praxis/layers/embedding_softmax.py). */
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

/** Fields of wavelengths. */
export const timescaleFields = {
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
 * Sines, then cosines, of the row, then those of the column, of the cells of a grid in row-major order. Rows and columns are
 * counted from the middle; wavelengths are 2 pi 10000^(4 i / embeddingDims).
 */
export class PositionalEmbedding2D extends BasePositionalEmbedding.with({
  h: z.int().positive().describe('Rows of the grid.'),
  w: z.int().positive().describe('Columns of the grid.'),
}) {
  static override validate({ embeddingDims }: Config<PositionalEmbedding2D>, report: Report): void {
    if (embeddingDims % 4 !== 0)
      report('expected a multiple of 4: sines and cosines of two axes', 'embeddingDims');
  }

  override checkLength(seqLength: number): void {
    const { h, w } = this.hp;
    if (seqLength !== h * w)
      throw this.error(`a sequence of ${seqLength} positions is no grid of ${h} rows and ${w} columns.`);
  }

  override fprop(seqLength: number): Tensor {
    this.checkLength(seqLength);
    const { h, w, embeddingDims } = this.hp;
    const shape = [seqLength, embeddingDims];
    return ops.hostConstant(`grid ${h} ${w} ${embeddingDims}`, { shape, dtype: 'float32' }, () =>
      this.#table(),
    );
  }

  #table(): Float32Array {
    const { h, w, embeddingDims } = this.hp;
    const count = embeddingDims / 4;
    const signal = (at: number): number[] => {
      const angles = Array.from({ length: count }, (_, i) => at / 10_000 ** (i / count));
      return [...angles.map(Math.sin), ...angles.map(Math.cos)];
    };
    return Float32Array.from(
      Array.from({ length: h * w }, (_, i) => [
        ...signal(Math.floor(i / w) - h / 2),
        ...signal((i % w) - w / 2),
      ]).flat(),
    );
  }

  override atPositions(position: Tensor): Tensor {
    return ops.embeddingLookup(this.fprop(this.hp.h * this.hp.w), position);
  }
}
