/** @file WordTable: numbers of distinct byte strings. */

function grown<T extends Int32Array | Uint8Array>(array: T, least: number): T {
  if (array.length >= least) return array;
  const larger = new (array.constructor as new (length: number) => T)(Math.max(least, 2 * array.length));
  larger.set(array);
  return larger;
}

/** Distinct byte strings, numbered from 0 in the order in which they came: open addressing on typed arrays. */
export class WordTable {
  size = 0;
  /** The bytes of all words; word w is bytes[starts[w]] … bytes[starts[w + 1] − 1]. */
  bytes = new Uint8Array(1 << 16);
  starts = new Int32Array(1 << 12);
  #hashes = new Int32Array(1 << 12);
  /** Numbers of words plus 1; 0 if there is none. */
  #slots = new Int32Array(1 << 13);

  /** The number of a word, which is added if it is new: then it is the table's size before. */
  numberOf(source: Uint8Array, start: number, end: number): number {
    let hash = end - start;
    for (let i = start; i < end; i++) hash = Math.imul(hash ^ source[i]!, 0x01000193);
    hash ^= hash >>> 15;
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    for (let entry = this.#slots[slot]!; entry > 0; entry = this.#slots[slot]!) {
      if (this.#hashes[entry - 1] === hash && this.#isWord(entry - 1, source, start, end)) return entry - 1;
      slot = (slot + 1) & mask;
    }
    return this.#add(source, start, end, hash, slot);
  }

  /** Bytes of all words together. */
  get numBytes(): number {
    return this.starts[this.size]!;
  }

  /** Removes all words. */
  clear(): void {
    this.size = 0;
    this.#slots.fill(0);
  }

  #isWord(word: number, source: Uint8Array, start: number, end: number): boolean {
    const { bytes, starts } = this;
    let at = starts[word]!;
    if (starts[word + 1]! - at !== end - start) return false;
    for (let i = start; i < end; i++) if (bytes[at++] !== source[i]) return false;
    return true;
  }

  #add(source: Uint8Array, start: number, end: number, hash: number, slot: number): number {
    const word = this.size++;
    const from = this.starts[word]!;
    const to = from + end - start;
    this.bytes = grown(this.bytes, to);
    this.bytes.set(source.subarray(start, end), from);
    this.starts = grown(this.starts, word + 2);
    this.starts[word + 1] = to;
    this.#hashes = grown(this.#hashes, word + 1);
    this.#hashes[word] = hash;
    this.#slots[slot] = word + 1;
    if (2 * this.size > this.#slots.length) this.#rehash();
    return word;
  }

  #rehash(): void {
    const slots = new Int32Array(2 * this.#slots.length);
    const mask = slots.length - 1;
    for (let word = 0; word < this.size; word++) {
      let slot = this.#hashes[word]! & mask;
      while (slots[slot]! > 0) slot = (slot + 1) & mask;
      slots[slot] = word + 1;
    }
    this.#slots = slots;
  }
}
