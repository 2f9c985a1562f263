/** @file StreamInput: batches of features of records that a function gives one after the other, sync or async. */
import { z } from 'zod';
import { builds } from '../hparams/index.js';
import { BaseInput } from './baseInput.js';
import type { Batch, BatchSpecs, BatchUnit } from './batch.js';
import { paddingOf } from './batchRows.js';
import { EndOfData, InputError } from './inputErrors.js';
import type { IdVocabulary, InputState } from './inputSource.js';
import type { JsonValue } from './jsonValue.js';
import { drawBelow, streamKey } from './random.js';
import {
  featureAt,
  features,
  type Row,
  recordBatch,
  recordSpecs,
  rowReader,
  writeRow,
} from './records/recordBatches.js';
import { type DataRecord, recordOf } from './records/recordTable.js';
import { savedPosition } from './savedPosition.js';
import { errorFields } from './skippedExamples.js';
import { splitFields, streamSplit } from './splits.js';

/** A row with the number of its record in the stream. */
interface NumberedRow {
  readonly row: Row;
  readonly record: number;
}

/** A stream of records, from its beginning. */
type OpenStream = () => Iterable<DataRecord> | AsyncIterable<DataRecord>;

/**
 * Records of a configurable function called in each epoch, such as an async generator: nothing but the shuffle
 * buffer is kept in memory. Batches are RecordInput's. A random share of about `validationFraction` is held out. Every
 * epoch must give the same records in the same order: a resumed run reads the stream again up to its position.
 */
