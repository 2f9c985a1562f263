/**
 * @file Buffer layout: makes every value a view of a buffer, so that nodes that only move data vanish or become copies.
 */

import { verifyNoEmpties } from '../../passes/index.js';
import { type Graph, type Node, producers, type Value } from '../../program/ir.js';
import { fillOf, type NarrowType, type Shape, sizeOf } from '../../program/tensors.js';
import { formOf } from './forms.js';
import { type Iteration, isLoopOp, iterationOf, reductionOrder, splitsOf } from './iteration.js';
import { takesNumbers, wantsCopy, writesTo } from './operandForms.js';
import { type Around, placeCond, placeScan } from './placeBodies.js';
import type { Operand, PlacedOp } from './placedOps.js';
import { widened } from './shortAxes.js';
import { storagesOf } from './storage.js';
import { repeatedViews, slotsOf, sourceView, VIEWS, withinPads } from './viewOps.js';
import {
  type Buffer,
  type Home,
  invertPermutation,
  type Storage,
  samePlace,
  sameView,
  storedDtype,
  transposeView,
  type View,
  wholeView,
} from './views.js';

/** Placed operations of a program. */
export interface Layout {
  readonly ops: readonly PlacedOp[];
  /** Operations of the program that follows in the same run. */
  readonly later: readonly PlacedOp[];
  readonly buffers: readonly Buffer[];
  /** Constants that are read from memory, in the order of their homes. */
  readonly constants: readonly Value[];
}

class Placement implements Around {
  private readonly views = new Map<Value, View>();
  private readonly made: Map<Value, Node>;
  private readonly literals = new Map<Value, number>();
  /** Values that those behind barriers wait for. */
  private readonly awaited = new Map<Value, Buffer>();
  /** Copies of small operands that are repeated along short axes. */
  private readonly repeated: { readonly of: View; readonly copy: View }[] = [];

  /** @param before the graph whose inputs, outputs and data are numbered before this one's. */
  constructor(
    private readonly graph: Graph,
    private readonly storages: ReadonlyMap<Value, NarrowType>,
    private readonly buffers: Buffer[],
    private readonly constants: Value[],
    private readonly before: Pick<Graph, 'inputs' | 'outputs'> = { inputs: [], outputs: [] },
    readonly ops: PlacedOp[] = [],
  ) {
    this.made = producers(graph);
  }

  run(): readonly PlacedOp[] {
    const { graph, before } = this;
    graph.inputs.forEach((input, i) => {
      this.views.set(input, this.newView(input, { kind: 'input', index: before.inputs.length + i }));
    });
    this.fill(
      graph.outputs.map((output, i) =>
        this.newView(output, { kind: 'output', index: before.outputs.length + i }),
      ),
    );
    return this.ops;
  }

  /** Places the nodes so that the outputs end up in these views. */
  private fill(results: readonly View[]): void {
    const { graph } = this;
    const late = graph.outputs.map((output, i) => !this.place(output, results[i]!));
    for (let i = graph.nodes.length - 1; i >= 0; i--) this.placeParts(graph.nodes[i]!);
    for (const node of this.withStoresEarly(graph.nodes)) this.visit(node);
    late.forEach((isLate, i) => {
      if (isLate) this.copy(this.operand(graph.outputs[i]!), results[i]!, '');
    });
  }

  /** The nodes with each store right behind what it stores, whose loop it can then join. */
  private withStoresEarly(nodes: readonly Node[]): Node[] {
    const isMoved = ({ op, inputs }: Node): boolean => op === 'Store' && this.made.has(inputs[0]!);
    const stores = new Map<Value, Node[]>();
    for (const node of nodes.filter(isMoved))
      stores.set(node.inputs[0]!, [...(stores.get(node.inputs[0]!) ?? []), node]);
    return nodes.flatMap((node) =>
      isMoved(node) ? [] : [node, ...node.outputs.flatMap((output) => stores.get(output) ?? [])],
    );
  }

  placeBody(body: Graph, given: readonly Operand[], results: readonly View[]): void {
    const inner = new Placement(body, new Map(), this.buffers, this.constants, undefined, this.ops);
    body.inputs.forEach((input, i) => {
      const operand = given[i]!;
      if (typeof operand === 'number') inner.literals.set(input, operand);
      else inner.views.set(input, operand);
    });
    inner.fill(results);
  }

  newBuffer(size: number, storage: Storage, home: Home): Buffer {
    const buffer = { id: this.buffers.length, size, storage, home };
    this.buffers.push(buffer);
    return buffer;
  }

  private newView(value: Value, home?: Home): View {
    const { shape, dtype, storage = dtype } = value;
    return this.viewOf(shape, this.storages.get(value) ?? storage, home);
  }

