/** @file Equal changes of list items, collapsed to one line. */
import type { FieldChange } from './diffReport.js';

interface Alike {
  readonly change: FieldChange;
  readonly indices: number[];
}

/** The changes in order; equal changes of the items of a list become one: `blocks[0…11].numHeads`. */
export function collapse(changes: readonly FieldChange[]): FieldChange[] {
  // Innermost lists first: merged lines may be equal in an outer list.
  let lines = changes;
  for (let position = 0; position < 3; position += 1) {
    const next = collapseAt(lines);
    if (next.length === lines.length) break;
    lines = next;
  }
  return [...lines];
}

function collapseAt(changes: readonly FieldChange[]): FieldChange[] {
  const groups = new Map<string, Alike>();
  const order: (FieldChange | Alike)[] = [];
  for (const change of changes) {
    const index = [...change.path.matchAll(/\[(\d+)\]/g)].at(-1);
    if (index === undefined || change.newPath !== undefined) {
      order.push(change);
      continue;
    }
    const key = JSON.stringify([{ ...change, path: withIndex(change.path, index, '*') }]);
    const known = groups.get(key);
    if (known !== undefined) known.indices.push(Number(index[1]));
    else {
      const group = { change, indices: [Number(index[1])] };
      groups.set(key, group);
      order.push(group);
    }
  }
  return order.map((item) => ('indices' in item ? joined(item) : item));
}

function joined({ change, indices }: Alike): FieldChange {
  if (indices.length === 1) return change;
  const index = [...change.path.matchAll(/\[(\d+)\]/g)].at(-1)!;
  const count = (change.count ?? 1) * indices.length;
  return { ...change, path: withIndex(change.path, index, rangesOf(indices)), count };
}

function withIndex(path: string, match: RegExpExecArray, text: string): string {
  return `${path.slice(0, match.index)}[${text}]${path.slice(match.index + match[0].length)}`;
}

/** `0…3,7` */
function rangesOf(numbers: readonly number[]): string {
  const sorted = [...numbers].sort((a, b) => a - b);
  const ranges: string[] = [];
  for (let i = 0; i < sorted.length; ) {
    let end = i;
    while (sorted[end + 1] === sorted[end]! + 1) end += 1;
    ranges.push(end === i ? `${sorted[i]}` : `${sorted[i]}…${sorted[end]}`);
    i = end + 1;
  }
  return ranges.join(',');
}
