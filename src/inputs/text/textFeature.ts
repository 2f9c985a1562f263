/** @file TextFeature: a text of a record as token ids of a fixed length, with paddings. */
import { z } from 'zod';
import { ConfigError, instance } from '../../hparams/index.js';
import { InputError } from '../inputErrors.js';
import type { IdVocabulary } from '../inputSource.js';
import { BaseFeature, cellOf, type FeatureSpecs } from '../records/features.js';
import type { DataRecord } from '../records/recordTable.js';
import { shown } from '../shown.js';
import { BaseTokenizer } from './vocabularies/baseTokenizer.js';
import { ByteTokenizer } from './vocabularies/byteTokenizer.js';

/**
 * Token ids of the text in a column. A feature called `text` gives a batch `text.ids`, int32 [batchSize, length], and
 * `text.paddings`, float32 [batchSize, length], which is 1 behind the end of a text, as layers take them.
 */
export class TextFeature extends BaseFeature.with({
  column: z.string().min(1).describe('The column.'),
  tokenizer: instance(BaseTokenizer, () => ByteTokenizer.config()).describe(
    'Vocabulary of the ids, from a file or learned from the column. A run saves it.',
  ),
  length: z.int().positive().describe('Ids of a row; shorter texts are padded.'),
  truncation: z
    .enum(['end', 'start', 'error'])
    .default('end')
    .describe("The part of a longer text that is cut off; 'error' refuses it."),
  addBos: z.boolean().default(false).describe("Whether a row begins with the tokenizer's bosId."),
  addEos: z.boolean().default(false).describe("Whether a text ends with the tokenizer's eosId, cut or not."),
}) {
  override get textColumn(): string {
    return this.hp.column;
  }

  override spec(): FeatureSpecs {
    const shape = [this.hp.length];
    return { ids: { shape, dtype: 'int32' }, paddings: { shape, dtype: 'float32' } };
  }

  override vocabularyFor(array: string): IdVocabulary | null {
    return array === 'ids' ? this.hp.tokenizer : null;
  }

  override get needsRecords(): boolean {
    return this.hp.tokenizer.needsCorpus;
  }

  override fit(records: Iterable<DataRecord>): void {
    const { column, tokenizer } = this.hp;
    // A value that is no text is an error of its row.
    const texts = Array.from(records, ({ [column]: text }) => (typeof text === 'string' ? text : ''));
    const name = `column '${column}'`;
    tokenizer.fit(texts.map((text) => ({ name, path: name, bytes: Buffer.from(text) })));
  }

  override valuesOf(record: DataRecord): Readonly<Record<string, ArrayLike<number>>> {
    const { column, tokenizer, length, truncation } = this.hp;
    const [first, last] = [this.#ends('addBos', 'bosId'), this.#ends('addEos', 'eosId')];
    const tokens = tokenizer.encode(this.#textOf(record));
    const room = Math.max(0, length - first.length - last.length);
    const more = tokens.length - room;
    if (more > 0 && truncation === 'error')
      throw new InputError(
        `column '${column}': expected a text of at most ${room} tokens, got ${tokens.length}`,
      );
    const kept = more > 0 && truncation === 'start' ? tokens.subarray(more) : tokens.subarray(0, room);
    const ids = new Int32Array(length).fill(tokenizer.padId ?? 0);
    ids.set([...first, ...kept, ...last]);
    const paddings = new Float32Array(length).fill(1, first.length + kept.length + last.length);
    return { ids, paddings };
  }

  #textOf(record: DataRecord): string {
    const { column } = this.hp;
    const value = cellOf(record, column);
    if (typeof value === 'string') return value;
    throw new InputError(`column '${column}': expected a text, got ${shown(value)}`);
  }

  /** The id at an end of the text, where it has one. @throws ConfigError where the tokenizer lacks it */
  #ends(field: 'addBos' | 'addEos', id: 'bosId' | 'eosId'): number[] {
    if (!this.hp[field]) return [];
    const { tokenizer } = this.hp;
    const found = tokenizer[id];
    if (found !== null) return [found];
    throw new ConfigError(
      `TextFeature.${field}: ${tokenizer.constructor.name} has no ${id}. Give the feature a tokenizer that has one, or set ` +
        `${field}: false.`,
    );
  }
}
