/** @file Log-likelihoods of tokens by a language model, in batches of rows of about one length. */
import type { HostTensor } from '../../compiler/index.js';
import type { Batch } from '../../inputs/index.js';
import { SCORE, type ScoredRow, scoredBatch } from '../../tasks/index.js';
import type { Predictor } from '../predictor.js';
import { RequestError } from '../requestError.js';

/** Tokens of a batch: logits of all of them are in memory at once. */
const BATCH_TOKENS = 2048;
const MOST_ROWS = 16;
/** Rows are padded to a power of two of at least so many tokens: programs are compiled by length. */
const SHORTEST = 16;

/** Scores rows by a predictor whose output is `SCORE`. */
export class RowScorer {
  constructor(
    private readonly predictor: Predictor,
    private readonly maxTokens: number,
  ) {}

  /**
   * Log-likelihoods in nats, in order.
   *
   * @throws RequestError for a model without such a prediction
   */
  async score(rows: readonly ScoredRow[]): Promise<number[]> {
    const scores = new Array<number>(rows.length);
    const byLength = new Map<number, number[]>();
    for (const [row, { ids }] of rows.entries()) {
      const length = this.#padded(ids.length - 1);
      byLength.set(length, [...(byLength.get(length) ?? []), row]);
    }
    for (const [length, places] of byLength) {
      const size = Math.max(1, Math.min(MOST_ROWS, Math.floor(BATCH_TOKENS / length)));
      for (let done = 0; done < places.length; done += size) {
        const own = places.slice(done, done + size);
        const found = await this.predictor.predict(
          batchOf(
            own.map((place) => rows[place]!),
            size,
            length,
          ),
        );
        const losses = found[SCORE];
        if (losses === undefined)
          throw new RequestError('The model predicts no next tokens: expected a language model.');
        for (const [i, place] of own.entries()) scores[place] = -losses.data[i]!;
      }
    }
    return scores;
  }

  #padded(length: number): number {
    const power = 2 ** Math.ceil(Math.log2(Math.max(length, SHORTEST)));
    return Math.max(length, Math.min(power, this.maxTokens));
  }
}

/** A batch with all arrays that a language model may read. */
function batchOf(rows: readonly ScoredRow[], size: number, length: number): Batch {
  const { ids, labels, weights, paddings } = scoredBatch(rows, size, length);
  const tensor = (
    data: HostTensor['data'],
    dtype: HostTensor['dtype'],
    shape = [size, length],
  ): HostTensor => ({
    ...{ shape, dtype, data },
  });
  return {
    ids: tensor(ids, 'int32'),
    labels: tensor(labels, 'int32'),
    weights: tensor(weights, 'float32'),
    paddings: tensor(paddings, 'float32'),
    segmentIds: tensor(new Int32Array(size * length).fill(1), 'int32'),
    segmentPos: tensor(
      Int32Array.from(ids, (_, i) => i % length),
      'int32',
    ),
    evalSampleWeights: tensor(new Float32Array(size).fill(1), 'float32', [size]),
  } as Batch;
}
