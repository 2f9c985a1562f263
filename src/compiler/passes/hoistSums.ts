/** @file Sums over the turns of a loop, taken behind it where that is cheaper: gradients of what all turns read. */
import { type Graph, type Node, newValue, producers, rewrite, useCounts, type Value } from '../program/ir.js';
import { sizeOf } from '../program/tensors.js';
import { inferOutputs } from '../rules/index.js';
import { type Make, reshaped } from './rewriting.js';

/** Operations for which the sum of results is the result for the sums of operands. */
const LINEAR: ReadonlySet<string> = new Set([
  ...['Identity', 'Reshape', 'ExpandDims', 'Transpose', 'PadV2', 'Neg'],
  ...['Add', 'Sub', 'Concat'],
]);

/** The sum of a value over all turns, made behind the loop. */
type Total = (make: Make) => Value;

/**
 * The nodes of a loop's body that add to a carry, which nothing else reads and which is nothing but that sum, by the number of
 * the carry.
 */
export function runningSums({ bodies, attrs }: Node): Map<number, Node> {
  const [body] = bodies as [Graph];
  const [made, uses] = [producers(body), useCounts(body)];
  const sums = new Map<number, Node>();
  for (let i = 0; i < (attrs.carries as number); i++) {
    const [carry, next] = [body.inputs[i]!, body.outputs[i]!];
    const node = made.get(next);
    if (node === undefined || uses.get(carry) !== 1 || uses.get(next) !== 1) continue;
    const addends = node.op === 'MatMulAdd' ? node.inputs.slice(2) : node.op === 'Add' ? node.inputs : [];
    if (addends.includes(carry)) sums.set(i, node);
  }
  return sums;
}

/** A loop whose body gives more results, and the sums that are taken of them. */
class Hoisting {
  private readonly made: ReadonlyMap<Value, Node>;
  private readonly body: Graph;
  private readonly carries: number;
  private readonly xs: number;
  /** Values of the body that are stacked, and those that are summed in carries of their own, with their results. */
  private readonly stacks = new Map<Value, Value>();
  private readonly sums = new Map<Value, Value>();
  private readonly totals = new Map<number, Total>();

  constructor(private readonly node: Node) {
    this.body = node.bodies![0]!;
    this.made = producers(this.body);
    ({ carries: this.carries, xs: this.xs } = node.attrs as { carries: number; xs: number });
    for (const [i, { op, inputs }] of runningSums(node)) {
      const sum = this.body.inputs[i]!;
      if (op !== 'Add' || sum.dtype !== 'float32') continue;
      const total = this.totalOf(inputs.find((input) => input !== sum)!);
      if (total) this.totals.set(i, total);
    }
  }

  /** Emits the loop and what goes behind it; returns what stands for the loop's results. */
  emit(emit: (node: Node) => void): readonly Value[] {
    const { node, body, carries } = this;
    if (this.totals.size === 0) {
      emit(node);
      return node.outputs;
    }
    const make: Make = (op, inputs, attrs = {}) => {
      const output = newValue(inferOutputs(op, inputs, attrs)[0]!);
      emit({ op, inputs, outputs: [output], attrs, scope: node.scope });
      return output;
    };
    const added = [...this.sums.keys()].map((value) => newValue(value));
    const zeros = added.map(({ shape }) => make('Fill', [], { shape, value: 0, dtype: 'float32' }));
    const both = <T>(list: readonly T[], sums: readonly T[], stacks: readonly T[]): T[] => [
      ...list.slice(0, carries),
      ...sums,
      ...list.slice(carries),
      ...stacks,
    ];
    const adds = [...this.sums.keys()].map((value, i): Node => {
      const outputs = [newValue(value)];
      return { op: 'Add', inputs: [added[i]!, value], outputs, attrs: {}, scope: node.scope };
    });
    emit({
      ...node,
      inputs: both(node.inputs, zeros, []),
      outputs: both(node.outputs, [...this.sums.values()], [...this.stacks.values()]),
      attrs: { ...node.attrs, carries: carries + added.length },
      bodies: [
        {
          inputs: both(body.inputs, added, []),
          nodes: [...body.nodes, ...adds],
          outputs: both(
            body.outputs,
            adds.map(({ outputs }) => outputs[0]!),
            [...this.stacks.keys()],
          ),
        },
      ],
    });
    return node.outputs.map((output, i) => {
      const total = this.totals.get(i);
      return total ? make('Add', [node.inputs[i]!, total(make)]) : output;
    });
  }