  private viewOf(shape: Shape, storage: Storage, home: Home = { kind: 'arena', offset: -1 }): View {
    return wholeView(this.newBuffer(sizeOf(shape), storage, home), shape);
  }

  /** Copies an operand; `Overwrite` follows a copy to the same buffer. */
  copy(from: Operand, to: View, scope: string, op: 'Copy' | 'Overwrite' = 'Copy'): void {
    const type = storedDtype(to.buffer.storage);
    this.ops.push({ op, inputs: [from], types: [type], outputs: [to], attrs: {}, scope });
  }

  /** Computes `value` directly into `view`; false where it already has another place, or can't have this one. */
  private place(value: Value, view: View): boolean {
    const node = this.made.get(value);
    if (node === undefined || this.views.has(value) || node.op === 'Barrier') return false;
    if (VIEWS[node.op] === undefined) {
      if (formOf(node.op)?.kind === 'fill' || !writesTo(node.op, view)) return false;
      this.views.set(value, view);
      return true;
    }
    const moved = sourceView(view, node);
    if (moved === null || !this.place(node.inputs[0]!, moved)) return false;
    this.views.set(value, view);
    return true;
  }

  /** Computes the pieces of a concatenation directly into the whole. */
  private placeParts(node: Node): void {
    if (node.op !== 'Concat' && node.op !== 'Pack') return;
    const output = node.outputs[0]!;
    const whole = this.views.get(output) ?? this.newView(output);
    this.views.set(output, whole);
    slotsOf(whole, node).forEach((slot, i) => {
      this.place(node.inputs[i]!, slot);
    });
  }

  private visit(node: Node): void {
    const output = node.outputs[0]!;
    const form = formOf(node.op);
    const move = MOVES[node.op];
    if (form?.kind === 'fill') this.literals.set(output, form.value(node.attrs));
    else if (move !== undefined) move(this, node);
    else if (VIEWS[node.op] !== undefined) this.view(node);
    else {
      this.compute({
        op: node.op,
        inputs: node.inputs.map((input) =>
          takesNumbers(node.op) ? this.operand(input) : this.memory(input),
        ),
        types: node.inputs.map(({ dtype }) => dtype),
        outputs: node.outputs.map((value) => this.ensure(value)),
        attrs: node.attrs,
        scope: node.scope,
        ...this.afterOf(node),
      });
    }
  }

  /** The values behind a barrier are views of those before it. */
  hold({ inputs, outputs }: Node): void {
    const arrival = this.operand(inputs.at(-1)!);
    outputs.forEach((output, i) => {
      const x = this.operand(inputs[i]!);
      if (typeof x === 'number') this.literals.set(output, x);
      else this.views.set(output, x);
      if (typeof arrival !== 'number') this.awaited.set(output, arrival.buffer);
    });
  }

  private afterOf({ inputs }: Node): Pick<PlacedOp, 'after'> {
    const after = [...new Set(inputs.flatMap((input) => this.awaited.get(input) ?? []))];
    return after.length > 0 ? { after } : {};
  }

  /** Emits a computing operation, copying operands whose strides it can't take. */
  private compute(op: PlacedOp): void {
    const iteration = isLoopOp(op.op) ? iterationOf(op) : null;
    if (iteration !== null && splitsOf(iteration).length === 0) this.reduceCopies(op);
    else if (iteration !== null) this.ops.push({ ...op, inputs: this.widened(op, iteration) });
    else {
      const inputs = op.inputs.map((input, i) =>
        typeof input !== 'number' && wantsCopy(op, input, i) ? this.copyOf(input, op.scope) : input,
      );
      this.ops.push({ ...op, inputs: op.op === 'MatMulAdd' ? this.withSum(inputs, op) : inputs });
    }
  }

  /** The operands of a product that is added to a sum, which lies where the result does. */
  private withSum([a, b, sum]: readonly Operand[], { outputs, scope }: PlacedOp): readonly Operand[] {
    const result = outputs[0]!;
    if (typeof sum === 'object' && samePlace(sum, result)) return [a!, b!, sum];
    this.copy(sum!, result, scope);
    return [a!, b!, result];
  }

  /** The operands of a loop's operation, small ones repeated along short axes. */
  private widened(op: PlacedOp, iteration: Iteration): readonly Operand[] {
    return widened(op, iteration, (view) => {
      const known = this.repeated.find(
        ({ of }) => of.shape.length === view.shape.length && sameView(of, view),
      );
      if (known) return known.copy;
      const copy = this.copyOf(view, op.scope);
      this.repeated.push({ of: view, copy });
      return copy;
    });
  }

