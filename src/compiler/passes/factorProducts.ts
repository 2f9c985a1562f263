/** @file Products of the factors that weights in few bits are multiplied by, with themselves, as a program's outputs. */
import { withLoopsUnrolled } from '../control/scan.js';
import { type Attrs, type Graph, ints, type Node, newValue, producers, type Value } from '../program/ir.js';
import { sizeOf, type TensorSpec, type Tree } from '../program/tensors.js';
import { inferOutputs } from '../rules/index.js';
import { type Program, type TensorFunction, traceProgram } from '../trace/tracedProgram.js';
import { optimize } from './index.js';

/** Where an output of `factorProducts` belongs. */
export interface FactorProduct {
  /** Path of the input that has the codes, and which of the matrices that it stacks. */
  readonly path: string;
  readonly part: number;
  /** Weights of an output from `first` on: the output's shape is [size, size]. */
  readonly first: number;
  readonly size: number;
}

/** An input of a graph, and the elements before a part of it. */
interface Origin {
  readonly input: Value;
  readonly offset: number;
}

/** The input that codes are a contiguous part of. */
function originOf(value: Value, made: ReadonlyMap<Value, Node>): Origin | null {
  const node = made.get(value);
  if (node === undefined) return value.data === undefined ? { input: value, offset: 0 } : null;
  if (!['Load', 'Reshape', 'Slice'].includes(node.op)) return null;
  const from = originOf(node.inputs[0]!, made);
  if (from === null || node.op !== 'Slice') return from;
  // Of a stack, one after the other.
  const [first = 0] = ints(node.attrs.begin);
  return { ...from, offset: from.offset + first * sizeOf(node.inputs[0]!.shape.slice(1)) };
}

/**
 * A program that gives x^T x for each product by the codes of a weight, where x [M, D] are its factors: loops are unrolled, so
 * that each matrix of a stack has its own. Of many factors, they are the blocks of so many on the diagonal.
 *
 * @param f as for `compile`, with products by `ops.dequantize`. @param isWanted whether an input's are, by its path.
 * @returns the program, whose outputs are a list, and what each belongs to. A weight may have several; they add up.
 */
export function factorProducts(
  f: TensorFunction,
  inputs: Tree<TensorSpec>,
  isWanted: (path: string) => boolean,
  block: number,
): { readonly program: Program; readonly products: readonly FactorProduct[] } {
  const traced = withLoopsUnrolled(() => traceProgram(f, inputs));
  const graph = optimize(traced.graph);
  const made = producers(graph);
  const nodes: Node[] = [...graph.nodes];
  const outputs: Value[] = [];
  const products: FactorProduct[] = [];
  const add = (op: string, values: readonly Value[], attrs: Attrs): Value => {
    const output = newValue(inferOutputs(op, values, attrs)[0]!);
    nodes.push({ op, inputs: values, outputs: [output], attrs, scope: '' });
    return output;
  };
  for (const { op, inputs: operands } of graph.nodes) {
    if (op !== 'QuantizedMatMul') continue;
    const [x, codes] = operands as [Value, Value];
    const origin = originOf(codes, made);
    const path = origin && traced.inputPaths[graph.inputs.indexOf(origin.input)];
    if (path === null || path === undefined || !isWanted(path)) continue;
    const [rows, depth] = x.shape as [number, number];
    const part = origin!.offset / sizeOf(codes.shape);
    for (let first = 0; first < depth; first += block) {
      const size = Math.min(block, depth - first);
      const factors = size === depth ? x : add('Slice', [x], { begin: [0, first], size: [rows, size] });
      outputs.push(add('BatchMatMul', [factors, factors], { transposeA: true, transposeB: false, alpha: 1 }));
      products.push({ path, part, first, size });
    }
  }
  const whole: Graph = { inputs: graph.inputs, nodes, outputs };
  const specs = outputs.map(({ shape, dtype }) => ({ shape, dtype }));
  return {
    program: { ...traced, graph: whole, outputs: specs, outputPaths: specs.map((_, i) => String(i)) },
    products,
  };
}
