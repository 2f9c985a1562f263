/** @file Hugging Face's tokenizer.json: its schema, and the document of a trained byte-level BPE. */
import { z } from 'zod';
import { InputError } from '../inputErrors.js';
import { byteCharacters, bytesInOrder } from './byteAlphabet.js';
import type { Merge } from './wordMerger.js';

const addedToken = z.looseObject({
  id: z.int().nonnegative(),
  content: z.string().min(1),
  single_word: z.boolean().default(false),
  lstrip: z.boolean().default(false),
  rstrip: z.boolean().default(false),
  normalized: z.boolean().default(false),
  special: z.boolean().default(false),
});

const schema = z.looseObject({
  added_tokens: z.array(addedToken).default([]),
  normalizer: z.unknown().default(null),
  pre_tokenizer: z.unknown().default(null),
  post_processor: z.unknown().default(null),
  decoder: z.unknown().default(null),
  model: z.looseObject({ type: z.string().optional() }),
});

/** A tokenizer.json, as far as all models have the same fields. */
export type TokenizerDocument = z.output<typeof schema>;

/** Reads a document. @param where the file in messages @throws InputError where it isn't a tokenizer.json */
export function parseTokenizer(contents: string, where: string): TokenizerDocument {
  try {
    return schema.parse(JSON.parse(contents));
  } catch (cause) {
    const reason = cause instanceof z.ZodError ? z.prettifyError(cause) : (cause as Error).message;
    throw new InputError(`${where} is not a tokenizer.json of Hugging Face: ${reason}`, { cause });
  }
}

/** What the training of a byte-level BPE has learned. */
export interface TrainedBpe {
  /** Special tokens; their ids are their places. */
  readonly specialTokens: readonly string[];
  /** Merges of ids: bytes follow the special tokens in the order of their characters, merged tokens those. */
  readonly merges: readonly Merge[];
}

/** The contents of the tokenizer.json of a byte-level BPE with GPT-2's words. */
export function tokenizerJson({ specialTokens, merges }: TrainedBpe): string {
  const spellings = [...specialTokens, ...bytesInOrder.map((byte) => byteCharacters[byte]!)];
  const pairs = merges.map(([left, right, merged]) => {
    spellings[merged] = spellings[left]! + spellings[right]!;
    return [spellings[left]!, spellings[right]!];
  });
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
  const bytes = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };
  const document = {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: specialTokens.map((content, id) => ({ id, content, ...flags })),
    normalizer: null,
    pre_tokenizer: bytes,
    post_processor: null,
    decoder: bytes,
    model: {
      ...{ type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: null },
      ...{ end_of_word_suffix: null, fuse_unk: false, byte_fallback: false, ignore_merges: false },
      vocab: Object.fromEntries(spellings.map((spelling, id) => [spelling, id])),
      merges: pairs,
    },
  };
  return `${JSON.stringify(document)}\n`;
}
