/** @file Hugging Face's tokenizer.json: its schema, and the document of a trained byte-level BPE. */
import { z } from 'zod';
import { InputError } from '../../inputErrors.js';
import { shown } from '../../shown.js';
import { byteCharacters, bytesInOrder } from './byteAlphabet.js';
import type { Merge } from './wordMerger.js';

/** Ids are int32, as batches have them. */
export const MOST_ID = 2 ** 31 - 1;

export const isId = (id: unknown): id is number =>
  Number.isInteger(id) && (id as number) >= 0 && (id as number) <= MOST_ID;

const addedToken = z.looseObject({
  id: z.custom<number>(isId, `expected an integer from 0 to ${MOST_ID}`),
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

/** Levels of a document. Those of models have about ten. */
const MOST_LEVELS = 100;

/** Whether a value is nested more deeply, found without recursion. */
function isTooDeep(document: unknown): boolean {
  const isNested = (value: unknown) => typeof value === 'object' && value !== null;
  let level = [document].filter(isNested);
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === MOST_LEVELS) return true;
    level = level.flatMap((value) => Object.values(value as object).filter(isNested));
  }
  return false;
}

/** The added token that a path leads into, with the value there, for messages. */
function tokenAt(document: unknown, [list, index, field]: readonly PropertyKey[]): string {
  if (list !== 'added_tokens' || index === undefined || field === undefined) return '';
  const token = (document as { added_tokens: Record<PropertyKey, Record<PropertyKey, unknown>> })
    .added_tokens[index]!;
  return `, got ${shown(token[field])} for ${shown(token.content)}`;
}

/** Reads a document. @param where the file in messages @throws InputError where it isn't a tokenizer.json */
export function parseTokenizer(contents: string, where: string): TokenizerDocument {
  const fail = (reason: string, cause: unknown): never => {
    throw new InputError(`${where} is not a tokenizer.json of Hugging Face: ${reason}`, { cause });
  };
  let document: unknown;
  try {
    document = JSON.parse(contents);
  } catch (cause) {
    return fail((cause as Error).message, cause);
  }
  if (isTooDeep(document)) return fail(`it is nested more than ${MOST_LEVELS} deep`, null);
  const parsed = schema.safeParse(document);
  if (parsed.success) return parsed.data;
  const [{ path, message }] = parsed.error.issues as [z.core.$ZodIssue];
  const place = path.map(String).join('.');
  return fail(`${place}${place && ': '}${message}${tokenAt(document, path)}`, parsed.error);
}

/** Result of training a byte-level BPE. */
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
