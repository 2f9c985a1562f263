/**
 * @file Factors: which dimensions of an operation's inputs and outputs are split together, as in Shardy's rules and in the
 * letters of an einsum.
 */
import { type Attrs, ints } from '../program/ir.js';
import type { Shape, TensorSpec } from '../program/tensors.js';

/** How values of several ranks become one. */
export type Reduction = 'sum' | 'max' | 'min';

/** The factors of each dimension, major first. A dimension, or the rest of one, without a factor is whole on every rank. */
export type Dims = readonly (readonly number[])[];

/** How the dimensions of an operation's tensors move together. */
export interface Factors {
  /** Elements of each factor. */
  readonly sizes: readonly number[];
  readonly inputs: readonly Dims[];
  readonly outputs: readonly Dims[];
  /** How results of parts become one along a factor that no output has; by default they are added. */
  readonly reductions?: Readonly<Record<number, Reduction | 'mean' | 'none'>>;
  /** The factor along which the operation on parts is another one (`ON_PARTS` of spmd), as where numbers address its elements. */
  readonly onParts?: number;
  /** The attributes that follow from the shape of the first result's part; the others are those of the whole. */
  readonly localAttrs?: (result: Shape) => Attrs;
}

/** The factors of a call; undefined where every rank computes all of it. */
export type FactorRule = (
  inputs: readonly TensorSpec[],
  outputs: readonly TensorSpec[],
  attrs: Attrs,
) => Factors | undefined;

/** Stands for a dimension that is whole. */
const WHOLE = '.';

/**
 * Factors by letters, one for each dimension, such as `b.n.`: dimensions with the same letter are split together, a dot stands for
 * one that is whole. A dimension of 1 beside a longer one with its letter is broadcast, and whole.
 */
export function lettered(
  inputs: readonly (readonly string[] | string)[],
  outputs: readonly (readonly string[] | string)[],
  specs: { readonly inputs: readonly TensorSpec[]; readonly outputs: readonly TensorSpec[] },
  rest: Omit<Factors, 'sizes' | 'inputs' | 'outputs' | 'reductions' | 'onParts'> & {
    readonly reductions?: Readonly<Record<string, Reduction | 'mean' | 'none'>>;
    readonly onParts?: string;
  } = {},
): Factors {
  const [letters, sizes] = [new Map<string, number>(), [] as number[]];
  const note = (dims: readonly string[], { shape }: TensorSpec): void =>
    dims.forEach((letter, i) => {
      if (letter === WHOLE) return;
      const known = letters.get(letter);
      if (known === undefined) letters.set(letter, sizes.push(shape[i]!) - 1);
      else sizes[known] = Math.max(sizes[known]!, shape[i]!);
    });
  const [ins, outs] = [inputs, outputs].map((all) => all.map((dims) => [...dims]));
  for (const [i, dims] of ins!.entries()) note(dims, specs.inputs[i]!);
  for (const [i, dims] of outs!.entries()) note(dims, specs.outputs[i]!);
  const placed = (dims: readonly string[], { shape }: TensorSpec): Dims =>
    dims.map((letter, i) => {
      const factor = letters.get(letter);
      return factor === undefined || shape[i] !== sizes[factor] ? [] : [factor];
    });
  const { reductions = {}, onParts, ...others } = rest;
  const number = (letter: string): number => letters.get(letter)!;
  return {
    ...others,
    sizes,
    inputs: ins!.map((dims, i) => placed(dims, specs.inputs[i]!)),
    outputs: outs!.map((dims, i) => placed(dims, specs.outputs[i]!)),
    reductions: Object.fromEntries(
      Object.entries(reductions).map(([letter, reduction]) => [number(letter), reduction]),
    ),
    ...(onParts !== undefined && letters.has(onParts) && { onParts: number(onParts) }),
  };
}

/** Names of the axes of a tensor, counted from the last, so that those of a broadcast operand have the names of the result's. */
const alignedNames = (rank: number): string[] => Array.from({ length: rank }, (_, i) => `${rank - i}`);

/** The rule of operations that compute each element from the elements at its place, with broadcasting. */
export const elementwise: FactorRule = (inputs, outputs) => {
  const names = ({ shape }: TensorSpec) => alignedNames(shape.length);
  return lettered(inputs.map(names), outputs.map(names), { inputs, outputs });
};

/** The rule of operations that compute along some axes of an only tensor, and keep its rank: each line by itself. */
export const alongAxes =
  (axesOf: (attrs: Attrs, rank: number) => readonly number[]): FactorRule =>
  (inputs, outputs, attrs) => {
    const names = ({ shape }: TensorSpec) => {
      const axes = axesOf(attrs, shape.length);
      return alignedNames(shape.length).map((name, i) => (axes.includes(i) ? WHOLE : name));
    };
    return lettered(inputs.map(names), outputs.map(names), { inputs, outputs });
  };

/** The rule of reductions over `axes`, which have `keepDims`. */
export const reducing =
  (reduction: Reduction | 'mean'): FactorRule =>
  ([x], [out], attrs) => {
    const axes = ints(attrs.axes);
    const names = alignedNames(x!.shape.length);
    const results = attrs.keepDims
      ? names.map((name, i) => (axes.includes(i) ? WHOLE : name))
      : names.filter((_, i) => !axes.includes(i));
    const reductions = Object.fromEntries(axes.map((axis) => [names[axis]!, reduction]));
    return lettered([names], [results], { inputs: [x!], outputs: [out!] }, { reductions });
  };

const greatestDivisor = (a: number, b: number): number => (b === 0 ? a : greatestDivisor(b, a % b));

/** Factors of a reshape: the finest parts that both shapes have at the same strides. */
export function reshaping(from: Shape, to: Shape): Factors {
  const sizes: number[] = [];
  const [before, after] = [from, to].map((shape) => shape.map((): number[] => []));
  let [i, j] = [0, 0];
  let [a, b] = [from[0] ?? 1, to[0] ?? 1];
  const nextFrom = () => (a *= from[++i] ?? 1);
  const nextTo = () => (b *= to[++j] ?? 1);
  while (i < from.length && j < to.length) {
    const common = greatestDivisor(a, b);
    // The rest of one is a part of the other's next dimensions only where the other is used up.
    const fits = common === a || common === b;
    if (common > 1) {
      const factor = sizes.push(common) - 1;
      before![i]!.push(factor);
      after![j]!.push(factor);
      [a, b] = [a / common, b / common];
    }
    if (fits) {
      if (a === 1) nextFrom();
      if (b === 1) nextTo();
    } else {
      while (a !== b) a < b ? nextFrom() : nextTo();
      [i, j] = [i + 1, j + 1];
      [a, b] = [from[i] ?? 1, to[j] ?? 1];
    }
  }
  return {
    sizes,
    inputs: [before!],
    outputs: [after!],
    localAttrs: (shape) => ({ shape }),
  };
}
