/** @file Arrays of a call that share memory: which outputs may lie on which inputs. */
import type { Graph, Node, Value } from './graph.js';
import { elementwiseRules } from './rules/elementwise.js';
import { type BoundArray, CompilerError, sizeOf } from './types.js';

/** An array of a call, and what it is bound to. */
export interface Bound {
  readonly path: string;
  readonly value: Value;
  readonly array: BoundArray;
}

const endOf = ({ array }: Bound): number => array.byteOffset + array.byteLength;

const overlap = (a: Bound, b: Bound): boolean =>
  a.array.byteOffset < endOf(b) && b.array.byteOffset < endOf(a);

/** Arrays by their buffers, in the order in which they lie there. */
function byBuffer(bounds: readonly Bound[]): Map<ArrayBufferLike, Bound[]> {
  const groups = new Map<ArrayBufferLike, Bound[]>();
  for (const bound of bounds) {
    if (bound.array.byteLength === 0) continue;
    const group = groups.get(bound.array.buffer);
    if (group) group.push(bound);
    else groups.set(bound.array.buffer, [bound]);
  }
  for (const group of groups.values()) group.sort((a, b) => a.array.byteOffset - b.array.byteOffset);
  return groups;
}

/** @throws CompilerError where two outputs are bound to the same memory. */
export function checkOutputsApart(name: string, outputs: readonly Bound[]): void {
  for (const group of byBuffer(outputs).values()) {
    group.slice(1).forEach((output, i) => {
      if (overlap(group[i]!, output))
        throw new CompilerError(
          `${name}: outputs '${group[i]!.path}' and '${output.path}' are bound to the same memory; bind each to memory of its own.`,
        );
    });
  }
}

/** Operations whose result is their input in another shape. */
const SAME_ORDER = new Set(['Reshape', 'ExpandDims', 'Identity']);
/** Operations that read all of their input before anyone has their result. */
const REDUCTIONS = new Set(['Sum', 'Mean', 'Max', 'Min', 'Prod', 'All', 'Any']);

/** An operation that reads `value`, or what has its memory, otherwise than element by element; undefined where none does. */
function otherReader(value: Value, readers: ReadonlyMap<Value, Node[]>): Node | undefined {
  for (const node of readers.get(value) ?? []) {
    const [out] = node.outputs;
    if (SAME_ORDER.has(node.op)) {
      const other = otherReader(out!, readers);
      if (other) return other;
      continue;
    }
    const isElementwise = node.op in elementwiseRules && sizeOf(out!.shape) === sizeOf(value.shape);
    const isReplaced = node.op === 'UpdateSlice' && node.inputs[0] === value;
    if (!isElementwise && !isReplaced && !REDUCTIONS.has(node.op)) return node;
  }
  return undefined;
}

/**
 * An output may lie on an input whose elements are read one for one: each is then read before it is written.
 *
 * @throws CompilerError where an output lies on a part of an input, or on one that is read in another order.
 */
export function checkOutputsOnInputs(
  name: string,
  graph: Graph,
  inputs: readonly Bound[],
  outputs: readonly Bound[],
): void {
  const groups = byBuffer(inputs);
  let readers: Map<Value, Node[]> | undefined;
  for (const output of outputs) {
    for (const input of groups.get(output.array.buffer) ?? []) {
      if (!overlap(input, output)) continue;
      const told = `${name}: output '${output.path}' is bound to memory of input '${input.path}'`;
      const isSame = input.array.byteOffset === output.array.byteOffset && endOf(input) === endOf(output);
      if (!isSame)
        throw new CompilerError(`${told}, and they are not the same elements; bind it to memory of its own.`);
      readers ??= readersOf(graph);
      const other = otherReader(input.value, readers);
      if (other !== undefined)
        throw new CompilerError(
          `${told}, which ${other.op}${other.scope === '' ? '' : ` (in layer '${other.scope}')`} does not read element by element; bind it to memory of its own.`,
        );
    }
  }
}

function readersOf({ nodes }: Graph): Map<Value, Node[]> {
  const readers = new Map<Value, Node[]>();
  for (const node of nodes)
    for (const input of new Set(node.inputs)) readers.set(input, [...(readers.get(input) ?? []), node]);
  return readers;
}
