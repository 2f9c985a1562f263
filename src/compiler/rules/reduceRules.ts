/** @file Reductions, softmax, sorting and accumulation along an axis. */
import { cumsum, softmax, topK } from '../onnx/alongAxis.js';
import { accumulate, argReduce, extremum, mean, reduceBool } from '../onnx/arithmetic.js';
import type { Lowering } from '../onnx/builder.js';
import type { DType, Shape } from '../program/tensors.js';
import { REDUCTION } from './deviceForm.js';
import { alongAxes, lettered, reducing } from './factors.js';
import {
  BOOL,
  expects,
  expectsAxes,
  expectsDtypes,
  type Facts,
  FLOAT,
  isWithin,
  NUMBERS,
  type OperationTable,
  type PlainOperation,
  perInputElement,
  resolveAxes,
  resolveAxis,
  spec,
} from './operation.js';

function reducedShape(shape: Shape, axes: readonly number[], keepDims: boolean): number[] {
  return keepDims
    ? shape.map((dim, i) => (axes.includes(i) ? 1 : dim))
    : shape.filter((_, i) => !axes.includes(i));
}

/** A reduction that engines which generate code expand. */
const summary = (
  ofEmpty: NonNullable<Facts['ofEmpty']>,
  onnx: Lowering,
  takes = NUMBERS,
  gives?: DType,
): PlainOperation => ({
  inputs: ['x'],
  ofEmpty,
  attrs: (raw, [x]) => ({
    axes: resolveAxes(raw.axis ?? raw.reductionIndices, x!.shape.length),
    keepDims: Boolean(raw.keepDims),
  }),
  infer: ([x], attrs) => {
    const axes = attrs.axes as readonly number[];
    expectsDtypes([x!], takes);
    expectsAxes(axes, x!.shape.length);
    return [spec(reducedShape(x!.shape, axes, attrs.keepDims as boolean), gives ?? x!.dtype)];
  },
  flops: perInputElement(),
  onnx,
});

const reduction = (...args: Parameters<typeof summary>): PlainOperation => ({
  ...summary(...args),
  device: REDUCTION,
});

const argReduction = (op: string): PlainOperation => ({
  inputs: ['x'],
  attrs: (raw, [x]) => {
    const axes = [raw.axis].flat();
    expects(axes.length === 1, 'one axis', axes);
    return { axis: resolveAxis(axes[0], x!.shape.length) };
  },
  infer: ([x], { axis }) => {
    expectsDtypes([x!], NUMBERS);
    expectsAxes([axis as number], x!.shape.length);
    expects(x!.shape[axis as number] !== 0, `elements along axis ${axis}`, x);
    return [spec(reducedShape(x!.shape, [axis as number], false), 'int32')];
  },
  flops: perInputElement(),
  factors: ([x], [out], { axis }) => {
    const names = x!.shape.map((_, i) => (i === axis ? '.' : `${i}`));
    const rest = names.filter((_, i) => i !== axis);
    return lettered([names], [rest], { inputs: [x!], outputs: [out!] });
  },
  onnx: argReduce(op),
});

const alongAxis = (
  input: string,
  axisName: string,
  takes: readonly DType[],
  flops: number,
  onnx: Lowering,
): PlainOperation => ({
  inputs: [input],
  attrs: (raw, [x]) => ({ axis: resolveAxis(raw[axisName], x!.shape.length) }),
  infer: ([x], attrs) => {
    expectsDtypes([x!], takes);
    expectsAxes([attrs.axis as number], x!.shape.length);
    return [spec(x!.shape, x!.dtype)];
  },
  flops: perInputElement(flops),
  factors: alongAxes(({ axis }) => [axis as number]),
  onnx,
});

export const reduceRules: OperationTable = {
  Sum: { ...reduction(() => 0, accumulate('ReduceSum')), factors: reducing('sum') },
  Mean: {
    ...summary(() => Number.NaN, mean, NUMBERS, 'float32'),
    factors: reducing('mean'),
    takes: ([x]) => [x!.dtype === 'bool' ? 'float32' : x!.dtype],
  },
  Max: {
    ...reduction(
      (dtype) => (dtype === 'int32' ? -(2 ** 31) : Number.NEGATIVE_INFINITY),
      extremum('ReduceMax'),
    ),
    factors: reducing('max'),
  },
  Min: {
    ...reduction(
      (dtype) => (dtype === 'int32' ? 2 ** 31 - 1 : Number.POSITIVE_INFINITY),
      extremum('ReduceMin'),
    ),
    factors: reducing('min'),
  },
  Prod: reduction(() => 1, accumulate('ReduceProd')),
  All: reduction(() => 1, reduceBool('ReduceMin'), BOOL),
  Any: reduction(() => 0, reduceBool('ReduceMax'), BOOL),
  ArgMax: argReduction('ArgMax'),
  ArgMin: argReduction('ArgMin'),
  Softmax: alongAxis('logits', 'dim', FLOAT, 5, softmax('Softmax')),
  LogSoftmax: alongAxis('logits', 'axis', FLOAT, 5, softmax('LogSoftmax')),
  Cumsum: {
    ...alongAxis('x', 'axis', NUMBERS, 1, cumsum),
    device: { kind: 'call', name: 'cumsum' },
    attrs: (raw, [x]) => ({
      axis: resolveAxis(raw.axis, x!.shape.length),
      exclusive: Boolean(raw.exclusive),
      reverse: Boolean(raw.reverse),
    }),
    takes: ([x]) => [x!.dtype === 'bool' ? 'int32' : x!.dtype],
  },
  TopK: {
    inputs: ['x'],
    attrs: (raw) => ({ k: raw.k, sorted: Boolean(raw.sorted) }),
    infer: ([x], attrs) => {
      expectsDtypes([x!], NUMBERS);
      const most = x!.shape.at(-1);
      expects(most !== undefined && isWithin(attrs.k, 0, most), `k from 0 to ${most ?? 0}`, attrs.k);
      const shape = [...x!.shape.slice(0, -1), attrs.k];
      return [spec(shape, x!.dtype), spec(shape, 'int32')];
    },
    flops: perInputElement(),
    factors: (inputs, outputs) => alongAxes((_, rank) => [rank - 1])(inputs, outputs, {}),
    onnx: topK,
    device: { kind: 'call', name: 'topK' },
  },
};
