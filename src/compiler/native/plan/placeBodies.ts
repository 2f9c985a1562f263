/** @file Layout of loops and choices: their bodies are placed where they stand, on slices of the arrays around them. */
import { runningSums } from '../../passes/index.js';
import type { Graph, Node, Value } from '../../program/ir.js';
import { sizeOf } from '../../program/tensors.js';
import { marker } from './loops.js';
import type { Operand, PlacedOp } from './placedOps.js';
import { type Buffer, type Home, type Loop, type Storage, type Turn, type View, wholeView } from './views.js';

/** Values that the layout of a graph gives to that of its bodies. */
export interface Around {
  readonly ops: PlacedOp[];
  newBuffer(size: number, storage: Storage, home: Home): Buffer;
  /** An operand: a view, or the number that all elements are. */
  operand(value: Value): Operand;
  /** An operand in memory. */
  memory(value: Value): View;
  /** Where a value is computed, or will be. */
  ensure(value: Value): View;
  /** Makes a view stand for a value that has none; copies where it has one. */
  settle(value: Value, view: View): void;
  copy(from: Operand, to: View, scope: string): void;
  /** Places a body whose inputs are `given`, with its results in these views. */
  placeBody(body: Graph, given: readonly Operand[], results: readonly View[]): void;
}

const ARENA: Home = { kind: 'arena', offset: -1 };

/** A part of a view's buffer that begins where the view does; with the turns of a loop, it moves. */
function sliceBuffer(of: View, size: number, turn: Turn | null, around: Around): Buffer {
  for (let root = of.buffer; ; root = root.home.of) {
    root.pinned = true;
    if (root.home.kind !== 'slice') break;
  }
  return around.newBuffer(size, of.buffer.storage, {
    kind: 'slice',
    of: of.buffer,
    offset: of.offset,
    turn,
  });
}

/** The slices of a stacked view along its first axis, one for each turn. */
function slicesOf(view: View, loop: Loop, reverse: boolean, around: Around): View {
  const [stride] = view.strides as [number];
  const shape = view.shape.slice(1);
  const first = reverse ? view.offset + (loop.length - 1) * stride : view.offset;
  const turn = { loop, step: reverse ? -stride : stride, shift: 0, period: 0 };
  const buffer = sliceBuffer({ ...view, offset: first }, sizeOf(shape), turn, around);
  return { buffer, offset: 0, shape, strides: view.strides.slice(1) };
}

/** A carry: slots that turns read, and write for the next turn. */
interface Carry {
  readonly first: View;
  readonly read: View;
  readonly written: View;
  readonly last: View;
  /** What turns read or, with shift 1, write, in the order of stacks; of other carries, nothing. */
  stack(shift: number): View;
}

/** How turns keep a carry: they add to it in place, write it where it is stacked anyway, or use two slots by turns. */
type Keeping = 'sum' | 'stack' | 'alternate';

/** A carry in one slot, in one after the other, or in two by turns. */
function carryOf(spec: Value, loop: Loop, keeping: Keeping, reverse: boolean, around: Around): Carry {
  const { shape, dtype } = spec;
  const size = sizeOf(shape);
  const isStacked = keeping === 'stack';
  const slots = isStacked ? loop.length + 1 : keeping === 'sum' ? 1 : 2;
  const all = wholeView(around.newBuffer(slots * size, dtype, { ...ARENA }), [slots, ...shape]);
  const at = (slot: number): View => ({ ...wholeView(all.buffer, shape), offset: slot * size });
  const isDescending = isStacked && reverse;
  const first = at(isDescending ? loop.length : 0);
  const [step, period] = [isDescending ? -size : size, isStacked ? 0 : slots];
  const moving = (shift: number): View =>
    wholeView(sliceBuffer(first, size, slots === 1 ? null : { loop, step, shift, period }, around), shape);
  return {
    first,
    read: moving(0),
    written: moving(1),
    last: at(isDescending ? 0 : loop.length % slots),
    stack: (shift) => ({
      ...all,
      offset: (isDescending ? 1 - shift : shift) * size,
      shape: [loop.length, ...shape],
    }),
  };
}

/** The carry that a result of a body stacks, as turns read it (shift 0) or write it (1). */
function stackedCarry({ inputs, outputs }: Graph, count: number, i: number) {
  const sources = [inputs, outputs].map((values) => values.slice(0, count).indexOf(outputs[i]!));
  const shift = sources.findIndex((carry) => carry !== -1);
  return i < count || shift === -1 ? undefined : { carry: sources[shift]!, shift };
}

/** Places a loop. */
export function placeScan(node: Node, around: Around): void {
  const [body] = node.bodies as [Graph];
  const {
    carries: count,
    xs,
    length,
    reverse,
  } = node.attrs as {
    carries: number;
    xs: number;
    length: number;
    reverse: boolean;
  };
  const loop: Loop = { length };
  const stacked = body.outputs.map((_, i) => stackedCarry(body, count, i));
  const sums = runningSums(node);
  const carries = body.inputs.slice(0, count).map((value, i) => {
    const isStacked = stacked.some((found) => found?.carry === i);
    return carryOf(value, loop, isStacked ? 'stack' : sums.has(i) ? 'sum' : 'alternate', reverse, around);
  });
  carries.forEach(({ first }, i) => {
    around.copy(around.operand(node.inputs[i]!), first, node.scope);
  });
  const given = node.inputs.map((value, i): Operand => {
    if (i < count) return carries[i]!.read;
    const operand = around.operand(value);
    const isSliced = i < count + xs && typeof operand !== 'number';
    return isSliced ? slicesOf(operand, loop, reverse, around) : operand;
  });
  const made = [...stacked.keys()].filter((i) => stacked[i] === undefined);
  const results = made.map((i) =>
    i < count ? carries[i]!.written : slicesOf(around.ensure(node.outputs[i]!), loop, reverse, around),
  );
  around.ops.push(marker('Begin', loop));
  around.placeBody({ ...body, outputs: made.map((i) => body.outputs[i]!) }, given, results);
  around.ops.push(marker('End', loop));
  node.outputs.forEach((output, i) => {
    const found = stacked[i];
    if (i < count) around.settle(output, carries[i]!.last);
    else if (found !== undefined) around.settle(output, carries[found.carry]!.stack(found.shift));
  });
}

/** Places a choice: each branch is a loop of one turn, where the predicate holds or does not. */
export function placeCond(node: Node, around: Around): void {
  const [predicate, ...operands] = node.inputs;
  const held = wholeView(around.newBuffer(1, 'bool', { ...ARENA }), []);
  const view = wholeView(sliceBuffer(held, 1, null, around), []);
  around.copy(around.operand(predicate!), view, node.scope);
  const results = node.outputs.map((value) => around.ensure(value));
  for (const [i, holds] of [true, false].entries()) {
    const loop: Loop = { length: 1, predicate: { view, holds } };
    around.ops.push(marker('Begin', loop));
    around.placeBody(
      node.bodies![i]!,
      operands.map((operand) => around.operand(operand)),
      results,
    );
    around.ops.push(marker('End', loop));
  }
}
