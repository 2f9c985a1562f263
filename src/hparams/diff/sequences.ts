/** @file Numbers for sequences of integers, the same for equal ones. */

/**
 * Gives each different sequence of 32-bit integers a number, counted from 0. All of them stand in a few flat arrays, so
 * that a hundred thousand are no objects for the garbage collector to go through.
 */
export class Sequences {
  /** The sequences under construction: those begun later stand behind those begun earlier. */
  private open = new Int32Array(256);
  private top = 0;
  /** The sequences that have numbers, one behind the other. */
  private kept = new Int32Array(1024);
  private used = 0;
  private readonly starts: number[] = [0];
  private readonly hashes: number[] = [];
  /** By hash, and the next free place behind it: the number of a sequence, plus 1. */
  private slots = new Int32Array(256);

  /** How many numbers were given. */
  get count(): number {
    return this.hashes.length;
  }

  /** Begins a sequence; what it gives says to `end` where that was. */
  begin(): number {
    return this.top;
  }

  /** Adds to the sequence begun last. */
  push(word: number): void {
    if (this.top === this.open.length) this.open = grown(this.open, 2 * this.top);
    this.open[this.top++] = word;
  }

  /** The number of the sequence begun at `from`, which ends here. */
  end(from: number): number {
    let hash = 0;
    for (let i = from; i < this.top; i++) {
      hash = Math.imul(hash ^ this.open[i]!, 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    if (2 * this.count >= this.slots.length) this.rehash();
    const mask = this.slots.length - 1;
    let at = hash & mask;
    for (let slot = this.slots[at]!; slot > 0; slot = this.slots[at]!) {
      if (this.hashes[slot - 1] === hash && this.isKept(slot - 1, from)) {
        this.top = from;
        return slot - 1;
      }
      at = (at + 1) & mask;
    }
    this.keep(from);
    this.slots[at] = this.hashes.push(hash);
    return this.count - 1;
  }

  private isKept(number: number, from: number): boolean {
    const start = this.starts[number]!;
    const length = this.starts[number + 1]! - start;
    if (length !== this.top - from) return false;
    for (let i = 0; i < length; i++) if (this.kept[start + i] !== this.open[from + i]) return false;
    return true;
  }

  private keep(from: number): void {
    const end = this.used + this.top - from;
    if (end > this.kept.length) this.kept = grown(this.kept, 2 * end);
    // A loop: `set` would want a view of the part, an object for each sequence.
    for (let i = from; i < this.top; i++) this.kept[this.used + i - from] = this.open[i]!;
    this.starts.push((this.used = end));
    this.top = from;
  }

  private rehash(): void {
    this.slots = new Int32Array(2 * this.slots.length);
    const mask = this.slots.length - 1;
    for (const [number, hash] of this.hashes.entries()) {
      let at = hash & mask;
      while (this.slots[at] !== 0) at = (at + 1) & mask;
      this.slots[at] = number + 1;
    }
  }
}

function grown(words: Int32Array<ArrayBuffer>, length: number): Int32Array<ArrayBuffer> {
  const made = new Int32Array(length);
  made.set(words);
  return made;
}
