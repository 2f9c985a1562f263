/** @file Incremental decoding: the text of token ids as they come. */
import type { IdVocabulary } from '../../inputSource.js';

/** Decodes a sequence of ids one by one. The pieces together are the text of all ids. */
export interface TokenDecoder {
  /** Takes an id; gives the text that is certain by now, whole characters. @throws InputError for an unknown id */
  take(id: number): string;
  /** The rest at the end: incomplete characters become U+FFFD. */
  rest(): string;
}

/** Decoder of ids of bytes: those of a character wait until it is complete. */
export class ByteDecoder implements TokenDecoder {
  readonly #utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

  /**
   * @param bytesOf the bytes of an id
   * @param context ids before the first one that is taken
   */
  constructor(
    private readonly bytesOf: (id: number) => Uint8Array,
    context: ArrayLike<number>,
  ) {
    for (let i = 0; i < context.length; i++) this.take(context[i]!);
  }

  take(id: number): string {
    return this.#utf8.decode(this.bytesOf(id), { stream: true });
  }

  rest(): string {
    return this.#utf8.decode();
  }
}

/** Ends the text of ids of which further ones may make a character. */
const REPLACEMENT = '\uFFFD';
/** Ids before the last one that may be part of its character: UTF-8 has characters of up to four bytes. */
const MOST_WAITING = 3;

/**
 * The text of ids that follow others, as the difference of the whole text and the others' text: decoded alone, the ids
 * may lose a leading space or split a character.
 */
export function textAfter(before: string, whole: string): string {
  let at = 0;
  while (at < before.length && before[at] === whole[at]) at++;
  const isWithinPair = /[\uD800-\uDBFF]/.test(whole.charAt(at - 1));
  return whole.slice(isWithinPair ? at - 1 : at);
}

/** Text of those ids that have some, so that an end of a sequence may be among them; the numbers without a vocabulary. */
export function textOf(vocabulary: IdVocabulary | null, ids: ArrayLike<number>): string {
  const numbers = Array.from(ids);
  return vocabulary?.decode(numbers.filter((id) => vocabulary.hasText(id))) ?? numbers.join(' ');
}

/**
 * Decoder of any tokenizer: text is decoded in windows. A window begins with the context, then with the ids of the last
 * piece that was given, for the text of an id may depend on the one before it (a blank between words, say).
 */
export class WindowDecoder implements TokenDecoder {
  #window: number[];
  /** Ids of the window whose text is given. */
  #given: number;

  /**
   * @param decode text of ids
   * @param context ids before the first one that is taken
   */
  constructor(
    private readonly decode: (ids: readonly number[]) => string,
    context: ArrayLike<number>,
  ) {
    this.#window = Array.from(context);
    this.#given = context.length;
  }

  take(id: number): string {
    this.#window.push(id);
    const { length } = this.#window;
    if (!this.decode(this.#window).endsWith(REPLACEMENT)) return this.#give(length);
    return length - this.#given > MOST_WAITING + 1 ? this.#give(this.#firstWaiting()) : '';
  }

  rest(): string {
    return this.#give(this.#window.length);
  }

  /**
   * The end of the ids of the first character that waits: the next id adds to the text. A character that is incomplete reads
   * as U+FFFD, and so does U+FFFD itself, whose ids must not be parted.
   */
  #firstWaiting(): number {
    let end = this.#given + 1;
    const text = this.decode(this.#window.slice(0, end));
    while (end + 1 < this.#window.length && this.decode(this.#window.slice(0, end + 1)) === text) end++;
    return end;
  }

  /** The text of the ids before `end` that is not given yet. */
  #give(end: number): string {
    const before = this.decode(this.#window.slice(0, this.#given));
    const piece = textAfter(before, this.decode(this.#window.slice(0, end)));
    this.#window = this.#window.slice(this.#given);
    this.#given = end - this.#given;
    return piece;
  }
}
