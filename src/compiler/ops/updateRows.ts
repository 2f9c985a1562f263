/** @file Replacement of a table's rows, by which an update writes those that have a gradient alone. */
import type { Lowering } from '../onnx/builder.js';
import { OnnxType } from '../onnx/proto.js';
import { CompilerError, formatSpec, type TensorSpec } from '../program/tensors.js';
import { defineOperation } from '../rules/index.js';
import { spec } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { callComposite } from './composite.js';

function checkShapes([x, rows, indices]: readonly TensorSpec[]): void {
  const isTable = x!.shape.length === 2 && rows!.shape.length === 2 && x!.shape[1] === rows!.shape[1];
  const isOneEach = indices!.shape.length === 1 && indices!.shape[0] === rows!.shape[0];
  if (isTable && isOneEach && x!.dtype === rows!.dtype && indices!.dtype === 'int32') return;
  throw new CompilerError(
    'updateRows: expected a table [size, depth], rows [n, depth] of its dtype and int32 indices [n], ' +
      `got ${formatSpec(x!)}, ${formatSpec(rows!)} and ${formatSpec(indices!)}.`,
  );
}

/** ScatterElements runs in order, where ScatterND may not. */
const scatter: Lowering = ({ inputs: [, rows] }, [x, values, ids], b) => {
  const shape = rows!.shape;
  const column = b.emit('Reshape', [b.cast(ids!, OnnxType.int64), b.ints([shape[0]!, 1])]);
  const indices = b.emit('Expand', [column, b.ints(shape)]);
  return [b.emit('ScatterElements', [x!, indices, values!], { attrs: { axis: 0 } })];
};

defineOperation('UpdateRows', {
  inputs: ['x', 'rows', 'indices'],
  indices: {
    operand: 2,
    address: ([x]) => ({ limit: x!.shape[0]!, what: `${x!.shape[0]} rows of ${formatSpec(x!)}` }),
  },
  infer: (inputs) => {
    checkShapes(inputs);
    return [spec(inputs[0]!.shape, inputs[0]!.dtype)];
  },
  onnx: scatter,
  device: {
    kind: 'call',
    name: 'updateRows',
    contiguous: [0, 1, 2],
    isInPlace: true,
    keeps: ({ inputs: [x] }) => x!.dtype === 'float32',
  },
  decompose: ([x, rows, indices]) => [
    tf.tensorScatterUpdate(x!, tf.expandDims(indices!, 1), rows!) as tf.Tensor,
  ],
});

/**
 * Replaces rows of a table; of several for one row, the last counts. Where the result has the table's memory, as a training
 * state has, only these rows are written.
 *
 * @param x [size, depth].
 * @param rows [n, depth].
 * @param indices int32 [n], each in [0, size).
 */
export function updateRows(x: tf.Tensor, rows: tf.Tensor, indices: tf.Tensor): tf.Tensor {
  checkShapes([x, rows, indices] as unknown as TensorSpec[]);
  if (rows.size === 0) return x;
  return callComposite('UpdateRows', [x, rows, indices], {}, 2);
}
