/** @file PairTable: numbers of distinct pairs of token ids. */

/** Pairs of ids, numbered from 0 in the order in which they came: open addressing on typed arrays. */
export class PairTable {
  size = 0;
  /** First ids by number. */
  lefts: Int32Array;
  /** Second ids by number. */
  rights: Int32Array;
  /** Numbers plus 1; 0 if there is none. */
  #slots: Int32Array;

  /** @param capacity pairs that are expected; more are fine */
  constructor(capacity: number) {
    const size = 2 ** Math.ceil(Math.log2(capacity + 2));
    this.lefts = new Int32Array(size);
    this.rights = new Int32Array(size);
    this.#slots = new Int32Array(2 * size);
  }

  /** The number of a pair; −1 for none. */
  find(left: number, right: number): number {
    return this.#slots[this.#slotOf(left, right)]! - 1;
  }

  /** The number of a pair, which is added if it is new: then it is the table's size before. */
  numberOf(left: number, right: number): number {
    const slot = this.#slotOf(left, right);
    const known = this.#slots[slot]! - 1;
    if (known >= 0) return known;
    if (this.size === this.lefts.length) {
      this.#grow();
      return this.numberOf(left, right);
    }
    const pair = this.size++;
    this.lefts[pair] = left;
    this.rights[pair] = right;
    this.#slots[slot] = pair + 1;
    return pair;
  }

  #slotOf(left: number, right: number): number {
    const mask = this.#slots.length - 1;
    let hash = Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
    let slot = (hash ^ (hash >>> 13)) & mask;
    for (let entry = this.#slots[slot]!; entry > 0; entry = this.#slots[slot]!) {
      if (this.lefts[entry - 1] === left && this.rights[entry - 1] === right) return slot;
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #grow(): void {
    const { lefts, rights, size } = this;
    const larger = new PairTable(2 * size);
    for (let pair = 0; pair < size; pair++) larger.numberOf(lefts[pair]!, rights[pair]!);
    this.lefts = larger.lefts;
    this.rights = larger.rights;
    this.#slots = larger.#slots;
  }
}
