/** @file Loops over a fixed number of turns. The gradient is a loop in the other direction. */

import { copyGraph, type Graph, type Value } from '../program/ir.js';
import { CompilerError, formatSpec, sameShape, type Tree } from '../program/tensors.js';
import { flattenTree, mapTree } from '../program/tensorTrees.js';
import { taping } from '../tfjs/tape.js';
import * as tf from '../tfjs/tfjs.js';
import { isTensor } from '../trace/gradients.js';
import { isTracing, recordBodies } from '../trace/tracing.js';
import { type Body, traceBody } from './body.js';
import { differentiating, gradientsWith, isFloat, recordGradient, specOf, zerosOf } from './bodyGradients.js';
import { savableValues, withResiduals } from './residuals.js';

/** Options of a scan. */
export interface ScanOptions {
  /** Number of turns; needed where `xs` has no leaves. */
  readonly length?: number;
  /** Whether turns go from the last slice to the first; ys keep the order of xs. */
  readonly reverse?: boolean;
  /** Whether the body is called for each turn, and every turn is compiled apart. */
  readonly unroll?: boolean;
}

interface Turns {
  readonly length: number;
  readonly reverse: boolean;
}

let areUnrolled = false;

/** Whether loops are traced turn by turn, and choices as both branches. */
export const isUnrolling = (): boolean => areUnrolled;

/** Traces with every loop turn by turn, so that the operations of bodies are nodes of the program. */
export function withLoopsUnrolled<T>(trace: () => T): T {
  const outer = areUnrolled;
  areUnrolled = true;
  try {
    return trace();
  } finally {
    areUnrolled = outer;
  }
}

/** One turn on flat tensors: from carries and slices of the xs to carries and ys. */
type Turn = (carry: readonly tf.Tensor[], slices: readonly tf.Tensor[]) => [tf.Tensor[], tf.Tensor[]];

/** Replaces the leaves of a tree, in order. */
export function refill<T extends Tree<tf.Tensor>>(tree: T, leaves: readonly tf.Tensor[]): T {
  let next = 0;
  return mapTree<tf.Tensor, tf.Tensor>(tree, isTensor, () => leaves[next++]!) as T;
}

const named = (what: string, path: string): string => (path === '' ? what : `${what} '${path}'`);

/** The number of turns. @throws CompilerError where the leaves of `xs` and `length` do not give one number */
function lengthOf(xs: Tree<tf.Tensor>, length: number | undefined): number {
  if (length !== undefined && !(Number.isInteger(length) && length >= 0))
    throw new CompilerError(`scan: expected a length of 0 turns or more, got ${length}.`);
  let [turns, told] = [length, `length is ${length}`];
  for (const { path, value } of flattenTree<tf.Tensor>(xs, isTensor)) {
    const leaf = `${named('xs', path)} is ${formatSpec(specOf(value))}`;
    const [own] = value.shape;
    if (own === undefined)
      throw new CompilerError(`scan: ${leaf}, which has no axis to take a slice of in each turn.`);
    if (turns !== undefined && own !== turns)
      throw new CompilerError(
        `scan: ${leaf}, and ${told}: all leaves of xs, and length where it is given, need the same number of turns along the first axis.`,
      );
    [turns, told] = [own, leaf];
  }
  if (turns === undefined) throw new CompilerError('scan: xs has no leaves, so that length is needed.');
  return turns;
}

/** The leaves of a new carry. @throws CompilerError that names the first leaf that differs from the old carry */
export function sameCarry(what: string, given: Tree<tf.Tensor>, made: Tree<tf.Tensor>): tf.Tensor[] {
  const before = flattenTree<tf.Tensor>(given, isTensor);
  const after = flattenTree<tf.Tensor>(made, isTensor);
  const paths = new Set(after.map(({ path }) => path));
  const known = new Set(before.map(({ path }) => path));
  const lost = before.find(({ path }) => !paths.has(path));
  const added = after.find(({ path }) => !known.has(path));
  const rule = 'A carry keeps its structure, shapes and dtypes from turn to turn.';
  if (lost !== undefined)
    throw new CompilerError(`${what} a carry without ${named('the leaf', lost.path)}. ${rule}`);
  if (added !== undefined)
    throw new CompilerError(
      `${what} a carry with ${named('the leaf', added.path)}, which was not given. ${rule}`,
    );
  return before.map(({ path, value }) => {
    const leaf = after.find((leaf) => leaf.path === path)!.value;
    const [old, own] = [specOf(value), specOf(leaf)];
    if (old.dtype !== own.dtype || !sameShape(old.shape, own.shape))
      throw new CompilerError(
        `${what} ${named('the carry', path)} as ${formatSpec(own)}, and was given ${formatSpec(old)}. ${rule}`,
      );
    return leaf;
  });
}

const sliceOf = (x: tf.Tensor, index: number): tf.Tensor =>
  tf.reshape(
    tf.slice(x, [index, ...x.shape.slice(1).map(() => 0)], [1, ...x.shape.slice(1)]),
    x.shape.slice(1),
  );

