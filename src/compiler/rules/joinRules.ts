/** @file Operations that join, pad or create tensors. */

import { concat, fill, pack, pad, range } from '../onnx/shapes.js';
import { type Attrs, ints } from '../program/ir.js';
import {
  type DType,
  hostArrayFrom,
  newHostArray,
  type Shape,
  sameShape,
  sizeOf,
} from '../program/tensors.js';
import { MOVE } from './deviceForm.js';
import { alongAxes, elementwise, lettered } from './factors.js';
import {
  ANY,
  expects,
  expectsAxes,
  expectsOneDtype,
  expectsShape,
  type OperationTable,
  type PlainOperation,
  resolveAxis,
  spec,
} from './operation.js';

/** A number as a tensor element, truncated for integer dtypes. */
const elementOf = (value: unknown, dtype: DType): number =>
  dtype === 'float32' ? Number(value) : hostArrayFrom(dtype, [Number(value)])[0]!;

/** start, start + step, … below stop, as in tf.range. */
function rangeValues({ start, stop, step }: Attrs): number[] {
  const [from, by] = [start as number, step as number];
  const count = Math.max(0, Math.ceil(((stop as number) - from) / by));
  return Array.from({ length: count }, (_, i) => from + i * by);
}

const filled = (value: number): PlainOperation => ({
  inputs: ['x'],
  infer: ([x]) => [spec(x!.shape, x!.dtype)],
  fold: ([x]) => ({ ...x!, data: newHostArray(x!.dtype, sizeOf(x!.shape)).fill(value) }),
  factors: elementwise,
  onnx: fill(() => value),
  device: { kind: 'fill', value: () => value },
});

export const joinRules: OperationTable = {
  Concat: {
    inputs: 'list',
    attrs: (raw, [x]) => ({ axis: resolveAxis(raw.axis, x!.shape.length) }),
    infer: (inputs, attrs) => {
      const first = inputs[0]!;
      const axis = attrs.axis as number;
      expectsOneDtype(inputs);
      expectsAxes([axis], first.shape.length);
      const alike = (shape: Shape): boolean =>
        shape.length === first.shape.length && shape.every((dim, i) => i === axis || dim === first.shape[i]);
      expects(
        inputs.every(({ shape }) => alike(shape)),
        `tensors that differ along axis ${axis} alone`,
        inputs,
      );
      const total = inputs.reduce((sum, x) => sum + x.shape[axis]!, 0);
      return [
        spec(
          first.shape.map((dim, i) => (i === axis ? total : dim)),
          first.dtype,
        ),
      ];
    },
    factors: alongAxes(({ axis }) => [axis as number]),
    onnx: concat,
    device: MOVE,
  },
  Pack: {
    inputs: 'list',
    call: 'stack',
    attrs: (raw, [x]) => ({ axis: resolveAxis(raw.axis, x!.shape.length + 1) }),
    infer: (inputs, attrs) => {
      const shape = [...inputs[0]!.shape];
      expectsOneDtype(inputs);
      expects(
        inputs.every((input) => sameShape(input.shape, shape)),
        'tensors of one shape',
        inputs,
      );
      expectsAxes([attrs.axis as number], shape.length + 1);
      shape.splice(attrs.axis as number, 0, inputs.length);
      return [spec(shape, inputs[0]!.dtype)];
    },
    factors: (inputs, [out], attrs) => {
      const names = out!.shape.map((_, axis) => (axis === attrs.axis ? '.' : `${axis}`));
      const rest = names.filter((_, axis) => axis !== attrs.axis);
      return lettered(
        inputs.map(() => rest),
        [names],
        { inputs, outputs: [out!] },
      );
    },
    onnx: pack,
    device: MOVE,
  },
  PadV2: {
    inputs: ['x'],
    call: 'pad',
    ofEmpty: (_, attrs) => attrs.value as number,
    attrs: (raw, [x]) => ({ paddings: raw.paddings.flat(), value: elementOf(raw.constantValue, x!.dtype) }),
    infer: ([x], { paddings: pads }) => {
      expectsShape(pads);
      expects(
        pads.length === 2 * x!.shape.length,
        `paddings before and behind each of ${x!.shape.length} axes`,
        pads,
      );
      return [
        spec(
          x!.shape.map((dim, i) => pads[2 * i]! + dim + pads[2 * i + 1]!),
          x!.dtype,
        ),
      ];
    },
    factors: alongAxes(({ paddings }, rank) =>
      Array.from({ length: rank }, (_, axis) => axis).filter((axis) =>
        ints(paddings)
          .slice(2 * axis, 2 * axis + 2)
          .some((count) => count > 0),
      ),
    ),
    onnx: pad,
    device: MOVE,
  },
  Fill: {
    inputs: [],
    attrs: (raw) => {
      const dtype = raw.dtype ?? (typeof raw.value === 'string' ? 'string' : 'float32');
      return { shape: [...raw.shape], value: elementOf(raw.value, dtype), dtype };
    },
    infer: (_, { shape, dtype }) => {
      expects(ANY.includes(dtype as DType), 'dtype float32, int32 or bool', dtype);
      expectsShape(shape);
      return [spec(shape, dtype as DType)];
    },
    factors: (_, outputs, attrs) => ({
      ...elementwise([], outputs, attrs)!,
      localAttrs: (shape) => ({ shape }),
    }),
    onnx: fill(({ value }) => value as number),
    device: { kind: 'fill', value: ({ value }) => Number(value) },
  },
  ZerosLike: filled(0),
  OnesLike: filled(1),
  Range: {
    inputs: [],
    // Like tfjs, a descending range steps by -1 unless a step is given.
    attrs: ({ start, stop, step, dtype }) => ({
      start,
      stop,
      step: stop < start && step === 1 ? -1 : step,
      dtype,
    }),
    infer: (_, attrs) => {
      const { start, step, dtype } = attrs;
      expects(dtype === 'float32' || dtype === 'int32', 'dtype float32 or int32', dtype);
      const counts = dtype === 'float32' || (Number.isInteger(start) && Number.isInteger(step));
      expects(
        counts,
        'a start and a step that are integers, as dtype int32 has them',
        `${start} and ${step}`,
      );
      const values = rangeValues(attrs);
      expectsShape([values.length]);
      return [spec([values.length], dtype)];
    },
    fold: (_, attrs) => {
      const values = rangeValues(attrs);
      const dtype = attrs.dtype as DType;
      return { shape: [values.length], dtype, data: hostArrayFrom(dtype, values) };
    },
    onnx: range,
    device: { kind: 'map', counts: 'elements' },
  },
};
