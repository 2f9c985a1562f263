/** @file Feature: a sequence of token ids that models are given (seqio.Feature). */
import { z } from 'zod';
import { Configurable, instance } from '../../hparams/index.js';
import { BaseTokenizer } from '../vocabularies/baseTokenizer.js';

/** Token ids of a task's examples, and the vocabulary that they belong to. */
export class Feature extends Configurable.with({
  tokenizer: instance(BaseTokenizer, null).describe('Vocabulary of the ids.'),
  addEos: z.boolean().default(true).describe('Whether AppendEos ends it with the id of the end.'),
  required: z.boolean().default(true).describe('Whether each example must have it.'),
}) {
  /** Exclusive limit of ids. */
  get vocabSize(): number {
    return this.hp.tokenizer.vocabSize;
  }
}
