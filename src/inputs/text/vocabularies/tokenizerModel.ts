/** @file Model and added tokens of a tokenizer.json, as the Rust library `tokenizers` has them. */
import { z } from 'zod';
import { didYouMean } from '../../../hparams/index.js';
import { InputError } from '../../inputErrors.js';
import { shown } from '../../shown.js';
import { isId, MOST_ID } from './tokenizerJson.js';
import { checkedFields } from './tokenizerParts.js';

const text = z.string();
const optional = text.nullable().default(null);
const flag = z.boolean().default(false);
/** Ids below the largest one that no token has: models have a row for each of them. */
const MOST_UNUSED = 100_000;

/** Ids by token, or pieces with scores: see `checkVocabulary`. Vocabularies are large: they are looked through, and not copied. */
const ids = z.custom<Readonly<Record<string, number>>>();
const pieces = z.custom<readonly (readonly [string, number])[]>();
const merge = z.union([text, z.tuple([text, text])]);

const models = {
  BPE: z.looseObject({
    dropout: z
      .union([z.null(), z.literal(0)], 'expected null: ids that are drawn anew each time are not supported')
      .default(null),
    ...{ unk_token: optional, continuing_subword_prefix: optional, end_of_word_suffix: optional },
    ...{ fuse_unk: flag, byte_fallback: flag, ignore_merges: flag },
    vocab: ids,
    merges: z.array(merge),
  }),
  WordPiece: z.looseObject({
    ...{ unk_token: text.default('[UNK]'), continuing_subword_prefix: text.default('##') },
    max_input_chars_per_word: z.int().nonnegative().default(100),
    vocab: ids,
  }),
  WordLevel: z.looseObject({ unk_token: text.default('<unk>'), vocab: ids }),
  Unigram: z.looseObject({
    unk_id: z.int().nonnegative().nullable().default(null),
    byte_fallback: flag,
    vocab: pieces,
  }),
};

/** @throws InputError for the first token without an id of its own, and for an id far beyond the number of tokens */
function checkIds(vocab: unknown, path: string): void {
  if (typeof vocab !== 'object' || vocab === null || Array.isArray(vocab)) {
    const found = Array.isArray(vocab) ? 'a list, which a Unigram has' : shown(vocab);
    throw new InputError(`${path}: expected an object of ids by token, got ${found}.`);
  }
  const tokens = new Map<unknown, string>();
  let last = -1;
  for (const [token, id] of Object.entries(vocab)) {
    if (!isId(id))
      throw new InputError(
        `${path}: ${shown(token)} has id ${shown(id)}: expected an integer from 0 to ${MOST_ID}.`,
      );
    const other = tokens.get(id);
    if (other !== undefined)
      throw new InputError(`${path}: ${shown(other)} and ${shown(token)} have one id, ${id}.`);
    tokens.set(id, token);
    last = Math.max(last, id);
  }
  const unused = last + 1 - tokens.size;
  if (unused > MOST_UNUSED)
    throw new InputError(
      `${path}: ${shown(tokens.get(last))} has id ${last}, and there are ${tokens.size} tokens: at most ${MOST_UNUSED} ids may be unused.`,
    );
}

/** @throws InputError for the first piece without a score, or a duplicate */
function checkPieces(vocab: unknown, path: string): void {
  if (!Array.isArray(vocab) || vocab.length === 0)
    throw new InputError(`${path}: expected a list of pieces, each with its score, got ${shown(vocab)}.`);
  const places = new Map<string, number>();
  for (const [place, piece] of vocab.entries()) {
    if (!Array.isArray(piece) || typeof piece[0] !== 'string' || !Number.isFinite(piece[1]))
      throw new InputError(`${path}.${place}: expected a piece with its score, got ${shown(piece)}.`);
    const other = places.get(piece[0]);
    if (other !== undefined)
      throw new InputError(`${path}: ${shown(piece[0])} stands twice, at ${other} and at ${place}.`);
    places.set(piece[0], place);
  }
}

