/** @file WordMerger: the byte-pair merges of one word, the first learned first. */
import { PairTable } from './pairTable.js';

/** Two ids and the id that they make. */
export type Merge = readonly [left: number, right: number, merged: number];

/** Symbols of a word up to which the next merge is searched again each time; longer words have a queue. */
const SHORT = 48;
const NEVER = 0x7fffffff;
/** A queue's entry is rank · POSITIONS + position. */
const POSITIONS = 2 ** 32;

/** Takes numbers, gives the smallest. */
class MinHeap {
  #items: Float64Array;
  #size = 0;

  constructor(capacity: number) {
    this.#items = new Float64Array(capacity);
  }

  get isEmpty(): boolean {
    return this.#size === 0;
  }

  push(item: number): void {
    const items = this.#items;
    let at = this.#size++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (items[parent]! <= item) break;
      items[at] = items[parent]!;
      at = parent;
    }
    items[at] = item;
  }

  pop(): number {
    const items = this.#items;
    const top = items[0]!;
    const last = items[--this.#size]!;
    let at = 0;
    for (let child = 1; child < this.#size; child = 2 * at + 1) {
      if (child + 1 < this.#size && items[child + 1]! < items[child]!) child++;
      if (items[child]! >= last) break;
      items[at] = items[child]!;
      at = child;
    }
    items[at] = last;
    return top;
  }
}

/** Applies merges to words: of all possible ones the first learned, of equal ones the leftmost. */
export class WordMerger {
  readonly #pairs: PairTable;
  /** Rank and result of a merge by the number of its pair. */
  readonly #ranks: Int32Array;
  readonly #merged: Int32Array;
  readonly #shortRanks = new Int32Array(SHORT);

  /** @param merges in the order in which they were learned; of a pair's merges the last one counts */
  constructor(merges: readonly Merge[]) {
    this.#pairs = new PairTable(merges.length);
    this.#ranks = new Int32Array(merges.length);
    this.#merged = new Int32Array(merges.length);
    merges.forEach(([left, right, merged], rank) => {
      const pair = this.#pairs.numberOf(left, right);
      this.#ranks[pair] = rank;
      this.#merged[pair] = merged;
    });
  }

  /** Merges the first `length` ids in place. @returns how many are left */
  merge(ids: Int32Array, length: number): number {
    return length <= SHORT ? this.#mergeShort(ids, length) : this.#mergeLong(ids, length);
  }

  #rank(left: number, right: number): number {
    const pair = this.#pairs.find(left, right);
    return pair < 0 ? NEVER : this.#ranks[pair]!;
  }

  #mergeShort(ids: Int32Array, length: number): number {
    const ranks = this.#shortRanks;
    for (let i = 0; i + 1 < length; i++) ranks[i] = this.#rank(ids[i]!, ids[i + 1]!);
    let left = length;
    for (;;) {
      let [best, at] = [NEVER, -1];
      for (let i = 0; i + 1 < left; i++) {
        if (ranks[i]! >= best) continue;
        best = ranks[i]!;
        at = i;
      }
      if (at < 0) return left;
      ids[at] = this.#merged[this.#pairs.find(ids[at]!, ids[at + 1]!)]!;
      left--;
      for (let i = at + 1; i < left; i++) {
        ids[i] = ids[i + 1]!;
        ranks[i] = ranks[i + 1]!;
      }
      if (at > 0) ranks[at - 1] = this.#rank(ids[at - 1]!, ids[at]!);
      if (at + 1 < left) ranks[at] = this.#rank(ids[at]!, ids[at + 1]!);
    }
  }

  /** A linked list of symbols and a queue of the merges at each: n log n for n symbols. */
  #mergeLong(ids: Int32Array, length: number): number {
    const next = Int32Array.from({ length }, (_, i) => i + 1);
    const previous = Int32Array.from({ length }, (_, i) => i - 1);
    const queue = new MinHeap(3 * length);
    const offer = (at: number): void => {
      if (at < 0 || next[at]! >= length) return;
      const rank = this.#rank(ids[at]!, ids[next[at]!]!);
      if (rank !== NEVER) queue.push(rank * POSITIONS + at);
    };
    for (let i = 0; i < length; i++) offer(i);
    while (!queue.isEmpty) {
      const entry = queue.pop();
      const at = entry % POSITIONS;
      const right = next[at]!;
      // The symbols of an entry may have been merged otherwise since.
      if (ids[at]! < 0 || right >= length) continue;
      const pair = this.#pairs.find(ids[at]!, ids[right]!);
      if (pair < 0 || this.#ranks[pair]! !== Math.floor(entry / POSITIONS)) continue;
      ids[at] = this.#merged[pair]!;
      ids[right] = -1;
      next[at] = next[right]!;
      if (next[at]! < length) previous[next[at]!] = at;
      offer(previous[at]!);
      offer(at);
    }
    let left = 0;
    for (let at = 0; at < length; at = next[at]!) ids[left++] = ids[at]!;
    return left;
  }
}