  /** Copies the operands of a reduction whose axes have no common stride, in iteration order. */
  private reduceCopies(op: PlacedOp): void {
    const order = reductionOrder(op);
    const inputs = op.inputs.map((input) =>
      typeof input === 'number'
        ? input
        : transposeView(this.copyOf(transposeView(input, order), op.scope), invertPermutation(order)),
    );
    const target = op.outputs[0]!;
    const output = this.viewOf(target.shape, target.buffer.storage);
    this.ops.push({ ...op, inputs, outputs: [output] });
    this.copy(output, target, op.scope);
  }

  settle(value: Value, view: View): void {
    const known = this.views.get(value);
    if (known === undefined) this.views.set(value, view);
    else this.copy(view, known, '');
  }

  ensure(value: Value): View {
    const view = this.views.get(value) ?? this.newView(value);
    this.views.set(value, view);
    return view;
  }

  private view(node: Node): void {
    const x = this.operand(node.inputs[0]!);
    node.outputs.forEach((output, i) => {
      if (typeof x === 'number') this.literals.set(output, x);
      if (typeof x === 'number' || this.views.has(output)) return;
      const view = VIEWS[node.op]!(x, node, i);
      if (view !== null) {
        this.views.set(output, view);
        return;
      }
      // No strides give this order; those of a row-major copy do.
      const copy = this.copyOf(x, node.scope);
      this.views.set(output, VIEWS[node.op]!(copy, node, i)!);
    });
  }

  private copyOf(x: View, scope: string): View {
    const copy = this.viewOf(x.shape, storedDtype(x.buffer.storage));
    this.copy(x, copy, scope);
    return copy;
  }

  join(node: Node): void {
    slotsOf(this.ensure(node.outputs[0]!), node).forEach((slot, i) => {
      const input = this.operand(node.inputs[i]!);
      if (typeof input === 'number' || !sameView(input, slot)) this.copy(input, slot, node.scope);
    });
  }

  tile(node: Node): void {
    const x = this.operand(node.inputs[0]!);
    const result = this.ensure(node.outputs[0]!);
    const repeated = typeof x === 'number' ? { from: x, to: result } : repeatedViews(x, result, node);
    this.copy(repeated.from, repeated.to, node.scope);
  }

  pad(node: Node): void {
    const x = this.operand(node.inputs[0]!);
    const result = this.ensure(node.outputs[0]!);
    this.copy(Number(node.attrs.value), result, node.scope);
    this.copy(x, withinPads(result, node), node.scope, 'Overwrite');
  }

  store({ inputs, outputs, scope }: Node): void {
    this.copy(this.operand(inputs[0]!), this.ensure(outputs[0]!), scope);
  }

  /** The view of a value for an operation that takes no numbers. */
  memory(value: Value): View {
    const operand = this.operand(value);
    if (typeof operand !== 'number') return operand;
    const view = this.newView(value);
    this.copy(operand, view, '');
    return view;
  }

  /** The operand that stands for a value. */
  operand(value: Value): Operand {
    const literal = this.literals.get(value);
    if (literal !== undefined) return literal;
    const known = this.views.get(value);
    if (known !== undefined) return known;
    // Only constants have no place by now.
    // Shape-only traces omit the data of large constants.
    const filling = value.data === undefined ? null : fillOf(value.data);
    if (filling !== null) {
      this.literals.set(value, filling);
      return filling;
    }
    const view = this.newView(value, { kind: 'constant', index: this.constants.length });
    this.constants.push(value);
    this.views.set(value, view);
    return view;
  }
}

/** Operations that become copies, or the operations of their bodies. */
const MOVES: Readonly<Record<string, (placement: Placement, node: Node) => void>> = {
  Barrier: (placement, node) => placement.hold(node),
  Concat: (placement, node) => placement.join(node),
  Pack: (placement, node) => placement.join(node),
  Tile: (placement, node) => placement.tile(node),
  PadV2: (placement, node) => placement.pad(node),
  Scan: (placement, node) => placeScan(node, placement),
  Cond: (placement, node) => placeCond(node, placement),
  Store: (placement, node) => placement.store(node),
};

/** Their names. */
export const MOVED: readonly string[] = Object.keys(MOVES);

/**
 * Places all values of a graph, and of one that follows it in the same run; `stored` has inputs with the
 * storage that was chosen for them.
 *
 * @throws CompilerError for an empty tensor, with operation and layer.
 */
export function layOut(
  graph: Graph,
  stored: ReadonlyMap<Value, NarrowType> = new Map(),
  then: Graph | null = null,
): Layout {
  for (const each of then === null ? [graph] : [graph, then]) verifyNoEmpties(each);
  const [buffers, constants]: [Buffer[], Value[]] = [[], []];
  const ops = new Placement(graph, storagesOf(graph, stored), buffers, constants).run();
  const later =
    then === null ? [] : new Placement(then, storagesOf(then, stored), buffers, constants, graph).run();
  return { ops, later, buffers, constants };
}
