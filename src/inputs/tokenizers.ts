/** @file Tokenizers: lossless conversion between text and token ids. */

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { Configurable } from '../hparams/index.js';
import { charVocabulary, decodeUtf8, encodeCharacters } from './characters.js';
import type { SourceFile } from './corpusFiles.js';
import { InputError } from './inputErrors.js';
import type { JsonValue } from './jsonValue.js';
import type { TokenArray } from './tokens.js';

/** Turns text into token ids, 0 … vocabSize − 1, and back. */
export abstract class BaseTokenizer extends Configurable.with({}) {
  static override readonly isAbstract = true;
  /** Number of ids. */
  abstract get vocabSize(): number;

  /** Id that ends a text; null where the vocabulary has none. */
  get eosId(): number | null {
    return null;
  }

  /** Encodes a text; `decode` returns the same text. */
  abstract encode(text: string): Int32Array;

  /** Decodes ids. @throws InputError for an unknown id */
  abstract decode(ids: ArrayLike<number>): string;

  /** Encodes a whole UTF-8 file. @throws InputError with the file and the unencodable text */
  abstract encodeFile(file: SourceFile): TokenArray;

  /** Short identifier of what the ids depend on, by which saved states detect another tokenizer. */
  identity(): string {
    return this.constructor.name;
  }

  /** Whether `fit` must see the corpus before anything is encoded. */
  get needsCorpus(): boolean {
    return false;
  }

  /**
   * Config fields that `fit` learned: if set, they give a tokenizer with the same ids without the corpus. A run saves
   * them, and later processes that read for it set them.
   */
  learned(): { readonly [field: string]: JsonValue } {
    return {};
  }

  /** Learns the vocabulary from a whole corpus, training and validation. */
  fit(_corpus: readonly SourceFile[]): void {}
}

function checkIds(ids: ArrayLike<number>, vocabSize: number, tokenizer: string): void {
  for (let i = 0; i < ids.length; i++) {
    const id = ids[i]!;
    if (!(Number.isInteger(id) && id >= 0 && id < vocabSize)) {
      throw new InputError(
        `${tokenizer}: id ${id} at position ${i} is not an integer from 0 to ${vocabSize - 1}.`,
      );
    }
  }
}

/** UTF-8 bytes as ids 0 … 255: no vocabulary, and every text can be encoded. */
export class ByteTokenizer extends BaseTokenizer.with({}) {
  override get vocabSize(): number {
    return 256;
  }

  override encode(text: string): Int32Array {
    return Int32Array.from(new TextEncoder().encode(text));
  }

  /** Invalid UTF-8, which a model may well write, becomes U+FFFD. */
  override decode(ids: ArrayLike<number>): string {
    checkIds(ids, this.vocabSize, 'ByteTokenizer');
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(Uint8Array.from(ids));
  }

  override encodeFile(file: SourceFile): TokenArray {
    return file.bytes;
  }
}

/**
 * One id per character (Unicode code point), as in nanoGPT's shakespeare_char. The vocabulary is given, or consists of
 * the sorted distinct characters of the input's whole corpus, training and validation.
 */
export class CharTokenizer extends BaseTokenizer.with({
  vocabulary: z
    .string()
    .nullable()
    .default(null)
    .describe('Every character once, ids in this order; null learns it from the input’s whole corpus.'),
}) {
  #characters: readonly string[] | null = null;
  #ids = new Map<number, number>();

  protected override setup(): void {
    super.setup();
    if (this.hp.vocabulary !== null) this.#learn([...this.hp.vocabulary]);
  }

  /** The characters in id order. */
  get vocabulary(): string {
    return this.#known().join('');
  }

  override get vocabSize(): number {
    return this.#known().length;
  }

  override identity(): string {
    const hash = createHash('sha256').update(this.vocabulary).digest('hex');
    return `CharTokenizer of ${this.vocabSize} characters (sha256 ${hash.slice(0, 16)})`;
  }

  override get needsCorpus(): boolean {
    return this.#characters === null;
  }

  override fit(corpus: readonly SourceFile[]): void {
    if (this.needsCorpus) this.#learn([...charVocabulary(corpus.map((file) => decodeUtf8(file)))]);
  }

  override learned(): { readonly [field: string]: JsonValue } {
    return { vocabulary: this.vocabulary };
  }

  override encode(text: string): Int32Array {
    this.#known();
    return Int32Array.from(encodeCharacters(text, this.#ids, 'the text'));
  }

  override decode(ids: ArrayLike<number>): string {
    const characters = this.#known();
    checkIds(ids, characters.length, 'CharTokenizer');
    let text = '';
    for (let i = 0; i < ids.length; i++) text += characters[ids[i]!]!;
    return text;
  }

  override encodeFile(file: SourceFile): TokenArray {
    this.#known();
    return encodeCharacters(decodeUtf8(file), this.#ids, file.name);
  }

  #learn(characters: readonly string[]): void {
    characters.forEach((character, id) => {
      const codePoint = character.codePointAt(0)!;
      if (this.#ids.has(codePoint)) {
        throw new InputError(`CharTokenizer: its vocabulary has ${JSON.stringify(character)} twice.`);
      }
      this.#ids.set(codePoint, id);
    });
    if (characters.length === 0) throw new InputError('CharTokenizer: its vocabulary is empty.');
    this.#characters = characters;
  }

  #known(): readonly string[] {
    if (this.#characters === null) {
      throw new InputError(
        'CharTokenizer: it has no vocabulary yet. Give it one (vocabulary: charVocabularyOf(files)), or let an input read a corpus with it.',
      );
    }
    return this.#characters;
  }
}
