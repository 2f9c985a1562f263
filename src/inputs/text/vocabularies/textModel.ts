/** @file Text models: encoding and decoding by a tokenizer.json. */
import type { SourceFile } from '../corpusFiles.js';
import { ByteLevelBpe } from './byteLevelBpe.js';
import { byteLevelVocabulary } from './byteLevelVocabulary.js';
import { decodeUtf8 } from './characters.js';
import { withoutSpecialTokens } from './hiddenTokens.js';
import { RustTokenizer } from './rustTokenizer.js';
import { tokenBytes } from './tokenBytes.js';
import { type TokenDecoder, WindowDecoder } from './tokenDecoders.js';
import type { TokenizerDocument } from './tokenizerJson.js';
import { checkAddedIds, checkedModel, idsOf, type TokenizerModel } from './tokenizerModel.js';
import { checkedPart, type PartKind } from './tokenizerParts.js';

/** Encodes texts and decodes known ids. */
export interface TextModel {
  /** Texts of the tokens by id; ids without a token are left out. */
  readonly tokens: ReadonlyMap<number, string>;
  /** Most bytes that one id decodes to; Infinity if unknown or omitted words have no limit. */
  readonly maxTokenBytes: number;
  encode(text: string): Int32Array;
  /** @throws InputError for a file that the model cannot read */
  encodeFile(file: SourceFile): Int32Array;
  decode(ids: ArrayLike<number>): string;
  decoder(context: ArrayLike<number>): TokenDecoder;
  /** Bytes that an id adds to a text; undefined for special tokens, and where they are not known. */
  tokenBytes(id: number): Uint8Array | undefined;
}

function byteLevelModel(
  bpe: ByteLevelBpe,
  tokens: readonly (Uint8Array | undefined)[],
  special: ReadonlySet<number>,
): TextModel {
  const utf8 = new TextEncoder();
  const known = tokens.flatMap((bytes, id) => (bytes === undefined ? [] : [[id, bpe.decode([id])] as const]));
  return {
    tokens: new Map(known),
    maxTokenBytes: tokens.reduce((most, bytes) => Math.max(most, bytes?.length ?? 0), 1),
    encode: (text) => bpe.encode(utf8.encode(text)),
    encodeFile: (file) => bpe.encode(file.bytes),
    decode: (ids) => bpe.decode(ids),
    decoder: (context) => bpe.decoder(context),
    tokenBytes: (id) => (special.has(id) ? undefined : tokens[id]),
  };
}

/** A document in the hands of the Rust library, which knows all models. */
function rustModel(document: TokenizerDocument, specialTokensAsText: boolean): TextModel {
  const tokenizer = new RustTokenizer(JSON.stringify(document));
  const encoder = specialTokensAsText
    ? new RustTokenizer(JSON.stringify(withoutSpecialTokens(document)))
    : tokenizer;
  const encode = (text: string): Int32Array => encoder.encode(text.replace(/\p{Surrogate}/gu, '\uFFFD'));
  const decode = (ids: ArrayLike<number>): string => (ids.length === 0 ? '' : tokenizer.decode(ids));
  const ids = [...idsOf(document.model as object as TokenizerModel)];
  const added = document.added_tokens.map(({ id, content }) => [id, content] as const);
  const tokens = new Map([...ids.map(([token, id]) => [id, token] as const), ...added]);
  return {
    tokens,
    maxTokenBytes: Number.POSITIVE_INFINITY,
    encode,
    encodeFile: (file) => encode(decodeUtf8(file)),
    decode,
    decoder: (context) => new WindowDecoder(decode, context),
    tokenBytes: tokenBytes(document, tokens),
  };
}

/**
 * The model of a document: our own for byte-level BPE, else the Rust library's.
 *
 * @param specialTokensAsText whether special tokens in a text are encoded as plain characters.
 * @throws InputError for unsupported parts, with their place and the supported values
 */
export function textModel(given: TokenizerDocument, specialTokensAsText: boolean): TextModel {
  const document = checkedDocument(given);
  const vocabulary = byteLevelVocabulary(document, specialTokensAsText);
  if (vocabulary === undefined) return rustModel(document, specialTokensAsText);
  const special = document.added_tokens.filter((token) => token.special).map(({ id }) => id);
  return byteLevelModel(new ByteLevelBpe(vocabulary), vocabulary.tokens, new Set(special));
}

/** A document whose parts have all their fields. The lengths that it asks for are the reader's to choose. */
function checkedDocument(document: TokenizerDocument): TokenizerDocument {
  const { normalizer, pre_tokenizer, post_processor, decoder, added_tokens } = document;
  const model = checkedModel(document.model);
  checkAddedIds(added_tokens, idsOf(model));
  const parts = { normalizer, pre_tokenizer, post_processor, decoder };
  const checked = Object.entries(parts).map(([kind, part]) => [
    kind,
    checkedPart(kind as PartKind, part, kind),
  ]);
  return { ...document, ...Object.fromEntries(checked), model, truncation: null, padding: null };
}