  /** null where the sum is better taken turn by turn. */
  private totalOf(value: Value): Total | null {
    const node = this.made.get(value);
    if (node === undefined) return null;
    const { op, inputs, attrs } = node;
    if (op === 'BatchMatMul') return this.totalOfProducts(node);
    if (op === 'Sum') return this.totalOfSums(node);
    if (!LINEAR.has(op) || (op === 'PadV2' && attrs.value !== 0)) return null;
    // Broadcasting would repeat the terms of the smaller operand.
    if (op !== 'Concat' && inputs.length === 2 && sizeOf(inputs[0]!.shape) !== sizeOf(inputs[1]!.shape))
      return null;
    const totals = inputs.map((input) => this.totalOf(input));
    if (!totals.every((total) => total !== null)) return null;
    return (make) =>
      make(
        op,
        totals.map((total) => total(make)),
        attrs,
      );
  }

  /** Of products of few rows: one product of all turns' rows. */
  private totalOfProducts({ inputs, outputs, attrs }: Node): Total | null {
    const [a, b] = inputs as [Value, Value];
    const areRows =
      attrs.transposeA === true && !attrs.transposeB && a.shape.length === 2 && b.shape.length === 2;
    if (!areRows || sizeOf(a.shape) + sizeOf(b.shape) > sizeOf(outputs[0]!.shape)) return null;
    const stacks = [this.stackOf(a), this.stackOf(b)];
    return (make) =>
      make(
        'BatchMatMul',
        stacks.map((stack) => allRows(stack, make)),
        attrs,
      );
  }

  /** Of sums: of what is stacked anyway, or else a carry as large as what is summed, where the loop has one. */
  private totalOfSums({ inputs: [of], outputs, attrs }: Node): Total | null {
    const value = of!;
    const axes = attrs.axes as readonly number[];
    const stack = this.stacked(value);
    if (stack !== undefined) {
      const ofStack = { axes: [0, ...axes.map((axis) => axis + 1)], keepDims: false };
      return (make) => reshaped(make('Sum', [stack], ofStack), outputs[0]!.shape, make);
    }
    const largest = Math.max(...this.body.inputs.slice(0, this.carries).map(({ shape }) => sizeOf(shape)));
    if (sizeOf(value.shape) > largest) return null;
    const sum = this.sums.get(value) ?? newValue(value);
    this.sums.set(value, sum);
    return (make) => make('Sum', [sum], attrs);
  }

  /** What the loop reads or gives with a value of each turn. */
  private stacked(value: Value): Value | undefined {
    const { node, body, carries, xs } = this;
    const input = body.inputs.indexOf(value);
    if (input >= carries && input < carries + xs) return node.inputs[input];
    return node.outputs[body.outputs.indexOf(value, carries)];
  }

  private stackOf(value: Value): Value {
    const known = this.stacked(value) ?? this.stacks.get(value);
    if (known !== undefined) return known;
    const shape = [this.node.attrs.length as number, ...value.shape];
    const stack = newValue({ shape, dtype: value.dtype });
    this.stacks.set(value, stack);
    return stack;
  }
}

/** [turns, rows, columns] as one matrix of all rows. */
const allRows = (stack: Value, make: Make): Value =>
  reshaped(stack, [stack.shape[0]! * stack.shape[1]!, stack.shape[2]!], make);

/**
 * Takes sums over turns out of loops: a carry that only adds something up, of which the sum can be had behind the loop. Of
 * products of few rows, as the gradients of recurrent weights are, it is one product of all turns' rows, in place of a sum
 * as large as the weights that is read and written in each turn.
 */
export const hoistSums = (graph: Graph): Graph =>
  graph.nodes.some(({ op }) => op === 'Scan')
    ? rewrite(graph, (node, emit) => {
        if (node.op === 'Scan') return new Hoisting(node).emit(emit);
        emit(node);
        return node.outputs;
      })
    : graph;
