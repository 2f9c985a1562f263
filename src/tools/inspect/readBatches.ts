/** @file Batches of an input one after another, up to a number or the end of the data. */
import type { Batch, InputSource } from '../../inputs/index.js';
import { untilEnd } from '../../inputs/inputSource.js';

/** The next batches, without `batchPaddingSize`; fewer than `limit` where the data ends. */
export async function* readBatches(input: InputSource, limit: number): AsyncGenerator<Batch> {
  for (let i = 0; i < limit; i++) {
    const batch = await untilEnd(() => input.getNext());
    if (batch === undefined) return;
    yield batch;
  }
}
