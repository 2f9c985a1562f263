/** @file Packing of sequences into rows: best fit decreasing, and the next fit of SeqIO. */

/** Sizes of an item: in each sequence of a row (one, or inputs and targets), how many positions it takes. */
export interface Sized {
  readonly sizes: readonly number[];
}

/** Rows of items, none of which is longer than `capacity`; items of size 0 are left out. */
export type Packer = <T extends Sized>(items: readonly T[], capacity: readonly number[]) => T[][];

const isEmpty = ({ sizes }: Sized): boolean => sizes.every((size) => size === 0);

/** A row that has room left. */
class OpenRow<T extends Sized> {
  readonly items: T[] = [];
  readonly #room: number[];
  /** Positions left in all its sequences. */
  left: number;

  constructor(capacity: readonly number[]) {
    this.#room = [...capacity];
    this.left = capacity.reduce((sum, size) => sum + size, 0);
  }

  /** Whether one of its sequences has no room. */
  get isFull(): boolean {
    return this.#room.includes(0);
  }

  fits({ sizes }: Sized): boolean {
    for (let i = 0; i < sizes.length; i++) if (sizes[i]! > this.#room[i]!) return false;
    return true;
  }

  add(item: T): void {
    this.items.push(item);
    for (const [i, size] of item.sizes.entries()) {
      this.#room[i]! -= size;
      this.left -= size;
    }
  }
}

/** SeqIO's rule: an item goes into the open row, or, where it does not fit, closes it and opens the next. */
export const nextFit: Packer = <T extends Sized>(items: readonly T[], capacity: readonly number[]) => {
  const rows: OpenRow<T>[] = [];
  for (const item of items) {
    if (isEmpty(item)) continue;
    if (rows.at(-1)?.fits(item) !== true) rows.push(new OpenRow(capacity));
    rows.at(-1)!.add(item);
  }
  return rows.map((row) => row.items);
};

/** Largest first, each into the row that it fills best, or else a new one. */
export const bestFit: Packer = <T extends Sized>(items: readonly T[], capacity: readonly number[]) => {
  const share = ({ sizes }: Sized): number => Math.max(...sizes.map((size, i) => size / capacity[i]!));
  const sorted = items
    .filter((item) => !isEmpty(item))
    .map((item, i) => ({ item, i, share: share(item) }))
    .sort((a, b) => b.share - a.share || a.i - b.i);
  const rows: OpenRow<T>[] = [];
  const open: OpenRow<T>[] = [];
  for (const { item } of sorted) {
    let best: OpenRow<T> | undefined;
    for (const row of open) if ((best === undefined || row.left < best.left) && row.fits(item)) best = row;
    if (best === undefined) {
      best = new OpenRow(capacity);
      rows.push(best);
      open.push(best);
    }
    best.add(item);
    if (best.isFull) open.splice(open.indexOf(best), 1);
  }
  return rows.map((row) => row.items);
};
