/** @file Verification of graph invariants between passes. A failure is a bug in the compiler. */
import type { Graph, Node, Value } from '../program/ir.js';
import {
  CompilerError,
  formatSpec,
  newHostArray,
  sameShape,
  sizeOf,
  type TensorSpec,
} from '../program/tensors.js';
import { inferOutputs } from '../rules/index.js';
import { isEmpty } from './empty.js';

const isSame = (a: TensorSpec, b: TensorSpec): boolean => a.dtype === b.dtype && sameShape(a.shape, b.shape);

const listed = (specs: readonly TensorSpec[]): string => specs.map(formatSpec).join(', ') || 'nothing';

function fault({ op, scope }: Node, what: string): never {
  throw new CompilerError(`A pass left ${op}${scope === '' ? '' : ` of '${scope}'`} wrong: ${what}.`);
}

function checkConstant(node: Node, value: Value): void {
  const { data } = value;
  if (data === undefined) return;
  const fits =
    data.length === sizeOf(value.shape) && data.constructor === newHostArray(value.dtype, 0).constructor;
  if (!fits) fault(node, `a constant ${formatSpec(value)} is a ${data.constructor.name} of ${data.length}`);
}

/**
 * Checks that nodes read only earlier values, and make what their rules infer.
 *
 * @throws CompilerError that names the first invalid node.
 */
export function verify(graph: Graph): void {
  const pending = new Set<Value>(graph.nodes.flatMap((node) => node.outputs));
  for (const node of graph.nodes) {
    for (const input of node.inputs) {
      if (pending.has(input)) fault(node, `it reads ${formatSpec(input)} before that is made`);
      checkConstant(node, input);
    }
    const inferred = inferOutputs(node.op, node.inputs, node.attrs, node.bodies);
    const { outputs } = node;
    if (inferred.length !== outputs.length || !inferred.every((spec, i) => isSame(spec, outputs[i]!)))
      fault(node, `from ${listed(node.inputs)}, expected ${listed(inferred)}, got ${listed(outputs)}`);
    for (const output of outputs) pending.delete(output);
  }
}

/**
 * Checks that no node reads or makes an empty tensor: lowerings don't support size 0, and would write out of bounds.
 *
 * @throws CompilerError that names the first such node.
 */
export function verifyNoEmpties(graph: Graph): void {
  for (const node of graph.nodes) {
    const empty = [...node.inputs, ...node.outputs].find(isEmpty);
    if (empty !== undefined) fault(node, `it reads or makes ${formatSpec(empty)}, which is empty`);
  }
}