/** The model's kind, where a document of old leaves it out. */
function typeOf(model: object): string {
  if ('type' in model && typeof model.type === 'string') return model.type;
  if ('merges' in model) return 'BPE';
  if ('vocab' in model && Array.isArray(model.vocab)) return 'Unigram';
  return 'continuing_subword_prefix' in model ? 'WordPiece' : 'WordLevel';
}

/** Both tokens of a merge, and the token that they become. */
export function mergeOf(merge: string | readonly [string, string], prefix: string | null): readonly string[] {
  const [left = '', right = '', ...more] = typeof merge === 'string' ? merge.split(' ') : merge;
  return [left, right, left + right.slice(prefix?.length ?? 0), ...more];
}

/** An incomplete merge would end the library's process. */
function checkMerges(
  { vocab, merges, continuing_subword_prefix: prefix }: z.output<typeof models.BPE>,
  path: string,
): void {
  for (const [i, merge] of merges.entries()) {
    const tokens = mergeOf(merge, prefix);
    const where = `${path}.merges.${i} ${JSON.stringify(merge)}`;
    if (tokens.length > 3 || tokens.includes('')) throw new InputError(`${where}: expected two tokens.`);
    if (!tokens[1]!.startsWith(prefix ?? ''))
      throw new InputError(
        `${where}: the second token does not begin with continuing_subword_prefix '${prefix}'.`,
      );
    const unknown = tokens.find((token) => !Object.hasOwn(vocab, token));
    if (unknown !== undefined) throw new InputError(`${where}: '${unknown}' is not in the vocabulary.`);
  }
}

/** A model with its defaults. @throws InputError for an unknown type, and for fields that do not fit */
export function checkedModel(given: object): Readonly<Record<string, unknown>> & TokenizerModel {
  const type = typeOf(given);
  if (!Object.hasOwn(models, type)) {
    const names = Object.keys(models);
    throw new InputError(
      `model: type '${type}' is not known.${didYouMean(type, names)} The types are: ${names.join(', ')}.`,
    );
  }
  const path = `model (${type})`;
  const { vocab } = given as { readonly vocab?: unknown };
  (type === 'Unigram' ? checkPieces : checkIds)(vocab, `${path}.vocab`);
  if (type === 'BPE') checkMerges(checkedFields(models.BPE, given, path), path);
  const model = checkedFields<object>(models[type as keyof typeof models], given, path);
  return { ...model, type } as Readonly<Record<string, unknown>> & TokenizerModel;
}

/** A model's vocabulary: ids by token, or pieces whose ids are their places. */
export interface TokenizerModel {
  readonly type: string;
  readonly vocab: Readonly<Record<string, number>> | readonly (readonly [string, number])[];
}

/** Ids of a model's tokens. */
export function idsOf({ vocab }: TokenizerModel): Map<string, number> {
  return new Map(
    Array.isArray(vocab)
      ? vocab.map(([piece]: readonly [string, number], id: number) => [piece, id])
      : Object.entries(vocab as Readonly<Record<string, number>>),
  );
}

/**
 * Checks that added tokens have the ids that the library gives them whatever the file says: those of the model's
 * vocabulary, and the next ones behind it.
 *
 * @throws InputError for the first that has another
 */
export function checkAddedIds(
  added: readonly { readonly id: number; readonly content: string }[],
  ids: ReadonlyMap<string, number>,
): void {
  const [size, known] = [ids.size, new Map<string, number>()];
  let largest = -1;
  for (const { id, content } of added) {
    const given = known.get(content) ?? ids.get(content) ?? Math.max(size, largest + 1);
    known.set(content, given);
    largest = Math.max(largest, given);
    if (given !== id)
      throw new InputError(
        `added_tokens: '${content}' has id ${id}, and the Rust library gives it ${given}: that of the vocabulary, or the next one behind it.`,
      );
  }
}
