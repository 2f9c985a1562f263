/** @file The edits that make one list another, in terms of the old list's indices. */
import { alignLists } from './lists.js';

/** `i` counts the old items, `j` the new ones, `before` the old ones; see `InsertChange` for what that means. */
export type ListEdit =
  | { readonly kind: 'same'; readonly i: number; readonly j: number }
  | { readonly kind: 'modify'; readonly i: number; readonly j: number }
  | { readonly kind: 'insert'; readonly before: number | 'end'; readonly j: number }
  | { readonly kind: 'move'; readonly i: number; readonly before: number | 'end' }
  | { readonly kind: 'remove'; readonly i: number };

/**
 * The edits between lists of keys. An item that goes where another comes is modified. Where the lists are parts of longer
 * ones, `first` items stand before them, and behind them the old one with the index `behind`.
 */
export function listEdits(
  before: readonly unknown[],
  after: readonly unknown[],
  first = 0,
  behind: number | 'end' = 'end',
): ListEdit[] {
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
    editGap(edits, gone, come, end < before.length ? end + first : behind, oldOf, first);
    come = [];
    if (j < after.length) edits.push({ kind: 'same', i: first + i++, j: first + j });
  }
  return edits;
}

function editGap(
  edits: ListEdit[],
  gone: readonly number[],
  come: readonly number[],
  end: number | 'end',
  oldOf: readonly number[],
  first: number,
): void {
  const replaced = gone.slice(0, come.filter((j) => oldOf[j] === -1).length).map((i) => first + i);
  let next = 0;
  for (const to of come) {
    const [i, j] = [first + oldOf[to]!, first + to];
    if (oldOf[to]! >= 0)
      edits.push({ kind: 'move', i, before: replaced[next] ?? end }, { kind: 'same', i, j });
    else if (next < replaced.length) edits.push({ kind: 'modify', i: replaced[next++]!, j });
    else edits.push({ kind: 'insert', before: end, j });
  }
  for (const i of gone.slice(replaced.length)) edits.push({ kind: 'remove', i: first + i });
}
