/** @file Alignment of two lists: items that stayed in order, moved, went and came. */
import { getOrMake } from '../nodes/containers.js';

/** For lists of keys, equal where items are the same. */
interface ListAlignment {
  /** The old index of each new item, or -1 for items that came. */
  readonly oldOf: readonly number[];
  /** The new index of each old item, or -1 for items that went. */
  readonly newOf: readonly number[];
  /** Whether a new item stayed in order; a matched item that did not was moved. */
  readonly stayed: readonly boolean[];
}

/** Lengths of the common prefix and suffix of two lists of these lengths: these items stay, and need no keys. */
function commonEnds(
  before: number,
  after: number,
  isSame: (i: number, j: number) => boolean,
): { first: number; last: number } {
  const shorter = Math.min(before, after);
  let first = 0;
  while (first < shorter && isSame(first, first)) first += 1;
  let last = 0;
  while (last < shorter - first && isSame(before - 1 - last, after - 1 - last)) last += 1;
  return { first, last };
}

/**
 * Matches items with equal keys one to one. Common prefixes and suffixes stay; between them, the longest increasing
 * subsequence stays, and the other items move. Takes time n log n; the shortest edit script would take n².
 */
export function alignLists(before: readonly unknown[], after: readonly unknown[]): ListAlignment {
  const oldOf = new Array<number>(after.length).fill(-1);
  const newOf = new Array<number>(before.length).fill(-1);
  const stayed = new Array<boolean>(after.length).fill(false);
  const match = (i: number, j: number, inOrder: boolean): void => {
    oldOf[j] = i;
    newOf[i] = j;
    if (inOrder) stayed[j] = true;
  };
  const { first, last } = commonEnds(before.length, after.length, (i, j) => before[i] === after[j]);
  for (let i = 0; i < first; i += 1) match(i, i, true);
  for (let k = 1; k <= last; k += 1) match(before.length - k, after.length - k, true);
  const places = new Map<unknown, number[]>();
  for (let i = before.length - last - 1; i >= first; i -= 1) {
    getOrMake(places, before[i], () => []).push(i);
  }
  const matched: number[] = [];
  for (let j = first; j < after.length - last; j += 1) {
    const i = places.get(after[j])?.pop();
    if (i === undefined) continue;
    match(i, j, false);
    matched.push(j);
  }
  for (const k of longestRise(matched.map((j) => oldOf[j]!))) stayed[matched[k]!] = true;
  return { oldOf, newOf, stayed };
}

/** The positions of a longest rising subsequence of numbers that are all different. */
function longestRise(numbers: readonly number[]): number[] {
  const ends: number[] = [];
  const before: number[] = [];
  for (const [k, number] of numbers.entries()) {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (numbers[ends[middle]!]! < number) low = middle + 1;
      else high = middle;
    }
    before.push(low === 0 ? -1 : ends[low - 1]!);
    ends[low] = k;
  }
  const rise: number[] = [];
  for (let k = ends.at(-1) ?? -1; k >= 0; k = before[k]!) rise.push(k);
  return rise.reverse();
}

/** `i` counts old items, `j` new ones; `before` is as in `InsertChange`. */
type ListEdit =
  | { readonly kind: 'same'; readonly i: number; readonly j: number }
  | { readonly kind: 'modify'; readonly i: number; readonly j: number }
  | { readonly kind: 'insert'; readonly before: number | 'end'; readonly j: number }
  | { readonly kind: 'move'; readonly i: number; readonly before: number | 'end' }
  | { readonly kind: 'remove'; readonly i: number };

/** The edits between lists of keys. An item that goes where another comes is modified. */
export function listEdits(before: readonly unknown[], after: readonly unknown[]): ListEdit[] {
  const { oldOf, newOf, stayed } = alignLists(before, after);
  const edits: ListEdit[] = [];
  let i = 0;
  let come: number[] = [];
  for (let j = 0; j <= after.length; j += 1) {
    if (j < after.length && !stayed[j]) {
      come.push(j);
      continue;
    }
    const end = j < after.length ? oldOf[j]! : before.length;
    const gone: number[] = [];
    for (; i < end; i += 1) if (newOf[i] === -1) gone.push(i);
    editGap(edits, gone, come, end < before.length ? end : 'end', oldOf);
    come = [];
    if (j < after.length) edits.push({ kind: 'same', i: i++, j });
  }
  return edits;
}

function editGap(
  edits: ListEdit[],
  gone: readonly number[],
  come: readonly number[],
  end: number | 'end',
  oldOf: readonly number[],
): void {
  const replaced = gone.slice(0, come.filter((j) => oldOf[j] === -1).length);
  let next = 0;
  for (const j of come) {
    const i = oldOf[j]!;
    if (i >= 0) edits.push({ kind: 'move', i, before: replaced[next] ?? end }, { kind: 'same', i, j });
    else if (next < replaced.length) edits.push({ kind: 'modify', i: replaced[next++]!, j });
    else edits.push({ kind: 'insert', before: end, j });
  }
  for (const i of gone.slice(replaced.length)) edits.push({ kind: 'remove', i });
}
