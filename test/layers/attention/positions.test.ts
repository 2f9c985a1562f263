/** @file Tables of positions: those of layers that differ in one setting are two, in one program. */
import { it } from 'vitest';
import { tf } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import {
  PositionalEmbedding,
  PositionalEmbedding2D,
  RotaryPositionalEmbedding,
} from '../../../src/layers/index.js';
import { expectUnmixed } from '../../keys.js';

const first = { seqLength: 5, embeddingDims: 6, minTimescale: 1, maxTimescale: 100 };
const second = { seqLength: 4, embeddingDims: 8, minTimescale: 2, maxTimescale: 200 };

it('sinusoids', () => {
  expectUnmixed('sinusoids', first, second, ({ seqLength, ...hp }) =>
    build(PositionalEmbedding.config(hp)).fprop(seqLength),
  );
});

it('rotations', () => {
  expectUnmixed('rotations', first, second, ({ seqLength, ...hp }) =>
    build(RotaryPositionalEmbedding.config(hp)).fprop(tf.ones([1, seqLength, 1, hp.embeddingDims])),
  );
});

it('grids', () => {
  // As many places in each: shapes alone would not tell them apart.
  const grid = { h: 2, w: 3, embeddingDims: 8 };
  expectUnmixed('grids', grid, { h: 3, w: 2, embeddingDims: 4 }, (hp) =>
    build(PositionalEmbedding2D.config(hp)).fprop(hp.h * hp.w),
  );
});
