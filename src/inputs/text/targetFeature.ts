/** @file TargetFeature: a text of a record as the targets of an encoder-decoder. */
import { z } from 'zod';
import { ConfigError, instance } from '../../hparams/index.js';
import { InputError } from '../inputErrors.js';
import type { IdVocabulary } from '../inputSource.js';
import { BaseFeature, cellOf, type FeatureSpec, type FeatureSpecs } from '../records/features.js';
import type { DataRecord } from '../records/recordTable.js';
import { shown } from '../shown.js';
import { BaseTokenizer } from './vocabularies/baseTokenizer.js';

/**
 * Targets of a `SequenceModel`: a feature called `tgt` gives a batch `tgt.ids`, `tgt.labels`, `tgt.paddings` and `tgt.weights`, each
 * [batchSize, length]. Ids are `start`, then the text; labels are the ids behind them, up to the end of the text.
 */
export class TargetFeature extends BaseFeature.with({
  column: z.string().min(1).describe('The column.'),
  tokenizer: instance(BaseTokenizer, null).describe(
    'Vocabulary of the ids, with an id for the end of a text.',
  ),
  addEos: z.boolean().default(true).describe("Whether a text ends with the tokenizer's eosId."),
  length: z.int().positive().describe('Ids of a row; shorter texts are padded, and longer ones cut.'),
  start: z
    .array(z.int().nonnegative())
    .min(1)
    .describe('Ids before the text, with which decodes begin; they are no labels.'),
}) {
  protected override setup(): void {
    const { start, length } = this.hp;
    if (start.length >= length)
      throw new ConfigError(
        `TargetFeature.length is ${length}, and start has ${start.length} ids: expected more.`,
      );
  }

  override spec(): FeatureSpecs {
    const array = (dtype: FeatureSpec['dtype']) => ({ shape: [this.hp.length], dtype });
    return {
      ...{ ids: array('int32'), labels: array('int32') },
      ...{ paddings: array('float32'), weights: array('float32') },
    };
  }

  override vocabularyFor(array: string): IdVocabulary | null {
    const { tokenizer, start: targetStart } = this.hp;
    if (array !== 'ids' && array !== 'labels') return null;
    const { vocabSize, unkId } = tokenizer;
    const decode = (ids: ArrayLike<number>) => tokenizer.decode(ids);
    return {
      ...{ vocabSize, unkId, targetStart, decode },
      hasText: (id) => tokenizer.hasText(id),
      tokenBytes: (id) => tokenizer.tokenBytes(id),
    };
  }

  override valuesOf(record: DataRecord): Readonly<Record<string, ArrayLike<number>>> {
    const { column, tokenizer, length, start } = this.hp;
    const text = cellOf(record, column);
    if (typeof text !== 'string')
      throw new InputError(`column '${column}': expected a text, got ${shown(text)}`);
    const all = [...start, ...tokenizer.encode(text), ...this.#end].slice(0, length + 1);
    const size = all.length - 1;
    const ids = new Int32Array(length);
    ids.set(all.slice(0, -1));
    const labels = new Int32Array(length);
    labels.set(all.slice(1));
    return {
      ...{ ids, labels },
      paddings: new Float32Array(length).fill(1, size),
      weights: new Float32Array(length).fill(1, start.length - 1, size),
    };
  }

  get #end(): readonly number[] {
    const { tokenizer, addEos } = this.hp;
    if (!addEos) return [];
    if (tokenizer.eosId !== null) return [tokenizer.eosId];
    throw new ConfigError(
      `TargetFeature.addEos: ${tokenizer.constructor.name} has no eosId. Give the feature a tokenizer that has one, or set ` +
        'addEos: false.',
    );
  }
}
