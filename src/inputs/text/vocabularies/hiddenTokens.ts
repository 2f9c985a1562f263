/** @file Tokenizer documents without their special tokens, so that no text is encoded as one. */
import { randomUUID } from 'node:crypto';
import type { TokenizerDocument } from './tokenizerJson.js';
import { mergeOf, type TokenizerModel } from './tokenizerModel.js';

/** Names that no text holds, as no writer of a text can know them. */
const unguessable = randomUUID();

/**
 * The document without its special tokens. The vocabulary replaces them by names that no text contains; merges that
 * produce or use them are left out.
 */
export function withoutSpecialTokens(document: TokenizerDocument): TokenizerDocument {
  const added = document.added_tokens;
  const special = added.filter((token) => token.special);
  const hidden = new Map(special.map(({ id, content }) => [content, `${unguessable}-${id}`]));
  const renamed = (token: string): string => hidden.get(token) ?? token;
  const model = document.model as TokenizerDocument['model'] & TokenizerModel & Partial<Pieces>;
  const { vocab, merges, unk_token: unknown, continuing_subword_prefix: prefix = null } = model;
  return {
    ...document,
    added_tokens: added.filter((token) => !token.special),
    model: {
      ...model,
      ...(typeof unknown === 'string' && { unk_token: renamed(unknown) }),
      ...(merges && {
        merges: merges.filter((merge) => !mergeOf(merge, prefix).some((token) => hidden.has(token))),
      }),
      vocab: Array.isArray(vocab)
        ? withPieces(
            vocab,
            special.map(({ id, content }) => [id, renamed(content)]),
            renamed,
          )
        : Object.fromEntries([
            ...Object.entries(vocab).map(([token, id]) => [renamed(token), id]),
            ...special.map(({ id, content }) => [renamed(content), id]),
          ]),
    },
  };
}

interface Pieces {
  readonly merges: readonly (string | readonly [string, string])[];
  readonly unk_token: string | null;
  readonly continuing_subword_prefix: string | null;
}

type Piece = readonly [piece: string, score: number];

/** Pieces with hidden names, and behind them those of special tokens that are no pieces. */
function withPieces(
  pieces: readonly Piece[],
  special: readonly (readonly [id: number, name: string])[],
  renamed: (token: string) => string,
): Piece[] {
  const all = pieces.map(([piece, score]): Piece => [renamed(piece), score]);
  for (const [id, name] of special) if (id >= pieces.length) all[id] = [name, 0];
  return all;
}
