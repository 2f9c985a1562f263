/** @file Offsets of records in a file, in blocks: written as they are found, and read one at a time. */

/** A block has the first record's start, a float64, then for each record a uint32, how far after it that record starts. */
const RECORDS_OF_BLOCK = 16;
const BLOCK_BYTES = 8 + 4 * RECORDS_OF_BLOCK;
const BLOCKS_AT_ONCE = 1024;

/** Most bytes of a record: starts of a block fit into its uint32. */
export const LONGEST_RECORD = 256 * 2 ** 20;

/** Collects starts that rise, and hands on whole blocks. */
export class OffsetWriter {
  /** Number of starts. */
  count = 0;
  readonly #append: (bytes: Uint8Array) => void;
  readonly #bytes = Buffer.alloc(BLOCKS_AT_ONCE * BLOCK_BYTES);
  #length = 0;
  #base = 0;

  /** @param append takes bytes that are the writer's again when it returns. */
  constructor(append: (bytes: Uint8Array) => void) {
    this.#append = append;
  }

  add(start: number): void {
    if (this.count++ % RECORDS_OF_BLOCK === 0) {
      if (this.#length === this.#bytes.length) this.#flush();
      this.#base = start;
      this.#length = this.#bytes.writeDoubleLE(start, this.#length);
    }
    this.#length = this.#bytes.writeUInt32LE(start - this.#base, this.#length);
  }

  /** Writes the rest, with the end of the last record as a final offset. @returns the number of records */
  finish(end: number): number {
    const numRecords = this.count;
    this.add(end);
    this.#flush();
    return numRecords;
  }

  #flush(): void {
    this.#append(this.#bytes.subarray(0, this.#length));
    this.#length = 0;
  }
}

/** Fills `target` from a position. */
export type ReadAt = (position: number, target: Uint8Array) => void;

/** Reads the offsets of an `OffsetWriter`. */
export class OffsetIndex {
  readonly #read: ReadAt;
  readonly #at: number;
  /** A block, and the start of the next one. */
  readonly #block = Buffer.alloc(BLOCK_BYTES + 8);

  /** @param at position of the first block. */
  constructor(read: ReadAt, at = 0) {
    this.#read = read;
    this.#at = at;
  }

  /** The bytes from record `i` up to the next one. */
  extent(i: number): { readonly start: number; readonly end: number } {
    const place = i % RECORDS_OF_BLOCK;
    const block = this.#block;
    this.#read(this.#at + ((i - place) / RECORDS_OF_BLOCK) * BLOCK_BYTES, block);
    const base = block.readDoubleLE(0);
    const isLast = place === RECORDS_OF_BLOCK - 1;
    return {
      start: base + block.readUInt32LE(8 + 4 * place),
      end: isLast ? block.readDoubleLE(BLOCK_BYTES) : base + block.readUInt32LE(12 + 4 * place),
    };
  }
}
