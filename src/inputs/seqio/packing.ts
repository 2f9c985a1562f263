/** @file Packing of sequences into rows: best fit decreasing, and the next fit of SeqIO. */

/** Sizes of an item: in each sequence of a row (one, or inputs and targets), how many positions it takes. */
export interface Sized {
  readonly sizes: readonly number[];
}

/** Rows of items, none of which is longer than `capacity`; items of size 0 are left out. */
export type Packer = <T extends Sized>(items: readonly T[], capacity: readonly number[]) => T[][];

const isEmpty = ({ sizes }: Sized): boolean => sizes.every((size) => size === 0);
const fits = ({ sizes }: Sized, room: readonly number[]): boolean =>
  sizes.every((size, i) => size <= room[i]!);
const without = (room: readonly number[], { sizes }: Sized): number[] =>
  room.map((left, i) => left - sizes[i]!);

/** SeqIO's rule: an item goes into the open row, or, where it does not fit, closes it and opens the next. */
export const nextFit: Packer = (items, capacity) => {
  const rows: (typeof items)[number][][] = [];
  let room: readonly number[] = capacity.map(() => -1);
  for (const item of items) {
    if (isEmpty(item)) continue;
    if (!fits(item, room)) {
      rows.push([]);
      room = capacity;
    }
    rows.at(-1)!.push(item);
    room = without(room, item);
  }
  return rows;
};

/** Largest first, each into the row that it fills best, or else a new one. */
export const bestFit: Packer = (items, capacity) => {
  const share = ({ sizes }: Sized): number => Math.max(...sizes.map((size, i) => size / capacity[i]!));
  const sorted = items
    .filter((item) => !isEmpty(item))
    .map((item, i) => ({ item, i, share: share(item) }))
    .sort((a, b) => b.share - a.share || a.i - b.i);
  const rows: (typeof items)[number][][] = [];
  const open: { row: (typeof items)[number][]; room: number[]; left: number }[] = [];
  for (const { item } of sorted) {
    let best: (typeof open)[number] | undefined;
    for (const candidate of open)
      if (fits(item, candidate.room) && (best === undefined || candidate.left < best.left)) best = candidate;
    if (best === undefined) {
      best = { row: [], room: [...capacity], left: 0 };
      rows.push(best.row);
      open.push(best);
    }
    best.row.push(item);
    best.room = without(best.room, item);
    best.left = best.room.reduce((sum, left) => sum + left, 0);
    if (best.room.some((left) => left === 0)) open.splice(open.indexOf(best), 1);
  }
  return rows;
};
