/** @file Decoded items that are kept in memory. */

/** Kept items together have at most this many bytes. */
const KEPT_BYTES = 2 ** 30;

/** Items by number: made once as long as there is memory for them, and again each time from then on. */
export class KeptItems<T> {
  readonly #items = new Map<number, T>();
  #bytes = 0;

  constructor(private readonly bytesOf: (item: T) => number) {}

  get(number: number, make: () => T): T {
    const kept = this.#items.get(number);
    if (kept !== undefined) return kept;
    const item = make();
    const bytes = this.bytesOf(item);
    if (this.#bytes + bytes <= KEPT_BYTES) {
      this.#items.set(number, item);
      this.#bytes += bytes;
    }
    return item;
  }
}
