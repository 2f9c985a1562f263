/** @file SyntheticLmInput: random tokens in the shape of text, for benchmarks and tests (Pax's SyntheticLmData). */

import { z } from 'zod';
import { foldIn, randomBits } from '../compiler/random/index.js';
import {
  type BatchSpecs,
  type BatchUnit,
  type LmBatch,
  lmBatchSpecs,
  type PackedLmBatch,
  TOKEN_UNIT,
} from './batch.js';
import { paddingOf } from './batchRows.js';
import type { DataIdentity } from './dataIdentity.js';
import type { RowTraits } from './inputSource.js';
import type { JsonValue } from './jsonValue.js';
import { streamKey } from './random.js';
import { RowInput } from './rowInput.js';

/** Uniformly random tokens without padding; row n is the same in every run with the same seed. */
export class SyntheticLmInput extends RowInput.with({
  seqLen: z.int().positive().describe('Tokens per row.'),
  vocabSize: z.int().min(2).describe('Tokens are 0 … vocabSize − 1.'),
  packed: z
    .boolean()
    .default(false)
    .describe('Whether batches have segmentIds and segmentPos; a row is one segment, as long as the row.'),
  numBatches: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe('Batches until the end of the data; null: no end.'),
}) {
  override get batchUnit(): BatchUnit {
    return TOKEN_UNIT;
  }

  override get repeats(): boolean {
    return this.hp.isTraining || this.hp.numBatches === null;
  }

  protected override get numRows(): number {
    return (this.hp.numBatches ?? Number.POSITIVE_INFINITY) * this.getGlobalBatchSize();
  }

  /** `packed` has no effect: a row is one segment. */
  override rowTraits(): RowTraits {
    return { labels: 'next tokens' };
  }

  override batchSpecs(): BatchSpecs {
    const { batchSize, seqLen, packed } = this.hp;
    return lmBatchSpecs(batchSize, seqLen, packed);
  }

  protected override emptyBatch(): LmBatch {
    return paddingOf(this.batchSpecs()) as LmBatch;
  }

  protected override fillRow(row: number, batch: LmBatch, b: number): void {
    const { seqLen, vocabSize, packed } = this.hp;
    const bits = randomBits(foldIn(streamKey(this.hp.inputRandomSeed ?? 0, 'tokens'), row), seqLen + 1);
    const tokens = Int32Array.from(bits, (word) => Math.floor((word / 2 ** 32) * vocabSize));
    const at = b * seqLen;
    batch.ids.data.set(tokens.subarray(0, seqLen), at);
    batch.labels.data.set(tokens.subarray(1), at);
    batch.paddings.data.fill(0, at, at + seqLen);
    batch.weights.data.fill(1, at, at + seqLen);
    if (!packed) return;
    const { segmentIds, segmentPos } = batch as PackedLmBatch;
    segmentIds.data.fill(1, at, at + seqLen);
    for (let t = 0; t < seqLen; t++) segmentPos.data[at + t] = t;
  }

  override dataIdentity(): DataIdentity {
    return { vocabSize: this.hp.vocabSize };
  }

  override knownIdentity(): DataIdentity {
    return this.dataIdentity();
  }

  protected override identity(): { readonly [name: string]: JsonValue } {
    const { seqLen, vocabSize, inputRandomSeed } = this.hp;
    return { seqLen, vocabSize, seed: inputRandomSeed ?? 0 };
  }
}
