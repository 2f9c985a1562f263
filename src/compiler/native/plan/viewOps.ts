/** @file Views of data-moving operations: of their operands, and of the slots that they write. */
import { ints, type Node } from '../../program/ir.js';
import {
  broadcastView,
  invertPermutation,
  reshapeView,
  sliceView,
  transposeView,
  type View,
} from './views.js';

/** `size` elements along an axis, from `begin` on. */
function rangeOf(x: View, axis: number, begin: number, size: number): View {
  return sliceView(
    x,
    x.shape.map((_, i) => (i === axis ? begin : 0)),
    x.shape.map((dim, i) => (i === axis ? size : dim)),
  );
}

/** Operations whose result is a view of their first input; null where strides can't express it. */
export const VIEWS: Readonly<Record<string, (x: View, node: Node, output: number) => View | null>> = {
  Identity: (x) => x,
  Load: (x) => x,
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
    return rangeOf(x, attrs.axis as number, before, sizes[output]!);
  },
  Unpack: (x, { attrs, outputs }, output) =>
    reshapeView(rangeOf(x, attrs.axis as number, output, 1), outputs[0]!.shape),
  SlidingWindows: (x, { attrs, outputs }) => {
    const [along, within] = x.strides.slice(-2) as [number, number];
    // A window's taps merge with its channels where the next cell starts right behind the last channel.
    if (along !== within * x.shape.at(-1)!) return null;
    const { begin, stride } = attrs as { begin: number; stride: number };
    const strides = [...x.strides.slice(0, -2), along * stride, within];
    return { ...x, offset: x.offset + begin * along, shape: outputs[0]!.shape, strides };
  },
};

/** The view of an operation's operand, given that of its result; null if that is no view. */
export function sourceView(result: View, { op, inputs, attrs }: Node): View | null {
  if (op === 'Transpose') return transposeView(result, invertPermutation(ints(attrs.perm)));
  return op === 'Reshape' || op === 'ExpandDims' ? reshapeView(result, inputs[0]!.shape) : null;
}

/** The slot of each input of a Concat or Pack within the result. */
export function slotsOf(result: View, { op, inputs, attrs }: Node): View[] {
  const axis = attrs.axis as number;
  let at = 0;
  return inputs.map((input) => {
    const size = op === 'Pack' ? 1 : input.shape[axis]!;
    const slot = rangeOf(result, axis, at, size);
    at += size;
    // An axis of size 1 can always be omitted.
    return op === 'Pack' ? reshapeView(slot, input.shape)! : slot;
  });
}

/** The views that a Tile copies between, with an extra axis per repetition, along which the source has stride 0. */
export function repeatedViews(
  x: View,
  result: View,
  { attrs }: Node,
): { readonly from: View; readonly to: View } {
  const reps = ints(attrs.reps);
  const shape = x.shape.flatMap((dim, i) => [reps[i]!, dim]);
  const targetStrides = result.strides.flatMap((stride, i) => [stride * x.shape[i]!, stride]);
  return {
    from: { ...x, shape, strides: x.strides.flatMap((stride) => [0, stride]) },
    to: { ...result, shape, strides: targetStrides },
  };
}

/** The slot of a PadV2's input within its result. */
export function withinPads(result: View, { inputs, attrs }: Node): View {
  const pads = ints(attrs.paddings);
  const { shape } = inputs[0]!;
  return sliceView(
    result,
    shape.map((_, i) => pads[2 * i]!),
    shape,
  );
}
