/** @file Documents with which Hugging Face's JavaScript library gives the ids of the Rust library. */
import type { TokenizerDocument } from './tokenizerJson.js';

/** A pre-tokenizer that also splits before each space where Metaspace says so, for which the library has no eye. */
function splitsAtSpaces(preTokenizer: unknown): unknown {
  if (typeof preTokenizer !== 'object' || preTokenizer === null) return preTokenizer;
  const { type, split, replacement = '▁', pretokenizers } = preTokenizer as Record<string, unknown>;
  if (Array.isArray(pretokenizers))
    return { ...preTokenizer, pretokenizers: pretokenizers.map(splitsAtSpaces) };
  if (type !== 'Metaspace' || split === false) return preTokenizer;
  const space = `\\u{${String(replacement).codePointAt(0)!.toString(16)}}`;
  const words = {
    ...{ type: 'Split', behavior: 'Removed', invert: true },
    pattern: { Regex: `${space}[^${space}]*|[^${space}]+` },
  };
  return { type: 'Sequence', pretokenizers: [preTokenizer, words] };
}

/** Chinese characters beyond U+FFFF, as BERT has them. */
const RARE_CHINESE = '[\u{20000}-\u{2a6df}\u{2a700}-\u{2b81f}\u{2b920}-\u{2ceaf}\u{2f800}-\u{2fa1f}]';

/** A normalizer that also puts spaces around rare Chinese characters, which the library's BertNormalizer passes over. */
function spacesRareChinese(normalizer: unknown): unknown {
  if (typeof normalizer !== 'object' || normalizer === null) return normalizer;
  const { type, handle_chinese_chars: handles, normalizers } = normalizer as Record<string, unknown>;
  if (Array.isArray(normalizers)) return { ...normalizer, normalizers: normalizers.map(spacesRareChinese) };
  if (type !== 'BertNormalizer' || handles === false) return normalizer;
  const spaces = { type: 'Replace', pattern: { Regex: RARE_CHINESE }, content: ' $& ' };
  return { type: 'Sequence', normalizers: [spaces, normalizer] };
}

/** The document, with what the JavaScript library passes over written out. */
export function mendedDocument(document: TokenizerDocument): TokenizerDocument {
  return {
    ...document,
    normalizer: spacesRareChinese(document.normalizer),
    pre_tokenizer: splitsAtSpaces(document.pre_tokenizer),
  };
}

/**
 * The document without its special tokens. In the vocabulary, lone surrogates stand for them, which are in no text that is
 * encoded.
 */
export function withoutSpecialTokens(document: TokenizerDocument): TokenizerDocument {
  const { added_tokens: added, model } = document;
  const special = added.filter((token) => token.special);
  const hidden = new Map(special.map(({ id, content }) => [content, `\uD800${id}`]));
  const renamed = (token: string): string => hidden.get(token) ?? token;
  const { vocab, unk_token: unknown } = model as { readonly vocab: object; readonly unk_token?: unknown };
  const ids = special.map(({ id, content }) => [renamed(content), id]);
  return {
    ...document,
    added_tokens: added.filter((token) => !token.special),
    model: {
      ...model,
      ...(typeof unknown === 'string' && { unk_token: renamed(unknown) }),
      vocab: Array.isArray(vocab)
        ? vocab.map(([token, score]: [string, number]) => [renamed(token), score])
        : Object.fromEntries([...Object.entries(vocab).map(([token, id]) => [renamed(token), id]), ...ids]),
    },
  };
}
