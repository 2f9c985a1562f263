/** @file Feature: a sequence of token ids that models are given (seqio.Feature). */
import { z } from 'zod';
import { Configurable, instance } from '../../hparams/index.js';
import { BaseTokenizer } from '../text/vocabularies/baseTokenizer.js';

/** Token ids of a task's examples, and the vocabulary that they belong to. */
export class Feature extends Configurable.with({
  tokenizer: instance(BaseTokenizer, null).describe('Vocabulary of the ids.'),
  addEos: z.boolean().default(true).describe('Whether AppendEos ends it with the id of the end.'),
  extraIds: z
    .int()
    .min(0)
    .default(0)
    .describe("Ids behind the tokenizer's, for sentinels; the last is '<extra_id_0>'."),
  required: z.boolean().default(true).describe('Whether each example must have it.'),
}) {
  /** Exclusive limit of ids. */
  get vocabSize(): number {
    return this.hp.tokenizer.vocabSize + this.hp.extraIds;
  }

  /** Whether an id is one of the tokenizer's, or an extra one. */
  hasText(id: number): boolean {
    const { tokenizer } = this.hp;
    return id < tokenizer.vocabSize ? tokenizer.hasText(id) : id < this.vocabSize;
  }

  /** The text of ids before the first one that ends a sequence. @throws InputError for an unknown id */
  decodeUntilEos(ids: ArrayLike<number>): string {
    const { eosId } = this.hp.tokenizer;
    const end = eosId === null ? -1 : Array.prototype.indexOf.call(ids, eosId);
    return this.decode(end < 0 ? ids : Array.prototype.slice.call(ids, 0, end));
  }

  /** The text of ids, extra ones by their names. @throws InputError for an unknown id */
  decode(ids: ArrayLike<number>): string {
    const { tokenizer, extraIds } = this.hp;
    const first = tokenizer.vocabSize;
    let [text, from] = ['', 0];
    const decodeTo = (to: number): string => tokenizer.decode(Array.prototype.slice.call(ids, from, to));
    for (let i = 0; i < ids.length; i++) {
      if (ids[i]! < first || ids[i]! >= first + extraIds) continue;
      text += `${decodeTo(i)}<extra_id_${this.vocabSize - 1 - ids[i]!}>`;
      from = i + 1;
    }
    return text + decodeTo(ids.length);
  }
}
