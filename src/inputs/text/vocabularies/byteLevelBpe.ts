/** @file ByteLevelBpe: byte-pair encoding of UTF-8 bytes in GPT-2's words. */
import { type AddedToken, AddedTokens } from './addedTokens.js';
import { ByteDecoder, type TokenDecoder } from './tokenDecoders.js';
import { wordEnd } from './wordEnds.js';
import { type Merge, WordMerger } from './wordMerger.js';
import { WordTable } from './wordTable.js';

/** Words whose ids are remembered have at most this many bytes. */
const LONGEST_KNOWN = 64;
/** Bytes of remembered words, at most; then all are forgotten. */
const MOST_KNOWN = 1 << 22;

/** Vocabulary and merges of a byte-pair encoding. */
export interface ByteLevelVocabulary {
  /** Ids of the 256 bytes. */
  readonly byteIds: Int32Array;
  readonly merges: readonly Merge[];
  /** Bytes of each id; undefined for ids without a token. */
  readonly tokens: readonly (Uint8Array | undefined)[];
  /** Tokens that are found in a text before it is split into words. */
  readonly added: readonly AddedToken[];
}

/** Encodes bytes, valid UTF-8 or not, and gives them back exactly. */
export class ByteLevelBpe {
  readonly #merger: WordMerger;
  readonly #added: AddedTokens;
  readonly #known = new WordTable();
  /** Ids of the known words, word after word, and where each begins. */
  #knownIds: Int32Array = new Int32Array(1 << 14);
  #knownStarts: Int32Array = new Int32Array(1 << 12);
  #word: Int32Array = new Int32Array(LONGEST_KNOWN);
  #out: Int32Array = new Int32Array(1 << 12);
  #length = 0;

  constructor(private readonly vocabulary: ByteLevelVocabulary) {
    this.#merger = new WordMerger(vocabulary.merges);
    this.#added = new AddedTokens(vocabulary.added);
  }

  /** The ids of a text as UTF-8. */
  encode(bytes: Uint8Array): Int32Array {
    this.#length = 0;
    let start = 0;
    for (const { at, end, id } of this.#added.in(bytes)) {
      this.#encodeText(bytes, start, at);
      this.#reserve(1);
      this.#out[this.#length++] = id;
      start = end;
    }
    this.#encodeText(bytes, start, bytes.length);
    return this.#out.slice(0, this.#length);
  }

  /** The bytes of an id; undefined for an unknown one. */
  bytesOf(id: number): Uint8Array | undefined {
    return this.vocabulary.tokens[id];
  }

  /** The text of known ids; bytes that are no character become U+FFFD. */
  decode(ids: ArrayLike<number>): string {
    const bytes = Buffer.concat(Array.from(ids, (id) => this.bytesOf(id)!));
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  }

  decoder(context: ArrayLike<number>): TokenDecoder {
    return new ByteDecoder((id) => this.bytesOf(id)!, context);
  }

  #encodeText(bytes: Uint8Array, start: number, end: number): void {
    for (let at = start; at < end; ) {
      const to = wordEnd(bytes, at, end);
      if (to - at <= LONGEST_KNOWN) this.#encodeKnown(bytes, at, to);
      else {
        const length = this.#merge(bytes, at, to);
        this.#append(this.#word, 0, length);
      }
      at = to;
    }
  }

  #encodeKnown(bytes: Uint8Array, start: number, end: number): void {
    const known = this.#known;
    if (known.numBytes > MOST_KNOWN) known.clear();
    const size = known.size;
    const word = known.numberOf(bytes, start, end);
    if (word === size) this.#remember(word, this.#merge(bytes, start, end));
    this.#append(this.#knownIds, this.#knownStarts[word]!, this.#knownStarts[word + 1]!);
  }

  /** Merges a word in `#word`. @returns the number of its ids */
  #merge(bytes: Uint8Array, start: number, end: number): number {
    const { byteIds } = this.vocabulary;
    const length = end - start;
    if (this.#word.length < length) this.#word = new Int32Array(length);
    for (let i = 0; i < length; i++) this.#word[i] = byteIds[bytes[start + i]!]!;
    return this.#merger.merge(this.#word, length);
  }

  #remember(word: number, length: number): void {
    const from = this.#knownStarts[word]!;
    this.#knownIds = withRoom(this.#knownIds, from + length);
    for (let i = 0; i < length; i++) this.#knownIds[from + i] = this.#word[i]!;
    this.#knownStarts = withRoom(this.#knownStarts, word + 2);
    this.#knownStarts[word + 1] = from + length;
  }

  #append(ids: Int32Array, from: number, to: number): void {
    this.#reserve(to - from);
    const out = this.#out;
    let at = this.#length;
    for (let i = from; i < to; i++) out[at++] = ids[i]!;
    this.#length = at;
  }

  #reserve(length: number): void {
    this.#out = withRoom(this.#out, this.#length + length);
  }
}

/** The array, or a larger copy that has room for `least` numbers. */
function withRoom(array: Int32Array, least: number): Int32Array {
  if (array.length >= least) return array;
  const larger = new Int32Array(Math.max(least, 2 * array.length));
  larger.set(array);
  return larger;
}
