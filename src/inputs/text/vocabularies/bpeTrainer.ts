/** @file Training of byte-level BPE: the most frequent pair of ids is merged, again and again. */
import { byteCharacters, bytesInOrder } from './byteAlphabet.js';
import { PairTable } from './pairTable.js';
import { wordEnd } from './wordEnds.js';
import type { Merge } from './wordMerger.js';
import { WordTable } from './wordTable.js';

/** Counts the words of a corpus. */
export class WordCounts {
  readonly words = new WordTable();
  readonly counts: number[] = [];
  /** Bytes of the corpus. */
  numBytes = 0;

  /** Counts the words of a document, UTF-8. */
  add(document: Uint8Array): void {
    this.numBytes += document.length;
    for (let at = 0; at < document.length; ) {
      const end = wordEnd(document, at, document.length);
      const word = this.words.numberOf(document, at, end);
      this.counts[word] = (this.counts[word] ?? 0) + 1;
      at = end;
    }
  }
}

/** Settings of the training. */
export interface BpeTraining {
  /** Ids below those of bytes, which special tokens have. */
  readonly firstId: number;
  /** Ids in all: special tokens, 256 bytes, merges. */
  readonly vocabSize: number;
  /** Times that a pair must occur. */
  readonly minFrequency: number;
}

/** A pair in the queue, with its count when it was put there. */
interface Candidate {
  readonly pair: number;
  readonly count: number;
  /** Words to merge it in; may have duplicates, and words that have lost the pair since. */
  readonly words: readonly number[];
}

/** Pairs by falling count, then by their ids: the order of Hugging Face's trainer. */
class CandidateQueue {
  readonly #items: Candidate[] = [];

  constructor(private readonly pairs: PairTable) {}

  push(item: Candidate): void {
    const items = this.#items;
    let at = items.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#isBefore(item, items[parent]!)) break;
      items[at] = items[parent]!;
      at = parent;
    }
    items[at] = item;
  }

  pop(): Candidate | undefined {
    const items = this.#items;
    const top = items[0];
    const last = items.pop();
    if (last === undefined || items.length === 0) return top;
    let at = 0;
    for (let child = 1; child < items.length; child = 2 * at + 1) {
      if (child + 1 < items.length && this.#isBefore(items[child + 1]!, items[child]!)) child++;
      if (!this.#isBefore(items[child]!, last)) break;
      items[at] = items[child]!;
      at = child;
    }
    items[at] = last;
    return top;
  }

  #isBefore(a: Candidate, b: Candidate): boolean {
    if (a.count !== b.count) return a.count > b.count;
    const { lefts, rights } = this.pairs;
    const difference = lefts[a.pair]! - lefts[b.pair]! || rights[a.pair]! - rights[b.pair]!;
    return difference < 0;
  }
}

/** Words by the pair that was made in them. */
type Made = Map<number, number[]>;

/** The words of a corpus as ids, with the count of each pair of neighbours. */
class PairedWords {
  readonly pairs = new PairTable(1 << 16);
  /** Occurrences in the corpus by pair. */
  readonly counts: number[] = [];
  /** The pairs of the words before any merge. */
  readonly first: Made = new Map();
  readonly #ids: Int32Array;
  readonly #lengths: Int32Array;

  constructor(
    private readonly corpus: WordCounts,
    byteIds: Int32Array,
  ) {
    const { bytes, starts, size, numBytes } = corpus.words;
    this.#ids = Int32Array.from({ length: numBytes }, (_, i) => byteIds[bytes[i]!]!);
    this.#lengths = Int32Array.from({ length: size }, (_, word) => starts[word + 1]! - starts[word]!);
    for (let word = 0; word < size; word++)
      for (let i = starts[word]!; i + 1 < starts[word + 1]!; i++)
        this.#count(this.#ids[i]!, this.#ids[i + 1]!, corpus.counts[word]!, word, this.first);
  }

