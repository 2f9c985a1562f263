/** @file Rules of operations that move, repeat or cut data without computing. */
import * as tf from '../tfjs.js';
import {
  CompilerError,
  type DType,
  type HostTensor,
  hostArrayFrom,
  newHostArray,
  type Shape,
  sizeOf,
} from '../types.js';
import { broadcastStrides, forEachElement } from './elementwise.js';
import { type OpRule, type RuleTable, resolveAxis, spec } from './rule.js';

const ints = (value: unknown): readonly number[] => value as readonly number[];

function rowMajorStrides(shape: Shape): number[] {
  const strides = new Array<number>(shape.length).fill(1);
  for (let i = shape.length - 2; i >= 0; i--) strides[i] = strides[i + 1]! * shape[i + 1]!;
  return strides;
}

function foldStrided(x: HostTensor, shape: Shape, strides: readonly number[], base = 0): HostTensor {
  const data = newHostArray(x.dtype, sizeOf(shape));
  forEachElement(shape, [strides], (index, [offset]) => {
    data[index] = x.data[base + offset!]!;
  });
  return { shape, dtype: x.dtype, data };
}

/** A rule for operations that give their input another shape and keep the order of elements. */
const reshaping = (input: string, shapeOf: (shape: Shape, raw: any) => Shape): OpRule => ({
  inputs: [input],
  attrs: (raw, [x]) => ({ shape: [...shapeOf(x!.shape, raw)] }),
  infer: ([x], attrs) => [spec(ints(attrs.shape), x!.dtype)],
  fold: ([x], attrs) => ({ ...x!, shape: ints(attrs.shape) }),
});

const filled = (value: number): OpRule => ({
  inputs: ['x'],
  infer: ([x]) => [spec(x!.shape, x!.dtype)],
  fold: ([x]) => ({ ...x!, data: newHostArray(x!.dtype, sizeOf(x!.shape)).fill(value) }),
});

