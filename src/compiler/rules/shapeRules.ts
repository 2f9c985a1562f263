/** @file Operations that move, repeat or slice data without computing. */

import {
  broadcastTo,
  reshape,
  reverse,
  slice,
  split,
  strided,
  tile,
  transpose,
  unpack,
} from '../onnx/shapes.js';
import { ints } from '../program/ir.js';
import {
  formatSpec,
  type HostTensor,
  newHostArray,
  type Shape,
  sameShape,
  sizeOf,
} from '../program/tensors.js';
import * as tf from '../tfjs/tfjs.js';
import { broadcastShapes, broadcastStrides, forEachElement } from './broadcasting.js';
import { MOVE, VIEW } from './deviceForm.js';
import { alongAxes, elementwise, lettered, reshaping as reshapeFactors } from './factors.js';
import {
  expects,
  expectsAxes,
  expectsShape,
  isWithin,
  type OperationTable,
  type PlainOperation,
  resolveAxes,
  resolveAxis,
  spec,
} from './operation.js';

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

/** Operations that change only the shape. */
const reshaping = (input: string, shapeOf: (shape: Shape, raw: any) => Shape): PlainOperation => ({
  inputs: [input],
  attrs: (raw, [x]) => ({ shape: [...shapeOf(x!.shape, raw)] }),
  infer: ([x], { shape }) => {
    expectsShape(shape);
    expects(sizeOf(shape) === sizeOf(x!.shape), `a shape of ${sizeOf(x!.shape)} elements`, shape);
    return [spec(shape, x!.dtype)];
  },
  fold: ([x], attrs) => ({ ...x!, shape: ints(attrs.shape) }),
  factors: ([x], [out]) => reshapeFactors(x!.shape, out!.shape),
  isView: true,
  onnx: reshape,
  device: VIEW,
});

/** Position of the last of `count` elements along an axis, from `begin` on. */
const lastOf = (begin: number, step: number, count: number): number => begin + (count - 1) * step;

/** The axes whose numbers of a list are such. */
const axesWhere = (numbers: readonly number[], isSuch: (number: number, axis: number) => boolean): number[] =>
  numbers.flatMap((number, axis) => (isSuch(number, axis) ? [axis] : []));

