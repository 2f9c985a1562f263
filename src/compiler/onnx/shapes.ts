/** @file ONNX lowerings of operations that move, slice, join or fill. */
import { type Attrs, ints } from '../program/ir.js';
import { sizeOf } from '../program/tensors.js';
import type { Lowering, OnnxBuilder } from './builder.js';
import { OnnxType } from './proto.js';

export const reshape: Lowering = ({ outputs }, [x], b) => [
  b.emit('Reshape', [x!, b.ints(outputs[0]!.shape)]),
];

/**
 * Reshapes to the same shape, which depends on the last input by a zero: ONNX Runtime neither copies the values, nor
 * finds common subexpressions across, nor runs later nodes before that input exists.
 */
export const barrier: Lowering = ({ inputs, outputs }, names, b) => {
  const arrived = b.emit('Reshape', [names.at(-1)!, b.ints([-1])]);
  const first = b.emit('Gather', [arrived, b.ints([0])]);
  const isFloat = inputs.at(-1)!.dtype === 'float32';
  const number = isFloat ? first : b.cast(first, OnnxType.int32);
  const zero = b.cast(b.emit('Less', [number, number]), OnnxType.int64);
  // A scalar's shape is an empty list.
  const nothing = b.emit('Slice', [zero, b.ints([0]), b.ints([0])]);
  return outputs.map(({ shape }, i) => {
    const dims = shape.length === 0 ? nothing : b.emit('Add', [b.ints(shape), zero]);
    return b.emit('Reshape', [names[i]!, dims]);
  });
};

export const fill =
  (value: (attrs: Attrs) => number): Lowering =>
  ({ outputs: [out], attrs }, _, b) => [
    b.emit('Expand', [b.scalar(value(attrs), out!.dtype), b.ints(out!.shape)]),
  ];

/** ONNX's Slice, with explicit starts, ends and steps on every axis. */
function sliceFrom(
  b: OnnxBuilder,
  x: string,
  begin: readonly number[],
  end: readonly number[],
  steps?: readonly number[],
): string {
  const axes = begin.map((_, i) => i);
  const inputs = [x, b.ints(begin), b.ints(end), b.ints(axes)];
  return b.emit('Slice', steps ? [...inputs, b.ints(steps)] : inputs);
}

export const reverse: Lowering = ({ attrs, inputs: [x] }, [name], b) => {
  const axes = ints(attrs.axes);
  const starts = axes.map((axis) => x!.shape[axis]! - 1);
  const ends = axes.map((axis) => -x!.shape[axis]! - 1);
  return [b.emit('Slice', [name!, b.ints(starts), b.ints(ends), b.ints(axes), b.ints(axes.map(() => -1))])];
};

/** ONNX pads by [all begins, all ends]. */
export const pad: Lowering = ({ attrs, inputs: [x] }, [name], b) => {
  const pairs = ints(attrs.paddings);
  const begins = pairs.filter((_, i) => i % 2 === 0);
  const ends = pairs.filter((_, i) => i % 2 === 1);
  return [b.emit('Pad', [name!, b.ints([...begins, ...ends]), b.scalar(attrs.value as number, x!.dtype)])];
};

/** Lowers ranges that are too long to fold. */
export const range: Lowering = ({ attrs, outputs: [out] }, _, b) => {
  const { start, step } = attrs as { start: number; step: number };
  const counter = b.emit('Range', [
    b.scalar(0, 'int32'),
    b.scalar(sizeOf(out!.shape), 'int32'),
    b.scalar(1, 'int32'),
  ]);
  const steps = out!.dtype === 'int32' ? counter : b.cast(counter, OnnxType[out!.dtype]);
  return [b.emit('Add', [b.emit('Mul', [steps, b.scalar(step, out!.dtype)]), b.scalar(start, out!.dtype)])];
};

export const strided: Lowering = ({ attrs, outputs: [out] }, [x], b) => {
  // A negative step down to element 0 ends before it, which ONNX writes as a very negative end.
  const ends = ints(attrs.end).map((end, i) => (ints(attrs.strides)[i]! < 0 && end < 0 ? -(2 ** 31) : end));
  return [
    b.emit('Reshape', [sliceFrom(b, x!, ints(attrs.begin), ends, ints(attrs.strides)), b.ints(out!.shape)]),
  ];
};

export const transpose: Lowering = ({ attrs }, [x], b) => [
  b.emit('Transpose', [x!], { attrs: { perm: ints(attrs.perm) } }),
];

export const broadcastTo: Lowering = ({ attrs }, [x], b) => [
  b.emit('Expand', [x!, b.ints(ints(attrs.shape))]),
];

export const tile: Lowering = ({ attrs }, [x], b) => [b.emit('Tile', [x!, b.ints(ints(attrs.reps))])];

export const slice: Lowering = ({ attrs }, [x], b) => {
  const begin = ints(attrs.begin);
  const end = begin.map((start, i) => start + ints(attrs.size)[i]!);
  return [sliceFrom(b, x!, begin, end)];
};

export const split: Lowering = ({ attrs }, [x], b) => {
  const sizes = ints(attrs.sizes);
  return b.emitAll('Split', [x!, b.ints(sizes)], {
    attrs: { axis: attrs.axis as number },
    outputs: sizes.length,
  });
};

export const concat: Lowering = ({ attrs }, inputs, b) => [
  b.emit('Concat', inputs, { attrs: { axis: attrs.axis as number } }),
];

export const pack: Lowering = ({ attrs }, inputs, b) => {
  const expanded = inputs.map((x) => b.emit('Unsqueeze', [x, b.ints([attrs.axis as number])]));
  return [b.emit('Concat', expanded, { attrs: { axis: attrs.axis as number } })];
};

export const unpack: Lowering = ({ attrs, outputs }, [x], b) => {
  const axis = attrs.axis as number;
  const parts = b.emitAll('Split', [x!, b.ints(outputs.map(() => 1))], {
    attrs: { axis },
    outputs: outputs.length,
  });
  return parts.map((part) => b.emit('Squeeze', [part, b.ints([axis])]));
};
