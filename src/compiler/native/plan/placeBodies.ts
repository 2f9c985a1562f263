/** @file Layout of loops and choices: their bodies are placed where they stand, on slices of the arrays around them. */
import { runningSums } from '../../passes/index.js';
import type { Graph, Node, Value } from '../../program/ir.js';
import { sizeOf } from '../../program/tensors.js';
import { marker } from './loops.js';
import type { Operand, PlacedOp } from './placedOps.js';
import {
  type Buffer,
  type Home,
  holdersOf,
  type Loop,
  type Storage,
  type Turn,
  type View,
  wholeView,
} from './views.js';

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
  for (const holder of holdersOf(of.buffer)) holder.pinned = true;
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

/** A carry: where turns read it, and where they write that of the next turn. */
interface Carry {
  readonly first: View;
  readonly read: View;
  readonly written: View;
  readonly last: View;
  /** Where it is stacked: what turns read, and what they write, in the order of slices. */
  readonly stacks: readonly View[];
}

/** A carry in one slot, which turns add to in place, or in two, which they read and write alternately. */
function carryOf({ shape, dtype }: Value, loop: Loop, slots: 1 | 2, around: Around): Carry {
  const size = sizeOf(shape);
  const buffer = around.newBuffer(slots * size, dtype, { ...ARENA });
  const at = (slot: number): View => ({ ...wholeView(buffer, shape), offset: slot * size });
  const moving = (shift: number): View => {
    const turn = slots === 1 ? null : { loop, step: size, shift, period: slots };
    return wholeView(sliceBuffer(at(0), size, turn, around), shape);
  };
  return { first: at(0), read: moving(0), written: moving(1), last: at(loop.length % slots), stacks: [] };
}

/** A carry that is stacked anyway: each turn writes it to the slot behind the one that it reads. */
function stackedCarryOf({ shape, dtype }: Value, loop: Loop, reverse: boolean, around: Around): Carry {
  const size = sizeOf(shape);
  const { length } = loop;
  const buffer = around.newBuffer((length + 1) * size, dtype, { ...ARENA });
  const at = (slot: number, of = shape): View => ({ ...wholeView(buffer, of), offset: slot * size });
  const [begin, end] = reverse ? [length, 0] : [0, length];
  const stacks = (reverse ? [1, 0] : [0, 1]).map((slot) => at(slot, [length, ...shape]));
  const [read, written] = stacks.map((stack) => slicesOf(stack, loop, reverse, around)) as [View, View];
  return { first: at(begin), read, written, last: at(end), stacks };
}

/** Of a result that stacks a carry, the carry's number, and which of its stacks it is. */
function stackedCarry({ inputs, outputs }: Graph, count: number, i: number) {
  const sources = [inputs, outputs].map((values) => values.slice(0, count).indexOf(outputs[i]!));
  const stack = sources.findIndex((carry) => carry !== -1);
  return i < count || stack === -1 ? undefined : { carry: sources[stack]!, stack };
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
    if (isStacked) return stackedCarryOf(value, loop, reverse, around);
    // A turn reads an element of a sum no later than it writes it.
    return carryOf(value, loop, sums.has(i) ? 1 : 2, around);
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
    else if (found !== undefined) around.settle(output, carries[found.carry]!.stacks[found.stack]!);
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
