/**
 * @file Gradients of convolutions and poolings, for every backend: tfjs 4.22 refuses those of dilated convolutions, and
 * divides those of a mean by all cells of a window where some of them are padding.
 */
import {
  backend_util,
  concat,
  engine,
  getGradient,
  mul,
  registerGradient,
  reshape,
  slice,
  stridedSlice,
  type Tensor,
  type Tensor4D,
  tensor,
  zeros,
} from '@tensorflow/tfjs-core';
import { notedPrecision, runInPrecision } from './precision.js';

type Attrs = Readonly<Record<string, any>>;

/** Backends whose kernels of gradients take `dilations`; tfjs's own take filters with zeros between their taps. */
export const DILATING_BACKENDS = new Set<string>();

/** `x` with dilation - 1 zeros between its elements along an axis. */
function spread(x: Tensor, axis: number, dilation: number): Tensor {
  const size = x.shape[axis]!;
  if (dilation === 1 || size === 1) return x;
  const [before, after] = [x.shape.slice(0, axis), x.shape.slice(axis + 1)];
  const apart = reshape(x, [...before, size, 1, ...after]);
  const gaps = zeros([...before, size, dilation - 1, ...after]);
  const all = reshape(concat([apart, gaps], axis + 1), [...before, size * dilation, ...after]);
  const whole = [...before, (size - 1) * dilation + 1, ...after];
  return slice(
    all,
    whole.map(() => 0),
    whole,
  );
}

const run = (kernel: string, inputs: Record<string, Tensor>, attrs: Attrs): Tensor =>
  engine().runKernel(kernel, inputs, attrs) as Tensor;

const pairOf = (value: number | readonly number[] | null | undefined): readonly [number, number] =>
  typeof value === 'number' ? [value, value] : value ? [value[0]!, value[1]!] : [1, 1];

function inputGradient(kernel: string, x: Tensor, filter: Tensor, dy: Tensor, attrs: Attrs): Tensor {
  const [down, across] = pairOf(attrs.dilations);
  const whole = { ...attrs, inputShape: x.shape };
  if (DILATING_BACKENDS.has(engine().backendName)) return run(kernel, { dy, filter }, whole);
  return run(kernel, { dy, filter: spread(spread(filter, 0, down), 1, across) }, { ...whole, dilations: 1 });
}

function filterGradient(kernel: string, x: Tensor, filter: Tensor, dy: Tensor, attrs: Attrs): Tensor {
  const [down, across] = pairOf(attrs.dilations);
  const filterShape = filter.shape;
  if (DILATING_BACKENDS.has(engine().backendName) || (down === 1 && across === 1))
    return run(kernel, { x, dy }, { ...attrs, filterShape });
  const [height, width, ...channels] = filterShape as [number, number, number, number];
  const wide = [(height - 1) * down + 1, (width - 1) * across + 1, ...channels];
  const gradient = run(kernel, { x, dy }, { ...attrs, dilations: 1, filterShape: wide });
  return stridedSlice(gradient, [0, 0, 0, 0], wide, [down, across, 1, 1]);
}

for (const kernelName of ['Conv2D', 'DepthwiseConv2dNative']) {
  registerGradient({
    kernelName,
    inputsToSave: ['x', 'filter'],
    gradFunc: (dy, saved, attrs) => {
      const [x, filter] = saved as [Tensor, Tensor];
      const precision = notedPrecision(attrs);
      return {
        x: () =>
          runInPrecision(precision, () =>
            inputGradient(`${kernelName}BackpropInput`, x, filter, dy as Tensor, attrs),
          ),
        filter: () =>
          runInPrecision(precision, () =>
            filterGradient(`${kernelName}BackpropFilter`, x, filter, dy as Tensor, attrs),
          ),
      };
    },
  });
}

/** What transposed convolutions are made of, and its gradients are convolutions of the same precision. */
const ofTransposed = getGradient('Conv2DBackpropInput');
registerGradient({
  ...ofTransposed,
  gradFunc: (dy, saved, attrs) => {
    const gradients = ofTransposed.gradFunc(dy, saved, attrs) as Record<string, () => Tensor>;
    return Object.fromEntries(
      Object.entries(gradients).map(([name, work]) => [
        name,
        () => runInPrecision(notedPrecision(attrs), work),
      ]),
    );
  },
});

/** The cells of each window that are no padding, along one axis. */
const cellsAlong = (size: number, count: number, taps: number, stride: number, before: number): number[] =>
  Array.from({ length: count }, (_, i) => {
    const begin = i * stride - before;
    return Math.min(size, begin + taps) - Math.max(0, begin);
  });

/** The kernel divides by the cells of a whole window: what each window gives is made larger by as much as it has fewer. */
registerGradient({
  kernelName: 'AvgPool',
  inputsToSave: ['x'],
  gradFunc: (dy, saved, raw) => {
    const [x] = saved as [Tensor4D];
    const { filterSize, strides, pad } = raw as Attrs;
    const info = backend_util.computePool2DInfo(x.shape, filterSize, strides, 1, pad);
    const { filterHeight: height, filterWidth: width, padInfo } = info;
    const down = cellsAlong(info.inHeight, info.outHeight, height, info.strideHeight, padInfo.top);
    const across = cellsAlong(info.inWidth, info.outWidth, width, info.strideWidth, padInfo.left);
    const factors = down.flatMap((rows) => across.map((columns) => (height * width) / (rows * columns)));
    const isWhole = factors.every((factor) => factor === 1);
    const part = (): Tensor4D =>
      isWhole ? (dy as Tensor4D) : mul(dy as Tensor4D, tensor(factors, [info.outHeight, info.outWidth, 1]));
    return { x: () => run('AvgPoolGrad', { dy: part(), input: x }, { filterSize, strides, pad }) };
  },
});
