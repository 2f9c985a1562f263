/** @file BaseTokenizer: conversion between text and token ids. */
import { Configurable } from '../../../hparams/index.js';
import { InputError } from '../../inputErrors.js';
import type { JsonValue } from '../../jsonValue.js';
import type { RecordedState } from '../../recordedParts.js';
import type { SourceFile } from '../corpusFiles.js';
import type { TokenArray } from '../tokens.js';
import { type TokenDecoder, WindowDecoder } from './tokenDecoders.js';

/**
 * Turns text into token ids, 0 … vocabSize − 1, and back. Its config, with learned state, suffices for another thread
 * to encode alike.
 */
export abstract class BaseTokenizer extends Configurable.with({}) {
  static override readonly isAbstract = true;
  /** Exclusive limit of ids. */
  abstract get vocabSize(): number;

  /** Whether an id has a text; of a model's ids, decoders draw only those, and those that end a sequence. */
  hasText(id: number): boolean {
    return id < this.vocabSize;
  }

  /** Bytes of UTF-8 that an id adds to a text, of a character perhaps a part; undefined for one that adds none. */
  tokenBytes(id: number): Uint8Array | undefined {
    return this.hasText(id) ? new TextEncoder().encode(this.decode([id])) : undefined;
  }

  /** Most bytes of UTF-8 that one id decodes to; Infinity without a limit. */
  get maxTokenBytes(): number {
    return Number.POSITIVE_INFINITY;
  }

  /** Encodes a text; `decode` returns it, lone surrogates aside. No special token is added. */
  abstract encode(text: string): Int32Array;

  /** Decodes ids. @throws InputError for an unknown id */
  abstract decode(ids: ArrayLike<number>): string;

  /** Encodes a whole UTF-8 file. @throws InputError with the file and the unencodable text */
  abstract encodeFile(file: SourceFile): TokenArray;

  /** Short identifier of all that determines the ids, by which saved states and reviews detect another tokenizer. */
  identity(): string {
    return this.constructor.name;
  }

  /** Id of padding; null without one. */
  get padId(): number | null {
    return null;
  }

  /** Id that ends a sequence; null without one. */
  get eosId(): number | null {
    return null;
  }

  /** Id that begins a sequence; null without one. */
  get bosId(): number | null {
    return null;
  }

  /** Ids before a prompt, which `encode` does not add. */
  get promptStart(): readonly number[] {
    return [];
  }

  /** Id of unknown text; null if every text can be encoded, or unknown text is an error. */
  get unkId(): number | null {
    return null;
  }

  /**
   * Decodes ids as they come, each in bounded time. The pieces are the text of all ids without that of the context.
   *
   * @param context ids before the first one: a prompt's
   */
  decoder(context: ArrayLike<number> = []): TokenDecoder {
    return new WindowDecoder((ids) => this.decode(ids), context);
  }

  /** Whether `fit` must see the corpus before anything is encoded. */
  get needsCorpus(): boolean {
    return false;
  }

  /**
   * Config fields that were learned or read: if set, they give a tokenizer with the same ids without the corpus or other
   * files. A run saves them, and later processes that read for it set them.
   */
  learned(): { readonly [field: string]: JsonValue } {
    return {};
  }

  /** A run's record of it; null before it has learned. */
  recorded(): RecordedState | null {
    return this.needsCorpus ? null : { identity: this.identity(), learned: this.learned() };
  }

  /** Learns the vocabulary from a whole corpus, training and validation. */
  fit(_corpus: readonly SourceFile[]): void {}
}

/** @throws InputError for the first id that is not one of the vocabulary's. */
export function checkIds(ids: ArrayLike<number>, vocabSize: number, tokenizer: string): void {
  for (let i = 0; i < ids.length; i++) {
    const id = ids[i]!;
    if (!(Number.isInteger(id) && id >= 0 && id < vocabSize)) {
      throw new InputError(
        `${tokenizer}: id ${id} at position ${i} is not an integer from 0 to ${vocabSize - 1}.`,
      );
    }
  }
}