  /** Merges a pair in all words. @returns the pairs that this has made */
  merge({ pair, words }: Candidate, merged: number): Made {
    const [left, right] = [this.pairs.lefts[pair]!, this.pairs.rights[pair]!];
    const made: Made = new Map();
    for (const word of words) this.#mergeIn(word, left, right, merged, made);
    return made;
  }

  #mergeIn(word: number, left: number, right: number, merged: number, made: Made): void {
    const ids = this.#ids;
    const count = this.corpus.counts[word]!;
    const start = this.corpus.words.starts[word]!;
    const end = start + this.#lengths[word]!;
    let to = start;
    for (let i = start; i < end; i++) {
      if (ids[i] !== left || i + 1 === end || ids[i + 1] !== right) {
        ids[to++] = ids[i]!;
        continue;
      }
      if (to > start) {
        this.#lose(ids[to - 1]!, left, count);
        this.#count(ids[to - 1]!, merged, count, word, made);
      }
      if (i + 2 < end) {
        this.#lose(right, ids[i + 2]!, count);
        this.#count(merged, ids[i + 2]!, count, word, made);
      }
      ids[to++] = merged;
      i++;
    }
    this.#lengths[word] = to - start;
  }

  #count(left: number, right: number, count: number, word: number, made: Made): void {
    const pair = this.pairs.numberOf(left, right);
    this.counts[pair] = (this.counts[pair] ?? 0) + count;
    const words = made.get(pair);
    if (words === undefined) made.set(pair, [word]);
    else words.push(word);
  }

  #lose(left: number, right: number, count: number): void {
    const pair = this.pairs.numberOf(left, right);
    this.counts[pair] = (this.counts[pair] ?? 0) - count;
  }
}

/** Spellings of the ids from `firstId` on. Equal spellings of different merges are one token. */
class Spellings {
  readonly #spellings: string[];
  readonly #ids: Map<string, number>;

  constructor(private readonly firstId: number) {
    this.#spellings = bytesInOrder.map((byte) => byteCharacters[byte]!);
    this.#ids = new Map(this.#spellings.map((spelling, i) => [spelling, firstId + i]));
  }

  /** Exclusive limit of the ids. */
  get end(): number {
    return this.firstId + this.#spellings.length;
  }

  /** The id of two ids' joined spellings, a new one unless it is known. */
  join(left: number, right: number): number {
    const spelling = this.#spellings[left - this.firstId]! + this.#spellings[right - this.firstId]!;
    const known = this.#ids.get(spelling);
    if (known !== undefined) return known;
    const id = this.end;
    this.#spellings.push(spelling);
    this.#ids.set(spelling, id);
    return id;
  }
}

/**
 * Learns merges: each joins the most frequent pair, of equally frequent ones that with the smallest ids. Ids of the bytes
 * follow `firstId` in the order of their characters, ids of merged tokens those. The same words give the same merges, as
 * by Hugging Face's trainer (tokenizers, models/bpe/trainer.rs).
 */
export function trainBpe(corpus: WordCounts, { firstId, vocabSize, minFrequency }: BpeTraining): Merge[] {
  const byteIds = new Int32Array(256);
  bytesInOrder.forEach((byte, i) => {
    byteIds[byte] = firstId + i;
  });
  const spellings = new Spellings(firstId);
  const paired = new PairedWords(corpus, byteIds);
  const { pairs, counts } = paired;
  const queue = new CandidateQueue(pairs);
  for (const [pair, words] of paired.first) queue.push({ pair, words, count: counts[pair]! });
  const merges: Merge[] = [];
  while (spellings.end < vocabSize) {
    const top = queue.pop();
    if (top === undefined) break;
    const count = counts[top.pair]!;
    if (count !== top.count) {
      queue.push({ ...top, count });
      continue;
    }
    if (count < Math.max(1, minFrequency)) break;
    const [left, right] = [pairs.lefts[top.pair]!, pairs.rights[top.pair]!];
    const merged = spellings.join(left, right);
    merges.push([left, right, merged]);
    for (const [pair, words] of paired.merge(top, merged))
      if (counts[pair]! > 0) queue.push({ pair, words, count: counts[pair]! });
  }
  return merges;
}
