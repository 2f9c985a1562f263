/** @file Softmax and log-softmax in plainer operations, for engines and ranks that do not compute a line as a whole. */
import type { Attrs, Node, Value } from '../program/ir.js';

type Emit = (op: string, inputs: readonly Value[], attrs?: Attrs) => Value;

/** x - max, its exponentials and their sum along an axis. */
function shifted(x: Value, axis: number, emit: Emit): { centered: Value; exps: Value; sum: Value } {
  const attrs = { axes: [axis], keepDims: true };
  const centered = emit('Sub', [x, emit('Max', [x], attrs)]);
  const exps = emit('Exp', [centered]);
  return { centered, exps, sum: emit('Sum', [exps], attrs) };
}

/** By operation: the value of the node's output. */
export const SOFTMAX_FORMS: Readonly<Record<string, (node: Node, emit: Emit) => Value>> = {
  Softmax: ({ inputs: [x], attrs }, emit) => {
    const { exps, sum } = shifted(x!, attrs.axis as number, emit);
    return emit('Multiply', [exps, emit('Reciprocal', [sum])]);
  },
  LogSoftmax: ({ inputs: [x], attrs }, emit) => {
    const { centered, sum } = shifted(x!, attrs.axis as number, emit);
    return emit('Sub', [centered, emit('Log', [sum])]);
  },
};
