/** @file A tokenizer.json of byte-level BPE as ByteLevelBpe takes it. */
import { z } from 'zod';
import { byteCharacters, bytesOfSpelling } from './byteAlphabet.js';
import type { ByteLevelVocabulary } from './byteLevelBpe.js';
import type { TokenizerDocument } from './tokenizerJson.js';
import type { Merge } from './wordMerger.js';

const none = z.union([z.null(), z.literal('')]).optional();
const no = z.literal(false).optional();

/** Words by GPT-2's pattern, each of bytes. */
const words = z.looseObject({
  type: z.literal('ByteLevel'),
  add_prefix_space: z.literal(false),
  use_regex: z.literal(true).optional(),
});

const plainToken = z.looseObject({ single_word: no, lstrip: no, rstrip: no });

/** Documents that ByteLevelBpe supports. */
const schema = z.looseObject({
  added_tokens: z
    .array(plainToken)
    .refine((tokens) => new Set(tokens.map(({ normalized }) => normalized)).size <= 1),
  normalizer: z.null(),
  pre_tokenizer: words,
  decoder: z.looseObject({ type: z.literal('ByteLevel') }),
  model: z.looseObject({
    ...{ type: z.literal('BPE'), dropout: z.union([z.null(), z.literal(0)]).optional(), unk_token: none },
    ...{ continuing_subword_prefix: none, end_of_word_suffix: none },
    ...{ fuse_unk: no, byte_fallback: no, ignore_merges: no },
    vocab: z.record(z.string(), z.int().nonnegative()),
    merges: z.array(z.union([z.string(), z.tuple([z.string(), z.string()])])),
  }),
});

/** Merges of ids; undefined where one's tokens are not in the vocabulary. */
function mergesOf(
  merges: readonly (string | readonly [string, string])[],
  ids: ReadonlyMap<string, number>,
): Merge[] | undefined {
  const found = merges.map((merge) => {
    const [left = '', right = ''] = typeof merge === 'string' ? merge.split(' ') : merge;
    return [ids.get(left) ?? -1, ids.get(right) ?? -1, ids.get(left + right) ?? -1] as const;
  });
  return found.some((merge) => merge.includes(-1)) ? undefined : found;
}

/**
 * The vocabulary of a document; undefined where it asks for something else than ByteLevelBpe does.
 *
 * @param specialTokensAsText whether special tokens are never encoded.
 */
export function byteLevelVocabulary(
  document: TokenizerDocument,
  specialTokensAsText: boolean,
): ByteLevelVocabulary | undefined {
  const parsed = schema.safeParse(document);
  if (!parsed.success) return undefined;
  const ids = new Map(Object.entries(parsed.data.model.vocab));
  const merges = mergesOf(parsed.data.model.merges, ids);
  const byteIds = Int32Array.from(byteCharacters, (character) => ids.get(character) ?? -1);
  if (merges === undefined || byteIds.includes(-1)) return undefined;
  const utf8 = new TextEncoder();
  const added = document.added_tokens.map(({ id, content, special }) => ({
    ...{ id, bytes: utf8.encode(content) },
    isText: special && specialTokensAsText,
  }));
  const never = new Set(added.filter(({ isText }) => isText).map(({ id }) => id));
  const tokens: (Uint8Array | undefined)[] = [];
  for (const [spelling, id] of ids) tokens[id] = bytesOfSpelling(spelling) ?? utf8.encode(spelling);
  for (const { id, bytes } of added) tokens[id] = bytes;
  return { byteIds, merges: merges.filter(([, , merged]) => !never.has(merged)), tokens, added };
}
