/** @file Text models: what encodes and decodes by a tokenizer.json. */
import { createRequire } from 'node:module';
import type { Tokenizer } from '@huggingface/tokenizers';
import type { SourceFile } from '../corpusFiles.js';
import { ByteLevelBpe } from './byteLevelBpe.js';
import { byteLevelVocabulary } from './byteLevelVocabulary.js';
import { decodeUtf8 } from './characters.js';
import { mendedDocument, withoutSpecialTokens } from './mendedDocument.js';
import { type TokenDecoder, WindowDecoder } from './tokenDecoders.js';
import type { TokenizerDocument } from './tokenizerJson.js';

/** Encodes texts and decodes known ids. */
export interface TextModel {
  /** Texts of the tokens by id; ids without a token are left out. */
  readonly tokens: ReadonlyMap<number, string>;
  encode(text: string): Int32Array;
  /** @throws InputError for a file that the model cannot read */
  encodeFile(file: SourceFile): Int32Array;
  decode(ids: ArrayLike<number>): string;
  decoder(context: ArrayLike<number>): TokenDecoder;
}

function byteLevelModel(bpe: ByteLevelBpe, tokens: readonly (Uint8Array | undefined)[]): TextModel {
  const utf8 = new TextEncoder();
  const known = tokens.flatMap((bytes, id) => (bytes === undefined ? [] : [[id, bpe.decode([id])] as const]));
  return {
    tokens: new Map(known),
    encode: (text) => bpe.encode(utf8.encode(text)),
    encodeFile: (file) => bpe.encode(file.bytes),
    decode: (ids) => bpe.decode(ids),
    decoder: (context) => bpe.decoder(context),
  };
}

/** A document in the hands of Hugging Face's library, which knows all models. */
function anyModel(document: TokenizerDocument, specialTokensAsText: boolean): TextModel {
  // Most runs don't need it.
  const library = createRequire(import.meta.url)('@huggingface/tokenizers') as {
    Tokenizer: new (document: object, config: object) => Tokenizer;
  };
  const mended = mendedDocument(document);
  const tokenizer = new library.Tokenizer(mended, {});
  const encoder = specialTokensAsText ? new library.Tokenizer(withoutSpecialTokens(mended), {}) : tokenizer;
  const encode = (text: string): Int32Array =>
    text === ''
      ? new Int32Array()
      : Int32Array.from(
          encoder.encode(text.replace(/\p{Surrogate}/gu, '\uFFFD'), { add_special_tokens: false }).ids,
        );
  const options = { skip_special_tokens: false, clean_up_tokenization_spaces: false };
  const decode = (ids: ArrayLike<number>): string =>
    ids.length === 0 ? '' : tokenizer.decode(Array.from(ids), options);
  return {
    tokens: new Map([...tokenizer.get_vocab(true)].map(([token, id]) => [id, token])),
    encode,
    encodeFile: (file) => encode(decodeUtf8(file)),
    decode,
    decoder: (context) => new WindowDecoder(decode, context),
  };
}

/**
 * The model of a document: our own for byte-level BPE, else Hugging Face's.
 *
 * @param specialTokensAsText whether special tokens in a text are encoded as its other characters.
 */
export function textModel(document: TokenizerDocument, specialTokensAsText: boolean): TextModel {
  const vocabulary = byteLevelVocabulary(document, specialTokensAsText);
  if (vocabulary === undefined) return anyModel(document, specialTokensAsText);
  return byteLevelModel(new ByteLevelBpe(vocabulary), vocabulary.tokens);
}
