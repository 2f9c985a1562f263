/** @file Operations that address elements by computed indices. */
import { gather, oneHot, segmentSum } from '../onnx/indexingLowerings.js';
import { type DType, formatSpec, sizeOf, type TensorSpec } from '../program/tensors.js';
import { lettered } from './factors.js';
import {
  ANY,
  expects,
  expectsAxes,
  expectsDtypes,
  isWithin,
  NUMBERS,
  type OperationTable,
  perInputElement,
  resolveAxis,
  spec,
} from './operation.js';

const expectsIndices = (indices: TensorSpec): void =>
  expects(indices.dtype === 'int32', 'indices of dtype int32', indices);

export const indexingRules: OperationTable = {
  /** Rows of `x` along `axis`, selected by `indices`. */
  GatherV2: {
    inputs: ['x', 'indices'],
    call: 'gather',
    indices: {
      operand: 1,
      address: ([x], attrs) => {
        const axis = attrs.axis as number;
        const limit = x!.shape[axis]!;
        return {
          limit,
          what: `${limit} rows of ${formatSpec(x!)}${axis === 0 ? '' : ` along axis ${axis}`}`,
        };
      },
    },
    attrs: (raw, [x]) => {
      const fix = 'batchDims 0 (gather from a reshape of the batch into the axis, by indices plus offsets)';
      expects((raw.batchDims ?? 0) === 0, fix, raw.batchDims);
      return { axis: resolveAxis(raw.axis ?? 0, x!.shape.length) };
    },
    infer: ([x, indices], attrs) => {
      const axis = attrs.axis as number;
      expectsIndices(indices!);
      expectsAxes([axis], x!.shape.length);
      const isThere = x!.shape[axis] !== 0 || indices!.shape.includes(0);
      expects(isThere, `elements along axis ${axis}, which indices choose from`, [x, indices]);
      return [spec([...x!.shape.slice(0, axis), ...indices!.shape, ...x!.shape.slice(axis + 1)], x!.dtype)];
    },
    factors: (inputs, outputs, attrs) => {
      const [x, indices] = inputs as [TensorSpec, TensorSpec];
      const rows = x.shape.map((_, axis) => (axis === attrs.axis ? 'rows' : `x${axis}`));
      const places = indices.shape.map((_, axis) => `i${axis}`);
      const out = rows.flatMap((name) => (name === 'rows' ? places : [name]));
      return lettered([rows, places], [out], { inputs, outputs }, { onParts: 'rows' });
    },
    onnx: gather,
    device: { kind: 'gather' },
  },
  /** out[i] = sum of the rows x[r] with segmentIds[r] = i; deterministic for any number of threads. */
  UnsortedSegmentSum: {
    inputs: ['x', 'segmentIds'],
    indices: {
      operand: 1,
      address: (_, attrs) => ({ limit: attrs.numSegments as number, what: `${attrs.numSegments} segments` }),
    },
    ofEmpty: () => 0,
    // Exact: a row that is not finite reaches no other segment. tfjs's multiplies by zeros.
    attrs: (raw) => ({ numSegments: raw.numSegments, ...(raw.isExact === true && { isExact: true }) }),
    infer: ([x, ids], attrs) => {
      expectsDtypes([x!], NUMBERS);
      expectsIndices(ids!);
      const isOneEach = ids!.shape.length === 1 && ids!.shape[0] === x!.shape[0];
      expects(isOneEach, 'one segment id for each row', [x, ids]);
      expects(isWithin(attrs.numSegments, 0), 'a number of segments, 0 or more', attrs.numSegments);
      return [spec([attrs.numSegments, ...x!.shape.slice(1)], x!.dtype)];
    },
    flops: perInputElement(),
    factors: (inputs, outputs) => {
      const rest = inputs[0]!.shape.slice(1).map((_, axis) => `${axis}`);
      return lettered(
        [['r', ...rest], 'r'],
        [['s', ...rest]],
        { inputs, outputs },
        {
          onParts: 's',
          localAttrs: ([numSegments]) => ({ numSegments: numSegments! }),
        },
      );
    },
    onnx: segmentSum,
    device: { kind: 'call', name: 'segmentSum', contiguous: [0, 1], narrowOperands: 1 },
  },
  OneHot: {
    inputs: ['indices'],
    attrs: (raw) => ({
      depth: raw.depth,
      onValue: raw.onValue ?? 1,
      offValue: raw.offValue ?? 0,
      dtype: raw.dtype ?? 'float32',
    }),
    infer: ([indices], attrs) => {
      expectsIndices(indices!);
      expects(isWithin(attrs.depth, 0), 'a depth of 0 or more', attrs.depth);
      expects(ANY.includes(attrs.dtype as DType), 'dtype float32, int32 or bool', attrs.dtype);
      return [spec([...indices!.shape, attrs.depth], attrs.dtype as DType)];
    },
    flops: (_, [out]) => sizeOf(out!.shape),
    factors: (inputs, outputs) => {
      const places = inputs[0]!.shape.map((_, axis) => `${axis}`);
      return lettered(
        [places],
        [[...places, 'c']],
        { inputs, outputs },
        {
          onParts: 'c',
          localAttrs: (shape) => ({ depth: shape.at(-1)! }),
        },
      );
    },
    onnx: oneHot,
    device: { kind: 'map', counts: 'columns' },
  },
};