/** One turn after the other, as tfjs's operations. */
function unrolled(
  turn: Turn,
  init: readonly tf.Tensor[],
  xs: readonly tf.Tensor[],
  { length, reverse }: Turns,
): [tf.Tensor[], tf.Tensor[]] {
  let carry = [...init];
  const rows: tf.Tensor[][] = [];
  for (let i = 0; i < length; i++) {
    const at = reverse ? length - 1 - i : i;
    const slices = xs.map((x) => sliceOf(x, at));
    [carry, rows[at]] = turn(carry, slices);
  }
  return [carry, rows[0]!.map((_, k) => tf.stack(rows.map((row) => row[k]!)))];
}

/** The values of turns that are stacked for the gradient, each with its stack. */
type Residuals = ReadonlyMap<Value, tf.Tensor>;

/**
 * Records a loop over a body whose first inputs and outputs are the carries.
 *
 * @param residuals values that the body, the gradient of another one, may read instead of computing them.
 */
export function recordScan(
  body: Body,
  init: readonly tf.Tensor[],
  xs: readonly tf.Tensor[],
  turns: Turns,
  residuals: Residuals = new Map(),
): tf.Tensor[] {
  const count = init.length;
  const isTaped = body.tape !== null && taping.isTapeOn();
  // The gradient starts each turn from the carries that the turn was given.
  const given = isTaped ? body.inputs.slice(0, count) : [];
  const recorded = body.recorded([...body.outputs, ...given]);
  const turning = count + xs.length;
  const read = withResiduals(recorded, new Set(residuals.keys()), turning);
  const sliced = [...xs, ...read.residuals.map((value) => residuals.get(value)!)];
  const savable = isTaped && residuals.size === 0 ? savableValues(recorded, turning) : [];
  const graph: Graph = { ...read.graph, outputs: [...read.graph.outputs, ...savable] };
  const made = recordBodies(
    'Scan',
    [...init, ...sliced, ...body.outer],
    { ...turns, carries: count, xs: sliced.length },
    [copyGraph(graph)],
  );
  const outputs = made.slice(0, made.length - savable.length);
  const inputs = [...init, ...xs, ...body.outer];
  if (isTaped) {
    const stacks = new Map(savable.map((value, i) => [value, made[outputs.length + i]!]));
    const gradientsOf = (dys: readonly (tf.Tensor | undefined)[]) =>
      differentiating((isLast) =>
        scanGradients(body, init, xs, turns, outputs, isLast ? stacks : new Map(), dys),
      );
    recordGradient('Scan', inputs, outputs, gradientsOf, body.tape!);
  }
  return outputs.slice(0, body.outputs.length);
}

/**
 * Gradients by carries, xs and outer tensors: a loop in the other direction over the gradient of the body.
 *
 * @param outputs the last carries, the stacked results and the stacked carries that turns were given.
 */
export function scanGradients(
  body: Body,
  init: readonly tf.Tensor[],
  xs: readonly tf.Tensor[],
  { length, reverse }: Turns,
  outputs: readonly tf.Tensor[],
  residuals: Residuals,
  dys: readonly (tf.Tensor | undefined)[],
): (tf.Tensor | undefined)[] {
  const count = init.length;
  const given = body.inputs.slice(0, count);
  const made = [...body.outputs, ...given];
  const carries = [...init.keys()].filter((i) => isFloat(init[i]!));
  const stacked = [...made.keys()].filter((i) => i >= count && dys[i] !== undefined && isFloat(made[i]!));
  // Numbers of the outer tensors and of the xs that have a gradient.
  let [outer, sliced]: [number[], number[]] = [[], []];
  const backward = body.extended((input) => {
    const [dCarry, dStacked] = [carries, stacked].map((list) => list.map((i) => input(specOf(made[i]!))));
    const sources = [...body.inputs, ...body.outer];
    const found = gradientsWith(
      [...carries, ...stacked].map((i) => made[i]!),
      [...dCarry!, ...dStacked!],
      sources,
    );
    const behind = found.slice(body.inputs.length);
    const ofSlices = found.slice(count, body.inputs.length);
    const present = (list: typeof found, owners: readonly tf.Tensor[]): number[] =>
      [...list.keys()].filter((i) => list[i] !== undefined && isFloat(owners[i]!));
    [outer, sliced] = [present(behind, body.outer), present(ofSlices, xs)];
    const sums = outer.map((i) => input(specOf(body.outer[i]!)));
    return {
      inputs: [...dCarry!, ...sums, ...body.inputs, ...dStacked!],
      outputs: [
        ...carries.map((i) => found[i] ?? zerosOf(given[i]!)),
        ...outer.map((i, k) => tf.add(sums[k]!, behind[i]!)),
        ...sliced.map((i) => ofSlices[i]!),
      ],
    };
  });
  const results = recordScan(
    backward,
    [...carries.map((i) => dys[i] ?? zerosOf(init[i]!)), ...outer.map((i) => zerosOf(body.outer[i]!))],
    [...outputs.slice(body.outputs.length), ...xs, ...stacked.map((i) => dys[i]!)],
    { length, reverse: !reverse },
    residuals,
  );
  const all: (tf.Tensor | undefined)[] = [...init, ...xs, ...body.outer].map(() => undefined);
  const places = [...carries, ...outer.map((i) => count + xs.length + i), ...sliced.map((i) => count + i)];
  places.forEach((place, k) => {
    all[place] = results[k];
  });
  return all;
}

