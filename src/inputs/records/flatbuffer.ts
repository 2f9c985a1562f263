/** @file Tables of flatbuffers, whose offsets and counts are checked against the bytes that are there. */

/** Schemas nest columns in columns. */
const DEEPEST = 64;

/**
 * Tables that may still be read: a part can be in many places, and so be read more often than the bytes have room for.
 */
interface Budget {
  tables: number;
}

/** A table: fields by the number of their slots. */
export class FlatTable {
  readonly #bytes: Buffer;
  readonly #at: number;
  readonly #slots: number;
  readonly #numSlots: number;
  readonly #depth: number;
  readonly #budget: Budget;

  /** @throws Error for one that reaches beyond the bytes, as all methods do */
  constructor(bytes: Buffer, at: number, depth = 0, budget: Budget = { tables: bytes.length / 4 }) {
    this.#bytes = bytes;
    this.#at = at;
    this.#depth = depth;
    this.#budget = budget;
    if (depth > DEEPEST) throw new Error(`its description nests tables deeper than ${DEEPEST}`);
    if (budget.tables-- <= 0) throw new Error('its description has more tables than bytes');
    this.#check(at, 4);
    this.#slots = at - bytes.readInt32LE(at);
    this.#check(this.#slots, 4);
    const size = bytes.readUInt16LE(this.#slots);
    this.#check(this.#slots, Math.max(4, size));
    this.#numSlots = (size - 4) >> 1;
  }

  /** The table that a buffer begins with. */
  static root(bytes: Buffer): FlatTable {
    if (bytes.length < 4) throw new Error('its description is cut off');
    return new FlatTable(bytes, bytes.readUInt32LE(0));
  }

  has(slot: number): boolean {
    return this.#position(slot, 0) !== undefined;
  }

  uint8(slot: number): number {
    const at = this.#position(slot, 1);
    return at === undefined ? 0 : this.#bytes.readUInt8(at);
  }

  int16(slot: number): number {
    const at = this.#position(slot, 2);
    return at === undefined ? 0 : this.#bytes.readInt16LE(at);
  }

  /** An integer of 64 bits. @throws Error for one that a number does not hold */
  int64(slot: number): number {
    const at = this.#position(slot, 8);
    return at === undefined ? 0 : this.#int64At(at);
  }

  /** Whether the numbers of the slot's field are there. */
  checkScalar(slot: number, size: number): void {
    this.#position(slot, size);
  }

  table(slot: number): FlatTable | undefined {
    const at = this.#target(slot);
    return at === undefined ? undefined : this.#below(at);
  }

  tables(slot: number): FlatTable[] {
    const list = this.#list(slot, 4);
    return Array.from({ length: list.count }, (_, i) => {
      const at = list.at + 4 * i;
      return this.#below(at + this.#bytes.readUInt32LE(at));
    });
  }

  /** The bytes of a text. */
  checkText(slot: number): void {
    this.#list(slot, 1);
  }

  /** Pairs of integers of 64 bits. */
  pairs(slot: number, stride = 16): [number, number][] {
    const { at, count } = this.#list(slot, stride);
    return Array.from({ length: count }, (_, i) => {
      // Older formats have another number before them.
      const from = at + stride * (i + 1) - 16;
      return [this.#int64At(from), this.#int64At(from + 8)];
    });
  }

  /** Number of parts of so many bytes. */
  count(slot: number, size: number): number {
    return this.#list(slot, size).count;
  }

  int64s(slot: number): number[] {
    const { at, count } = this.#list(slot, 8);
    return Array.from({ length: count }, (_, i) => this.#int64At(at + 8 * i));
  }

  int32s(slot: number): number[] {
    const { at, count } = this.#list(slot, 4);
    return Array.from({ length: count }, (_, i) => this.#bytes.readInt32LE(at + 4 * i));
  }

  #below(at: number): FlatTable {
    return new FlatTable(this.#bytes, at, this.#depth + 1, this.#budget);
  }

  #int64At(at: number): number {
    const number = Number(this.#bytes.readBigInt64LE(at));
    if (!Number.isSafeInteger(number)) throw new Error(`its description has the number ${number}`);
    return number;
  }

  #check(at: number, size: number): void {
    if (!(at >= 0 && at + size <= this.#bytes.length))
      throw new Error(`its description leads to byte ${at} of ${this.#bytes.length}`);
  }

  #position(slot: number, size: number): number | undefined {
    if (slot >= this.#numSlots) return undefined;
    const offset = this.#bytes.readUInt16LE(this.#slots + 4 + 2 * slot);
    if (offset === 0) return undefined;
    this.#check(this.#at + offset, size);
    return this.#at + offset;
  }

  #target(slot: number): number | undefined {
    const at = this.#position(slot, 4);
    return at === undefined ? undefined : at + this.#bytes.readUInt32LE(at);
  }

  #list(slot: number, size: number): { readonly at: number; readonly count: number } {
    const at = this.#target(slot);
    if (at === undefined) return { at: 0, count: 0 };
    this.#check(at, 4);
    const count = this.#bytes.readUInt32LE(at);
    this.#check(at + 4, size * count);
    return { at: at + 4, count };
  }
}