export class StreamInput extends BaseInput.with({
  records: builds<OpenStream>(
    'a function that gives an iterable of records, such as the partial of a generator function',
    (made) => typeof made === 'function',
  ).describe('The records: a partial of a configurable function, sync or async.'),
  features,
  ...errorFields,
  ...splitFields,
  shuffleBufferSize: z
    .int()
    .positive()
    .default(1024)
    .describe('Size of the shuffle buffer: training draws the next record from it; 1 keeps the order.'),
}) {
  #position = 0;
  /** The rows from `#next` on. */
  #rows: AsyncGenerator<NumberedRow> | undefined;
  #next = 0;
  #peeked: Batch | undefined;

  override batchSpecs(): BatchSpecs {
    return recordSpecs(this.hp.features, this.hp.batchSize);
  }

  override get batchUnit(): BatchUnit {
    return { unit: 'rows', dims: 1 };
  }

  override classNamesFor(path: string): readonly string[] | null {
    return featureAt(this.hp.features, path)[0]?.classNames ?? null;
  }

  override vocabularyFor(path: string): IdVocabulary | null {
    const [feature, array] = featureAt(this.hp.features, path);
    return feature?.vocabularyFor(array) ?? null;
  }

  override async exampleBatch(...examples: Parameters<BaseInput['exampleBatch']>): Promise<Batch> {
    return recordBatch(this.hp.features, ...examples);
  }

  override async rowNames(state: InputState): Promise<readonly string[]> {
    const { batchSize, infeedHostIndex } = this.hp;
    const first = savedPosition(this.name, state, this.#identity()) + infeedHostIndex * batchSize;
    const rows = await this.#rowsFrom(first);
    const names: string[] = [];
    await this.skipped.uncounted(async () => {
      for (let row = await rows.next(); !row.done; row = await rows.next()) {
        names.push(`record ${row.value.record}`);
        if (names.length === batchSize) break;
      }
    });
    await rows.return(undefined);
    return names;
  }

  override async getNext(): Promise<Batch> {
    const batch = await this.peek();
    this.#peeked = undefined;
    this.#position += this.getGlobalBatchSize();
    return batch;
  }

  override async peek(): Promise<Batch> {
    this.#peeked ??= await this.#read();
    return this.#peeked;
  }

  override reset(): void {
    this.#moveTo(0);
  }

  override getState(): InputState {
    return { position: this.#position, ...this.#identity() };
  }

  override setState(state: InputState): void {
    this.#moveTo(savedPosition(this.name, state, this.#identity()));
  }

  override async close(): Promise<void> {
    await this.#rows?.return(undefined);
  }

  #identity(): { readonly [name: string]: JsonValue } {
    const { split, validationFraction, splitSeed, shuffleBufferSize, inputRandomSeed, isTraining } = this.hp;
    return {
      ...(split !== 'all' && { split, validationFraction, splitSeed }),
      ...(isTraining && { shuffleBufferSize, shuffleSeed: inputRandomSeed ?? 0 }),
    };
  }

  #moveTo(position: number): void {
    this.#position = position;
    this.#peeked = undefined;
  }

  /** The batch at the position, of which this host's rows are a part. */
  async #read(): Promise<Batch> {
    const { batchSize, infeedHostIndex } = this.hp;
    const rows = await this.#rowsAt(this.#position);
    const batch = paddingOf(this.batchSpecs());
    const all = this.getGlobalBatchSize();
    let count = 0;
    try {
      for (; count < all; count++) {
        const { value, done } = await rows.next();
        if (done) break;
        const b = count - infeedHostIndex * batchSize;
        if (b >= 0 && b < batchSize) writeRow(batch, b, value.row);
      }
    } catch (error) {
      // A generator that has thrown gives nothing more, which would pass for the end of the data.
      this.#rows = undefined;
      throw error;
    }
    this.#next += all;
    if (count === 0) throw new EndOfData(this.name);
    return batch;
  }

  async #rowsAt(position: number): Promise<AsyncGenerator<NumberedRow>> {
    if (this.#rows === undefined || this.#next !== position) {
      await this.close();
      this.#rows = await this.#rowsFrom(position);
      this.#next = position;
    }
    return this.#rows;
  }

  /** The rows from a position on, of a stream that is read again up to it. */
  async #rowsFrom(position: number): Promise<AsyncGenerator<NumberedRow>> {
    const rows = this.#allRows();
    await this.skipped.uncounted(async () => {
      for (let i = 0; i < position; i++) await rows.next();
    });
    return rows;
  }

  /** The rows of all epochs: one, but for training. */
  async *#allRows(): AsyncGenerator<NumberedRow> {
    const { isTraining, shuffleBufferSize, inputRandomSeed } = this.hp;
    for (let epoch = 0; epoch === 0 || isTraining; epoch++) {
      const key = streamKey(inputRandomSeed ?? 0, 'streamShuffle', epoch);
      const buffer: NumberedRow[] = [];
      let drawn = 0;
      const draw = (): NumberedRow => {
        const i = drawBelow(key, drawn++, buffer.length);
        const row = buffer[i]!;
        buffer[i] = buffer.at(-1)!;
        buffer.pop();
        return row;
      };
      for await (const row of this.#epoch()) {
        buffer.push(row);
        if (buffer.length >= (isTraining ? shuffleBufferSize : 1)) yield draw();
      }
      while (buffer.length > 0) yield draw();
    }
  }

  /** The rows of the split in the order of the stream. @throws InputError with the input's name and the record's place */
  async *#epoch(): AsyncGenerator<NumberedRow> {
    const { records, features, split, onError } = this.hp;
    const isInSplit = streamSplit(this.hp);
    const read = rowReader(features);
    let [i, count, inARow] = [0, 0, 0];
    try {
      for await (const record of records()) {
        if (isInSplit(i)) {
          const place = () => `record ${i}`;
          const row = this.skipped.attempt(onError, () => read(recordOf(record, place), place));
          if (row === undefined) this.skipped.check(++inARow);
          else {
            yield { row, record: i };
            count++;
            inARow = 0;
          }
        }
        i++;
      }
      if (inARow > 0) this.skipped.check(inARow, count + inARow);
      if (count === 0)
        throw new InputError(
          i === 0 ? 'there are no records.' : `split '${split}' of ${i} records is empty.`,
        );
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      throw new InputError(`${this.constructor.name} '${this.name}': ${error.message}`, { cause: error });
    }
  }
}
