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

/** Elements `start`, `start + step`, … of the file, which go to `target`, `target + stride`, … */
export interface Run {
  readonly start: number;
  readonly step: number;
  readonly length: number;
  readonly target: number;
  readonly stride: number;
}

/** An axis, or several in parentheses. */
const GROUP = /\(([\s\w/]*)\)|([\w/]+)/g;

/** Axes of one side, each as the words that it is made of, the first outermost. */
type Groups = readonly (readonly string[])[];

/** Both sides of a notation, without axes of size 1, which stand where they like. */
interface Notation {
  readonly stored: Groups;
  readonly variable: Groups;
}

/** Whether a text reads as an order of axes: names, groups in parentheses and, before the arrow, parts such as `0/3`. */
export const isAxisOrder = (text: string): boolean => parsed(text) !== undefined;

/**
 * Finds where the elements of a tensor go.
 *
 * @param notation the stored tensor's axes, `->`, the variable's axes. Each word is an axis; a number is an axis of that
 *   size, and 1 may stand on one side alone. Words in parentheses are one axis, the first outermost. `1/3` is the second of
 *   three equal parts, which alone is taken.
 * @returns undefined where the shapes do not fit the notation.
 */
export function orderAxes(
  notation: string,
  stored: readonly number[],
  variable: readonly number[],
): AxisOrder | undefined {
  const sides = parsed(notation);
  if (sides === undefined) return undefined;
  const sizes = sizesOf([sides.stored, stored], [sides.variable, variable]);
  if (sizes === undefined) return undefined;
  const strides = new Map<string, number>();
  let stride = 1;
  for (const word of sides.variable.flat().reverse()) {
    strides.set(word, stride);
    stride *= sizes.get(word)!;
  }
  const axes = sides.stored.flat().map((word): StoredAxis => {
    const [index, parts] = word.split('/');
    if (parts !== undefined) return { size: Number(parts), stride: undefined, only: Number(index) };
    return { size: sizes.get(word)!, stride: strides.get(word)!, only: 0 };
  });
  return { axes: joined(axes) };
}

/** The shape of the stored tensor that an order takes a variable from; undefined where the variable's does not determine it. */
export function storedShape(notation: string, variable: readonly number[]): number[] | undefined {
  const sides = parsed(notation);
  const sizes = sides && sizesOf([sides.variable, variable]);
  if (sides === undefined || sizes === undefined) return undefined;
  const sizeOf = (word: string): number => sizes.get(word) ?? Number(word.split('/').at(-1));
  return sides.stored.map((group) => group.reduce((product, word) => product * sizeOf(word), 1));
}

/** The size of each word, by the shapes of both sides; undefined where they do not fit, or leave one open. */
function sizesOf(...sides: readonly [Groups, readonly number[]][]): Map<string, number> | undefined {
  if (sides.some(([groups, shape]) => groups.length !== shape.length)) return undefined;
  const groups = sides.flatMap(([groups, shape]) => groups.map((words, i) => ({ words, size: shape[i]! })));
  const sizes = new Map<string, number>();
  for (const word of groups.flatMap(({ words }) => words))
    if (/^\d/.test(word)) sizes.set(word, Number(word.split('/').at(-1)));
  const open = ({ words }: { readonly words: readonly string[] }) => words.filter((word) => !sizes.has(word));
  for (let next = groups; next.length > 0; ) {
    const solvable = next.filter((group) => open(group).length <= 1);
    if (solvable.length === 0) return undefined;
    for (const group of solvable) {
      const known = group.words.reduce((product, word) => product * (sizes.get(word) ?? 1), 1);
      const [word] = open(group);
      if (word === undefined ? known !== group.size : group.size % known !== 0) return undefined;
      if (word !== undefined) sizes.set(word, group.size / known);
    }
    next = next.filter((group) => !solvable.includes(group));
  }
  return sizes;
}

/**
 * Puts a variable's elements where an order takes them from: the inverse of reading.
 *
 * @param order one after the other where absent. @param target the stored tensor's elements
 */
export function storeElements(variable: Float32Array, target: Float32Array, order?: AxisOrder): void {
  if (order === undefined) target.set(variable);
  else
    for (const { start, step, length, target: from, stride } of runsOf(order))
      for (let i = 0; i < length; i++) target[start + i * step] = variable[from + i * stride]!;
}

/** Undefined for text that is no order of the same axes. */
function parsed(notation: string): Notation | undefined {
  const sides = notation.split('->');
  if (sides.length !== 2 || sides.some((side) => side.replace(GROUP, '').trim() !== '')) return undefined;
  const [stored, variable] = sides.map((side) =>
    Array.from(side.matchAll(GROUP), ([, group, word]) =>
      (group ?? word!).split(/\s+/).filter((each) => each !== '' && each !== '1'),
    ),
  ) as [string[][], string[][]];
  const [words, names] = [stored.flat(), variable.flat()];
  const taken = words.filter((word) => !word.includes('/'));
  const isPart = (word: string): boolean => {
    const [, index, parts] = /^(\d+)\/(\d+)$/.exec(word) ?? [];
    return parts !== undefined && Number(index) < Number(parts);
  };
  const areParts = words.every((word) => !word.includes('/') || isPart(word));
  const same = [...taken].sort().join(' ') === [...names].sort().join(' ');
  return areParts && same && new Set(names).size === names.length && variable.length > 0
    ? { stored, variable }
    : undefined;
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

/** The runs of an order in the file's order. */
export function* runsOf({ axes }: AxisOrder): Generator<Run> {
  // Where the innermost axis has one index alone, elements along the axis before are so far apart.
  const isPart = axes.length > 1 && axes.at(-1)!.stride === undefined;
  const { size: step, only } = isPart ? axes.at(-1)! : { size: 1, only: 0 };
  const outer = isPart ? axes.slice(0, -1) : axes;
  const inner = outer.at(-1)!;
  const [first, length] = inner.stride === undefined ? [inner.only, 1] : [0, inner.size];
  const stride = inner.stride ?? 1;
  for (const { start, target } of offsets(outer.slice(0, -1), inner.size * step))
    yield { start: start + first * step + only, step, length, target, stride };
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