export const shapeRules: RuleTable = {
  Reshape: reshaping('x', (shape, raw) => tf.util.inferFromImplicitShape(raw.shape, sizeOf(shape))),
  ExpandDims: reshaping('input', (shape, raw) => {
    const axis = resolveAxis(raw.dim, shape.length + 1);
    return [...shape.slice(0, axis), 1, ...shape.slice(axis)];
  }),
  Transpose: {
    inputs: ['x'],
    attrs: (raw) => ({ perm: [...raw.perm] }),
    infer: ([x], attrs) => [
      spec(
        ints(attrs.perm).map((axis) => x!.shape[axis]!),
        x!.dtype,
      ),
    ],
    fold: ([x], attrs) => {
      const strides = rowMajorStrides(x!.shape);
      const perm = ints(attrs.perm);
      return foldStrided(
        x!,
        perm.map((axis) => x!.shape[axis]!),
        perm.map((axis) => strides[axis]!),
      );
    },
  },
  BroadcastTo: {
    inputs: ['x'],
    attrs: (raw) => ({ shape: [...raw.shape] }),
    infer: ([x], attrs) => [spec(ints(attrs.shape), x!.dtype)],
    fold: ([x], attrs) => foldStrided(x!, ints(attrs.shape), broadcastStrides(x!.shape, ints(attrs.shape))),
  },
  Tile: {
    inputs: ['x'],
    attrs: (raw) => ({ reps: [...raw.reps] }),
    infer: ([x], attrs) => [
      spec(
        x!.shape.map((dim, i) => dim * ints(attrs.reps)[i]!),
        x!.dtype,
      ),
    ],
  },
  Slice: {
    inputs: ['x'],
    attrs: (raw, [x]) => {
      // Like tf.slice: a size of -1 reaches to the end; axes that are not named are taken whole.
      const begin = x!.shape.map((_, i) =>
        typeof raw.begin === 'number' ? (i === 0 ? raw.begin : 0) : (raw.begin[i] ?? 0),
      );
      const given = x!.shape.map((_, i) =>
        typeof raw.size === 'number' ? (i === 0 ? raw.size : -1) : (raw.size?.[i] ?? -1),
      );
      const size = given.map((n, i) => (n < 0 ? x!.shape[i]! - begin[i]! : n));
      return { begin, size };
    },
    infer: ([x], attrs) => [spec(ints(attrs.size), x!.dtype)],
    fold: ([x], attrs) => {
      const strides = rowMajorStrides(x!.shape);
      const base = ints(attrs.begin).reduce((sum, start, i) => sum + start * strides[i]!, 0);
      return foldStrided(x!, ints(attrs.size), strides, base);
    },
  },
  StridedSlice: {
    inputs: ['x'],
    attrs: (raw, [x]) => {
      const info = tf.slice_util.sliceInfo(
        [...x!.shape],
        raw.begin,
        raw.end,
        raw.strides,
        raw.beginMask,
        raw.endMask,
        raw.ellipsisMask,
        raw.newAxisMask,
        raw.shrinkAxisMask,
      );
      return {
        begin: info.begin,
        end: info.end,
        strides: info.strides,
        sparse: info.finalShapeSparse,
        shape: info.finalShape,
      };
    },
    infer: ([x], attrs) => [spec(ints(attrs.shape), x!.dtype)],
  },
  SplitV: {
    inputs: ['x'],
    listOfOutputs: true,
    attrs: (raw, [x]) => {
      const axis = resolveAxis(raw.axis, x!.shape.length);
      const sizes = tf.backend_util.prepareSplitSize(
        { shape: [...x!.shape] } as tf.Tensor,
        raw.numOrSizeSplits,
        axis,
      );
      return { axis, sizes };
    },
    infer: ([x], attrs) =>
      ints(attrs.sizes).map((size) =>
        spec(
          x!.shape.map((dim, i) => (i === attrs.axis ? size : dim)),
          x!.dtype,
        ),
      ),
  },
  Concat: {
    inputs: 'list',
    attrs: (raw, [x]) => ({ axis: resolveAxis(raw.axis, x!.shape.length) }),
    infer: (inputs, attrs) => {
      const first = inputs[0]!;
      const axis = attrs.axis as number;
      const total = inputs.reduce((sum, x) => sum + x.shape[axis]!, 0);
      return [
        spec(
          first.shape.map((dim, i) => (i === axis ? total : dim)),
          first.dtype,
        ),
      ];
    },
  },
  Pack: {
    inputs: 'list',
    attrs: (raw, [x]) => ({ axis: resolveAxis(raw.axis, x!.shape.length + 1) }),
    infer: (inputs, attrs) => {
      const shape = [...inputs[0]!.shape];
      shape.splice(attrs.axis as number, 0, inputs.length);
      return [spec(shape, inputs[0]!.dtype)];
    },
  },
  Unpack: {
    inputs: ['value'],
    listOfOutputs: true,
    attrs: (raw, [x]) => ({ axis: resolveAxis(raw.axis, x!.shape.length) }),
    infer: ([x], attrs) => {
      const axis = attrs.axis as number;
      const shape = x!.shape.filter((_, i) => i !== axis);
      return Array.from({ length: x!.shape[axis]! }, () => spec(shape, x!.dtype));
    },
  },
  PadV2: {
    inputs: ['x'],
    attrs: (raw) => ({ paddings: raw.paddings.flat(), value: raw.constantValue }),
    infer: ([x], attrs) => {
      const pads = ints(attrs.paddings);
      return [
        spec(
          x!.shape.map((dim, i) => pads[2 * i]! + dim + pads[2 * i + 1]!),
          x!.dtype,
        ),
      ];
    },
  },
  Reverse: {
    inputs: ['x'],
    attrs: (raw, [x]) => ({ axes: tf.util.parseAxisParam(raw.dims, [...x!.shape]) }),
    infer: ([x]) => [spec(x!.shape, x!.dtype)],
  },
  Fill: {
    inputs: [],
    attrs: (raw) => ({
      shape: [...raw.shape],
      value: Number(raw.value),
      dtype: raw.dtype ?? (typeof raw.value === 'string' ? 'string' : 'float32'),
    }),
    infer: (_, attrs) => {
      if (attrs.dtype === 'string')
        throw new CompilerError('Tensors of strings cannot be compiled; keep them on the host.');
      return [spec(ints(attrs.shape), attrs.dtype as DType)];
    },
  },
  ZerosLike: filled(0),
  OnesLike: filled(1),
  Range: {
    inputs: [],
    attrs: (raw) => ({ start: raw.start, stop: raw.stop, step: raw.step, dtype: raw.dtype }),
    infer: (_, attrs) => [
      spec(
        [rangeValues(attrs.start as number, attrs.stop as number, attrs.step as number).length],
        attrs.dtype as DType,
      ),
    ],
    fold: (_, attrs) => {
      const values = rangeValues(attrs.start as number, attrs.stop as number, attrs.step as number);
      return {
        shape: [values.length],
        dtype: attrs.dtype as DType,
        data: hostArrayFrom(attrs.dtype as DType, values),
      };
    },
  },
};

/** start, start + step, … up to but without stop, as tf.range gives it. */
function rangeValues(start: number, stop: number, step: number): number[] {
  const count = Math.max(0, Math.ceil((stop - start) / step));
  return Array.from({ length: count }, (_, i) => start + i * step);
}
