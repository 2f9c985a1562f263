/** @file Common-subexpression elimination. */
import { type Attrs, type Graph, rewrite, type Value } from '../program/ir.js';
import { ruleOf } from '../rules/index.js';

/** Key of a constant; long ones are compared by hash, then element by element. */
function constantKey(value: Value): string {
  const bytes = new Uint8Array(value.data!.buffer, value.data!.byteOffset, value.data!.byteLength);
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  return `${value.dtype}[${value.shape.join(',')}]${bytes.length}:${hash}`;
}

function sameBytes(a: Value, b: Value): boolean {
  const view = (value: Value) =>
    Buffer.from(value.data!.buffer, value.data!.byteOffset, value.data!.byteLength);
  return view(a).equals(view(b));
}

/** Attributes as JSON that keeps apart numbers that plain JSON merges. */
export const attrsKey = (attrs: Attrs): string =>
  JSON.stringify(attrs, (_, value) =>
    typeof value === 'number' && (!Number.isFinite(value) || Object.is(value, -0))
      ? `number ${1 / value} ${value}`
      : value,
  );

/** Finds the first constant equal to a given one. */
class ConstantPool {
  private readonly byKey = new Map<string, Value[]>();
  private readonly known = new Map<Value, Value>();

  canonical(value: Value): Value {
    const known = this.known.get(value);
    if (known) return known;
    const key = constantKey(value);
    const candidates = this.byKey.get(key) ?? [];
    this.byKey.set(key, candidates);
    let result = candidates.find((candidate) => sameBytes(candidate, value));
    if (!result) candidates.push((result = value));
    this.known.set(value, result);
    return result;
  }
}

/**
 * Merges equal constants and equal nodes. All operations are pure, so nodes with equal inputs and attributes are equal.
 */
export function eliminateCommonSubexpressions(graph: Graph): Graph {
  const constants = new ConstantPool();
  const seen = new Map<string, readonly Value[]>();
  return rewrite(graph, (node, emit) => {
    if (node.bodies !== undefined) {
      emit(node);
      return node.outputs;
    }
    const inputs = node.inputs.map((input) => (input.data ? constants.canonical(input) : input));
    const ids = inputs.map((input) => input.id);
    if (ruleOf(node.op).commutes) ids.sort((a, b) => a - b);
    const key = `${node.op}(${ids.join(',')})${attrsKey(node.attrs)}`;
    const earlier = seen.get(key);
    if (earlier) return earlier;
    seen.set(key, node.outputs);
    emit({ ...node, inputs });
    return node.outputs;
  });
}