export const shapeRules: OperationTable = {
  Reshape: reshaping('x', (shape, raw) => tf.util.inferFromImplicitShape(raw.shape, sizeOf(shape))),
  ExpandDims: reshaping('input', (shape, raw) => {
    const axis = resolveAxis(raw.dim, shape.length + 1);
    return [...shape.slice(0, axis), 1, ...shape.slice(axis)];
  }),
  Transpose: {
    inputs: ['x'],
    attrs: (raw) => ({ perm: [...raw.perm] }),
    infer: ([x], attrs) => {
      const perm = ints(attrs.perm);
      expectsAxes(perm, x!.shape.length);
      expects(perm.length === x!.shape.length, `all ${x!.shape.length} axes`, perm);
      return [
        spec(
          perm.map((axis) => x!.shape[axis]!),
          x!.dtype,
        ),
      ];
    },
    fold: ([x], attrs) => {
      const strides = rowMajorStrides(x!.shape);
      const perm = ints(attrs.perm);
      return foldStrided(
        x!,
        perm.map((axis) => x!.shape[axis]!),
        perm.map((axis) => strides[axis]!),
      );
    },
    factors: ([x], [out], attrs) => {
      const axes = x!.shape.map((_, axis) => `${axis}`);
      const turned = ints(attrs.perm).map((axis) => axes[axis]!);
      return lettered([axes], [turned], { inputs: [x!], outputs: [out!] });
    },
    onnx: transpose,
    device: VIEW,
  },
  BroadcastTo: {
    inputs: ['x'],
    attrs: (raw) => ({ shape: [...raw.shape] }),
    infer: ([x], { shape }) => {
      expectsShape(shape);
      const fits = sameShape(broadcastShapes(x!.shape, shape), shape);
      expects(fits, `a shape that [${x!.shape}] broadcasts to`, shape);
      return [spec(shape, x!.dtype)];
    },
    fold: ([x], attrs) => foldStrided(x!, ints(attrs.shape), broadcastStrides(x!.shape, ints(attrs.shape))),
    factors: (inputs, outputs, attrs) => ({
      ...elementwise(inputs, outputs, attrs)!,
      localAttrs: (shape) => ({ shape }),
    }),
    onnx: broadcastTo,
    device: VIEW,
  },
  Tile: {
    inputs: ['x'],
    attrs: (raw) => ({ reps: [...raw.reps] }),
    infer: ([x], { reps }) => {
      expectsShape(reps);
      expects(reps.length === x!.shape.length, 'a number of repetitions for each axis', reps);
      return [
        spec(
          x!.shape.map((dim, i) => dim * reps[i]!),
          x!.dtype,
        ),
      ];
    },
    factors: alongAxes(({ reps }) => axesWhere(ints(reps), (times) => times !== 1)),
    onnx: tile,
    device: MOVE,
  },
  Slice: {
    inputs: ['x'],
    attrs: (raw, [x]) => {
      for (const given of [raw.begin, raw.size].filter(Array.isArray))
        expects(given.length <= x!.shape.length, `at most ${x!.shape.length} axes`, given);
      // Like tf.slice: size -1 extends to the end; unnamed axes are taken whole.
      const begin = x!.shape.map((_, i) =>
        typeof raw.begin === 'number' ? (i === 0 ? raw.begin : 0) : (raw.begin[i] ?? 0),
      );
      const given = x!.shape.map((_, i) =>
        typeof raw.size === 'number' ? (i === 0 ? raw.size : -1) : (raw.size?.[i] ?? -1),
      );
      const size = given.map((n, i) => (n === -1 ? x!.shape[i]! - begin[i]! : n));
      return { begin, size };
    },
    infer: ([x], attrs) => {
      const [begin, size] = [ints(attrs.begin), ints(attrs.size)];
      const isForward = begin.every((at) => at >= 0);
      expects(
        isForward,
        'begins of 0 or more (slice() does not support negative begin indexing.)',
        `[${begin}]`,
      );
      const fits = x!.shape.every(
        (dim, i) => isWithin(begin[i], 0, dim) && isWithin(size[i], 0, dim - begin[i]!),
      );
      expects(fits, `a part of ${formatSpec(x!)}`, `begin [${begin}] and size [${size}]`);
      return [spec(size, x!.dtype)];
    },
    fold: ([x], attrs) => {
      const strides = rowMajorStrides(x!.shape);
      const base = ints(attrs.begin).reduce((sum, start, i) => sum + start * strides[i]!, 0);
      return foldStrided(x!, ints(attrs.size), strides, base);
    },
    factors: (inputs, outputs, attrs) => ({
      ...alongAxes(({ size }) => axesWhere(ints(size), (count, axis) => count !== inputs[0]!.shape[axis]))(
        inputs,
        outputs,
        attrs,
      )!,
      localAttrs: (size) => ({ size }),
    }),
    onnx: slice,
    device: VIEW,
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
    infer: ([x], attrs) => {
      const [begin, end, strides, shape] = [attrs.begin, attrs.end, attrs.strides, attrs.shape].map(ints);
      const counts = x!.shape.map((_, i) => Math.max(0, Math.ceil((end![i]! - begin![i]!) / strides![i]!)));
      const isInside = (dim: number, i: number): boolean =>
        counts[i] === 0 ||
        (isWithin(begin![i], 0, dim - 1) &&
          isWithin(lastOf(begin![i]!, strides![i]!, counts[i]!), 0, dim - 1));
      const told = `begin [${begin}], end [${end}] and strides [${strides}]`;
      expects(x!.shape.every(isInside), `a part of ${formatSpec(x!)}`, told);
      expects(sizeOf(shape!) === sizeOf(counts), `a shape of ${sizeOf(counts)} elements`, shape);
      return [spec(shape!, x!.dtype)];
    },
    onnx: strided,
    device: VIEW,
  },
  SplitV: {
    inputs: ['x'],
    call: 'split',
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
    infer: ([x], attrs) => {
      const axis = attrs.axis as number;
      expectsAxes([axis], x!.shape.length);
      const sizes = ints(attrs.sizes);
      const fit =
        sizes.every((size) => isWithin(size, 0)) && sizes.reduce((a, b) => a + b, 0) === x!.shape[axis];
      expects(fit, `sizes that add up to ${x!.shape[axis]}`, sizes);
      return sizes.map((size) =>
        spec(
          x!.shape.map((dim, i) => (i === axis ? size : dim)),
          x!.dtype,
        ),
      );
    },
    factors: alongAxes(({ axis }) => [axis as number]),
    onnx: split,
    device: VIEW,
  },
  Unpack: {
    inputs: ['value'],
    call: 'unstack',
    listOfOutputs: true,
    attrs: (raw, [x]) => ({ axis: resolveAxis(raw.axis, x!.shape.length) }),
    infer: ([x], attrs) => {
      const axis = attrs.axis as number;
      expectsAxes([axis], x!.shape.length);
      const shape = x!.shape.filter((_, i) => i !== axis);
      return Array.from({ length: x!.shape[axis]! }, () => spec(shape, x!.dtype));
    },
    factors: ([x], outputs, attrs) => {
      const names = x!.shape.map((_, axis) => (axis === attrs.axis ? '.' : `${axis}`));
      const rest = names.filter((_, axis) => axis !== attrs.axis);
      return lettered(
        [names],
        outputs.map(() => rest),
        { inputs: [x!], outputs },
      );
    },
    onnx: unpack,
    device: VIEW,
  },
  Reverse: {
    inputs: ['x'],
    attrs: (raw, [x]) => ({
      axes: resolveAxes(
        raw.dims === undefined ? undefined : [...new Set([raw.dims].flat())],
        x!.shape.length,
      ),
    }),
    infer: ([x], attrs) => {
      expectsAxes(ints(attrs.axes), x!.shape.length);
      return [spec(x!.shape, x!.dtype)];
    },
    factors: alongAxes(({ axes }) => ints(axes)),
    onnx: reverse,
    device: VIEW,
  },
};
