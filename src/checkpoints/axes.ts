/**
 * @file Axes of a stored tensor and of the variable that it becomes, in einops' notation (Rogozhnikov, 2022):
 * `(n h) d -> d n h` splits the first axis into n and h, and moves d to the front.
 */

/** An axis of the stored tensor, from the outermost on. */
interface StoredAxis {
  readonly size: number;
  /** Elements of the variable between two neighbours along the axis; undefined where only index `only` is taken. */
  readonly stride: number | undefined;
  readonly only: number;
}

/** Places of a stored tensor's elements in a variable. */
export interface AxisOrder {
  readonly axes: readonly StoredAxis[];
}

/** Elements next to one another in the file, from `start` on, that go to `target`, `target + stride`, … */
export interface Run {
  readonly start: number;
  readonly length: number;
  readonly target: number;
  readonly stride: number;
}

/** An axis, or several in parentheses. */
const GROUP = /\(([\s\w/]*)\)|([\w/]+)/g;
const NOTATION = /^[\s()\w/]+->[\s\w]+$/;

/** Whether a text reads as an order of axes: names, groups in parentheses and parts such as `0/3` before the arrow. */
export const isAxisOrder = (text: string): boolean => NOTATION.test(text) && groupsOf(text) !== undefined;

/**
 * Finds where the elements of a tensor go.
 *
 * @param notation the stored tensor's axes, `->`, the variable's axes. Each word is an axis; a number is an axis of that
 *   size. Words in parentheses are stored as one axis, the first outermost. `1/3` is the second of three equal parts,
 *   which alone is taken.
 * @returns undefined where the shapes do not fit the notation.
 */
export function orderAxes(
  notation: string,
  stored: readonly number[],
  variable: readonly number[],
): AxisOrder | undefined {
  const parsed = groupsOf(notation);
  if (parsed === undefined || parsed.groups.length !== stored.length) return undefined;
  if (parsed.names.length !== variable.length) return undefined;
  const strides = new Map<string, { size: number; stride: number }>();
  let stride = 1;
  for (let i = variable.length - 1; i >= 0; i--) {
    const size = variable[i]!;
    strides.set(parsed.names[i]!, { size, stride });
    stride *= size;
  }
  const axes = parsed.groups.flat().map((word): StoredAxis => {
    const [index, parts] = word.split('/');
    if (parts !== undefined) return { size: Number(parts), stride: undefined, only: Number(index) };
    return { ...strides.get(word)!, only: 0 };
  });
  let at = 0;
  for (const [i, group] of parsed.groups.entries()) {
    const sizes = axes.slice(at, (at += group.length)).map(({ size }) => size);
    if (sizes.reduce((a, b) => a * b, 1) !== stored[i]) return undefined;
  }
  const numbers = parsed.names.every(
    (name) => !/^\d+$/.test(name) || strides.get(name)!.size === Number(name),
  );
  return numbers ? { axes: joined(axes) } : undefined;
}

/** The same order on both sides. */
export const sameAxes = (size: number): AxisOrder => ({ axes: [{ size, stride: 1, only: 0 }] });

/** Words of each stored axis, and the variable's axes; undefined for text that is no order of the same axes. */
function groupsOf(notation: string): { groups: string[][]; names: string[] } | undefined {
  const [left = '', right = ''] = notation.split('->');
  const groups = Array.from(left.matchAll(GROUP), ([, group, word]) =>
    (group ?? word!).split(/\s+/).filter((each) => each !== ''),
  );
  const names = right.split(/\s+/).filter((each) => each !== '');
  const words = groups.flat();
  const taken = words.filter((word) => !word.includes('/'));
  const isPart = (word: string): boolean => {
    const [, index, parts] = /^(\d+)\/(\d+)$/.exec(word) ?? [];
    return parts !== undefined && Number(index) < Number(parts);
  };
  const areParts = words.every((word) => !word.includes('/') || isPart(word));
  const same = [...taken].sort().join(' ') === [...names].sort().join(' ');
  const isWhole = left.replace(GROUP, '').trim() === '';
  return isWhole && areParts && same && new Set(names).size === names.length ? { groups, names } : undefined;
}

/** Neighbouring axes that are neighbours in the variable as well are one. */
function joined(axes: readonly StoredAxis[]): StoredAxis[] {
  const result: StoredAxis[] = [];
  for (const axis of axes) {
    const outer = result.at(-1);
    const isInner = outer?.stride !== undefined && axis.stride !== undefined;
    if (isInner && outer.stride === axis.size * axis.stride!)
      result[result.length - 1] = { ...axis, size: outer.size * axis.size };
    else if (axis.size !== 1 || axis.stride === undefined) result.push(axis);
  }
  return result.length > 0 ? result : [{ size: 1, stride: 1, only: 0 }];
}

/** The runs of an order in the file's order, at most `longest` elements each. */
export function* runsOf({ axes }: AxisOrder, longest: number): Generator<Run> {
  const inner = axes.at(-1)!;
  const [first, count] = inner.stride === undefined ? [inner.only, 1] : [0, inner.size];
  const stride = inner.stride ?? 1;
  for (const { start, target } of offsets(axes.slice(0, -1), inner.size)) {
    for (let at = 0; at < count; at += longest) {
      const length = Math.min(longest, count - at);
      yield { start: start + first + at, length, target: target + at * stride, stride };
    }
  }
}

/** Where each row of `size` elements is in the file, and in the variable. */
function* offsets(axes: readonly StoredAxis[], size: number): Generator<{ start: number; target: number }> {
  const inner = axes.at(-1);
  if (inner === undefined) {
    yield { start: 0, target: 0 };
    return;
  }
  const [from, to] = inner.stride === undefined ? [inner.only, inner.only + 1] : [0, inner.size];
  for (const { start, target } of offsets(axes.slice(0, -1), inner.size * size))
    for (let i = from; i < to; i++)
      yield { start: start + i * size, target: target + i * (inner.stride ?? 0) };
}
