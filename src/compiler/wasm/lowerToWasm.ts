/** @file Lowering of elementwise programs to one WebAssembly SIMD loop, which reads and writes every array once. */
import type { Graph, Node, Value } from '../ir.js';
import { type Shape, sameShape, sizeOf } from '../tensors.js';
import { KernelWriter, Simd } from './module.js';

/** Elements per block: a few arrays of this size fit the second-level cache. */
export const BLOCK = 1 << 14;
const BLOCK_BYTES = BLOCK * 4;

/** Emits an operation on values; returns the value of its result. */
type Emit = (k: KernelWriter, ...operands: readonly number[]) => number;

const instruction =
  (code: number): Emit =>
  (k, ...operands) =>
    k.apply(code, ...operands);

/** Booleans are masks: all bits of a lane are set or clear. */
const EMITTERS: Readonly<Record<string, Emit>> = {
  Add: instruction(Simd.add),
  Sub: instruction(Simd.sub),
  Multiply: instruction(Simd.mul),
  RealDiv: instruction(Simd.div),
  Maximum: instruction(Simd.max),
  Minimum: instruction(Simd.min),
  Sqrt: instruction(Simd.sqrt),
  Neg: instruction(Simd.neg),
  Abs: instruction(Simd.abs),
  Square: (k, x) => k.apply(Simd.mul, x!, x!),
  SquaredDifference: (k, a, b) => {
    const difference = k.apply(Simd.sub, a!, b!);
    return k.apply(Simd.mul, difference, difference);
  },
  Reciprocal: (k, x) => k.apply(Simd.div, k.constant(1), x!),
  Rsqrt: (k, x) => k.apply(Simd.div, k.constant(1), k.apply(Simd.sqrt, x!)),
  AddN: (k, ...terms) => terms.reduce((sum, term) => k.apply(Simd.add, sum, term)),
  Greater: instruction(Simd.greater),
  GreaterEqual: instruction(Simd.greaterEqual),
  Less: instruction(Simd.less),
  LessEqual: instruction(Simd.lessEqual),
  Equal: instruction(Simd.equal),
  NotEqual: instruction(Simd.notEqual),
  LogicalAnd: instruction(Simd.and),
  LogicalOr: instruction(Simd.or),
  LogicalNot: instruction(Simd.not),
  Select: (k, condition, t, e) => k.apply(Simd.bitselect, t!, e!, condition!),
};

/** Operations that accept booleans; others would misread their masks. */
const TAKES_MASKS = new Set(['LogicalAnd', 'LogicalOr', 'LogicalNot', 'Select']);

/** Whether a value has one element, which the loop reads once. */
export const isScalar = (value: Value): boolean => sizeOf(value.shape) === 1;

/** Whether the loop over arrays of a shape supports an operation: only on such arrays and scalars. */
export function supports({ op, inputs, outputs, attrs }: Node, shape: Shape): boolean {
  if (op === 'Fill') return attrs.dtype === 'float32';
  if (!(op in EMITTERS)) return false;
  if (!TAKES_MASKS.has(op) && inputs.some((input) => input.dtype !== 'float32')) return false;
  const masks = [...inputs, ...outputs].every((value) => value.dtype !== 'int32');
  return masks && [...inputs, ...outputs].every((value) => isScalar(value) || sameShape(value.shape, shape));
}

/** Position of an input in the module's memory: an array's block, or a scalar's four bytes. */
export interface Place {
  readonly address: number;
  readonly isScalar: boolean;
  /** Whether it is a boolean, which the loop needs as a mask. */
  readonly isMask: boolean;
}

/** A module with the positions of its inputs and outputs. */
export interface LoweredKernel {
  readonly code: Uint8Array<ArrayBuffer>;
  readonly inputs: readonly Place[];
  readonly outputs: readonly Place[];
}

/** Lowers an elementwise program from `cutLoops`. */
export function lowerToWasm(graph: Graph): LoweredKernel {
  const kernel = new KernelWriter();
  let end = 0;
  const place = (value: Value): Place => {
    const at = { address: end, isScalar: isScalar(value), isMask: value.dtype === 'bool' };
    // Multiples of sixteen bytes keep every array vector-aligned.
    end += at.isScalar ? 16 : BLOCK_BYTES;
    return at;
  };
  const locals = new Map<Value, number>();
  const inputs = graph.inputs.map((input) => {
    const at = place(input);
    locals.set(input, at.isScalar ? kernel.splat(at.address) : kernel.load(at.address));
    return at;
  });
  const local = (value: Value): number => {
    const known = locals.get(value);
    if (known !== undefined) return known;
    const made = kernel.constant(value.data![0]!);
    locals.set(value, made);
    return made;
  };
  for (const node of graph.nodes) {
    const operands = node.inputs.map(local);
    const result =
      node.op === 'Fill'
        ? kernel.constant(node.attrs.value as number)
        : EMITTERS[node.op]!(kernel, ...operands);
    locals.set(node.outputs[0]!, result);
  }
  const outputs = graph.outputs.map((output) => {
    const at = place(output);
    kernel.store(at.address, local(output));
    return at;
  });
  return { code: kernel.finish(end), inputs, outputs };
}