/** A loop on flat tensors, recorded as one operation. Empty tensors stay outside. */
function recorded(
  turn: Turn,
  init: readonly tf.Tensor[],
  xs: readonly tf.Tensor[],
  turns: Turns,
): [tf.Tensor[], tf.Tensor[]] {
  const isFull = ({ size }: { readonly size: number }): boolean => size > 0;
  const fill = (all: readonly tf.Tensor[], full: readonly tf.Tensor[], shapes: readonly number[][]) => {
    let next = 0;
    return all.map((tensor, i) =>
      isFull(tensor) ? full[next++]! : tf.zeros(shapes[i]!, tensor.dtype as 'float32'),
    );
  };
  const shapes = init.map(({ shape }) => shape);
  const sliceShapes = xs.map(({ shape }) => shape.slice(1));
  const [fullInit, fullXs] = [init.filter(isFull), xs.filter(isFull)];
  let made: { readonly shape: number[]; readonly dtype: string; readonly size: number }[] = [];
  const specs = [...fullInit.map(specOf), ...fullXs.map((x) => ({ ...specOf(x), shape: x.shape.slice(1) }))];
  const body = traceBody(specs, (inputs) => {
    const carry = fill(init, inputs.slice(0, fullInit.length), shapes);
    const [next, ys] = turn(carry, fill(xs, inputs.slice(fullInit.length), sliceShapes));
    made = ys.map(({ shape, dtype, size }) => ({ shape, dtype, size }));
    return [...next.filter(isFull), ...ys.filter(isFull)];
  });
  const outputs = recordScan(body, fullInit, fullXs, turns);
  let next = fullInit.length;
  return [
    fill(init, outputs, shapes),
    made.map(({ shape, dtype, size }) =>
      size > 0 ? outputs[next++]! : tf.zeros([turns.length, ...shape], dtype as 'float32'),
    ),
  ];
}

/**
 * Repeats `body` once for each slice of `xs` along the first axis, like jax.lax.scan: `body(carry, x)` gives the next carry
 * and a y. The body is traced once, so that neither tracing nor compiling takes longer for more turns. It may use tensors
 * from outside; gradients reach the first carry, `xs` and these.
 *
 * @param body takes structures of tensors, and returns the next carry, of the same structure, shapes and dtypes, and y.
 * @param init the first carry.
 * @param xs a structure of tensors [length, ...], or one without tensors.
 * @returns the last carry, and the ys stacked along a first axis, in the order of xs.
 * @throws CompilerError where lengths differ, or the carry changes.
 */
export function scan<C extends Tree<tf.Tensor>, X extends Tree<tf.Tensor>, Y extends Tree<tf.Tensor>>(
  body: (carry: C, x: X) => readonly [carry: C, y: Y],
  init: C,
  xs: X,
  options: ScanOptions = {},
): [carry: C, ys: Y] {
  const turns = { length: lengthOf(xs, options.length), reverse: options.reverse ?? false };
  let example: Y | undefined;
  const turn: Turn = (carry, slices) => {
    const result: unknown = body(refill(init, carry), refill(xs, slices));
    if (!Array.isArray(result) || result.length !== 2)
      throw new CompilerError(
        'scan: expected the body to return [carry, y], a pair of structures of tensors.',
      );
    const [next, y] = result as unknown as [C, Y];
    const leaves = sameCarry('scan: the body returns', init, next);
    example ??= y;
    return [leaves, flattenTree<tf.Tensor>(y, isTensor).map(({ value }) => value)];
  };
  const leaves = (tree: Tree<tf.Tensor>): tf.Tensor[] =>
    flattenTree<tf.Tensor>(tree, isTensor).map(({ value }) => value);
  const run =
    turns.length > 1 && isTracing() && !options.unroll && !areUnrolled
      ? recorded
      : turns.length === 0
        ? shapesOnly
        : unrolled;
  const [carry, ys] = run(turn, leaves(init), leaves(xs), turns);
  return [refill(init, carry), refill(example!, ys)];
}

/** No turns: the body is called for the shapes of its ys. */
function shapesOnly(
  turn: Turn,
  init: readonly tf.Tensor[],
  xs: readonly tf.Tensor[],
): [tf.Tensor[], tf.Tensor[]] {
  const zeros = (shape: readonly number[], dtype: string) => tf.zeros([...shape], dtype as 'float32');
  const [, ys] = turn(
    init,
    xs.map(({ shape, dtype }) => zeros(shape.slice(1), dtype)),
  );
  return [[...init], ys.map(({ shape, dtype }) => zeros([0, ...shape], dtype))];
}
