/** @file CharTokenizer: characters as token ids. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { InputError } from '../../inputErrors.js';
import type { JsonValue } from '../../jsonValue.js';
import type { SourceFile } from '../corpusFiles.js';
import type { TokenArray } from '../tokens.js';
import { BaseTokenizer, checkIds } from './baseTokenizer.js';
import { charVocabulary, decodeUtf8, encodeCharacters } from './characters.js';

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

  override get maxTokenBytes(): number {
    return Math.max(...this.#known().map((character) => Buffer.byteLength(character)));
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
