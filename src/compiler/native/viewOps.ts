/** @file Operations that move no data: each gives another view of its operand. */
import type { Node } from '../ir.js';
import { broadcastView, reshapeView, sliceView, transposeView, type View } from './views.js';

const ints = (value: unknown): readonly number[] => value as readonly number[];

/** `size` elements along an axis, from `begin` on. */
export function partOf(x: View, axis: number, begin: number, size: number): View {
  return sliceView(
    x,
    x.shape.map((_, i) => (i === axis ? begin : 0)),
    x.shape.map((dim, i) => (i === axis ? size : dim)),
  );
}

/** Operations whose result is a view of their first input. A null: these strides can't express it. */
export const VIEWS: Readonly<Record<string, (x: View, node: Node, output: number) => View | null>> = {
  Identity: (x) => x,
  Reshape: (x, { outputs }) => reshapeView(x, outputs[0]!.shape),
  ExpandDims: (x, { outputs }) => reshapeView(x, outputs[0]!.shape),
  Transpose: (x, { attrs }) => transposeView(x, ints(attrs.perm)),
  BroadcastTo: (x, { attrs }) => broadcastView(x, ints(attrs.shape)),
  Slice: (x, { attrs }) => sliceView(x, ints(attrs.begin), ints(attrs.size)),
  StridedSlice: (x, { attrs }) => {
    const [begin, end, steps] = [ints(attrs.begin), ints(attrs.end), ints(attrs.strides)];
    const size = begin.map((start, i) => Math.max(0, Math.ceil((end[i]! - start) / steps[i]!)));
    return reshapeView(sliceView(x, begin, size, steps), ints(attrs.shape));
  },
  Reverse: (x, { attrs }) => {
    const reversed = (axis: number) => ints(attrs.axes).includes(axis);
    return sliceView(
      x,
      x.shape.map((dim, axis) => (reversed(axis) ? dim - 1 : 0)),
      x.shape,
      x.shape.map((_, axis) => (reversed(axis) ? -1 : 1)),
    );
  },
  SplitV: (x, { attrs }, output) => {
    const sizes = ints(attrs.sizes);
    const before = sizes.slice(0, output).reduce((sum, size) => sum + size, 0);
    return partOf(x, attrs.axis as number, before, sizes[output]!);
  },
  Unpack: (x, { attrs, outputs }, output) =>
    reshapeView(partOf(x, attrs.axis as number, output, 1), outputs[0]!.shape),
  SlidingWindows: (x, { attrs, outputs }) => {
    const [along, within] = x.strides.slice(-2) as [number, number];
    // The channels of a window's taps are one run where the next cell begins behind the last channel.
    if (along !== within * x.shape.at(-1)!) return null;
    const { begin, stride } = attrs as { begin: number; stride: number };
    const strides = [...x.strides.slice(0, -2), along * stride, within];
    return { ...x, offset: x.offset + begin * along, shape: outputs[0]!.shape, strides };
  },
};
