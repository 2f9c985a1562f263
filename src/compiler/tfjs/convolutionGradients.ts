/**
 * @file Gradients of convolutions and poolings for every backend. tfjs 4.22 refuses those of dilated convolutions, and
 * divides the gradient of an average by the size of the whole window even where part of it is padding.
 */
import {
  backend_util,
  concat,
  div,
  engine,
  gather,
  mul,
  range,
  registerGradient,
  reshape,
  slice,
  type Tensor,
  type Tensor4D,
  tensor,
  zeros,
  zerosLike,
} from '@tensorflow/tfjs-core';
import { notedPrecision, runInPrecision } from '../program/precision.js';

type Attrs = Readonly<Record<string, any>>;

/** Backends whose gradient kernels accept `dilations`; tfjs's own get filters with zeros inserted between taps. */
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

/** The dilation of each axis of a filter [...taps, channels, channels]. */
const dilationsOf = (filterShape: readonly number[], { dilations }: Attrs): number[] =>
  filterShape
    .slice(0, -2)
    .map((_, axis) => (typeof dilations === 'number' ? dilations : (dilations?.[axis] ?? 1)));

function inputGradient(kernel: string, x: Tensor, filter: Tensor, dy: Tensor, attrs: Attrs): Tensor {
  const whole = { ...attrs, inputShape: x.shape };
  if (DILATING_BACKENDS.has(engine().backendName)) return run(kernel, { dy, filter }, whole);
  const wide = dilationsOf(filter.shape, attrs).reduce((taps, by, axis) => spread(taps, axis, by), filter);
  return run(kernel, { dy, filter: wide }, { ...whole, dilations: 1 });
}

function filterGradient(kernel: string, x: Tensor, filter: Tensor, dy: Tensor, attrs: Attrs): Tensor {
  const dilations = dilationsOf(filter.shape, attrs);
  const filterShape = filter.shape;
  if (DILATING_BACKENDS.has(engine().backendName) || dilations.every((dilation) => dilation === 1))
    return run(kernel, { x, dy }, { ...attrs, filterShape });
  const wide = filterShape.map((taps, axis) => (taps - 1) * (dilations[axis] ?? 1) + 1);
  const gradient = run(kernel, { x, dy }, { ...attrs, dilations: 1, filterShape: wide });
  // A strided slice would have no gradient.
  const taps = (axis: number) => range(0, filterShape[axis]! * dilations[axis]!, dilations[axis]!, 'int32');
  return dilations.reduce((cells, _, axis) => gather(cells, taps(axis), axis), gradient);
}

type Pair = readonly [Tensor, Tensor];

/** Registers the gradients of a bilinear operation; they multiply in the operation's precision. */
function registerProduct(
  kernelName: string,
  inputs: readonly [string, string],
  gradients: (dy: Tensor, saved: Pair, attrs: Attrs) => readonly [() => Tensor, () => Tensor],
): void {
  registerGradient({
    kernelName,
    inputsToSave: [...inputs],
    gradFunc: (dy, saved, attrs) => {
      const works = gradients(dy as Tensor, saved as unknown as Pair, attrs);
      const precision = notedPrecision(attrs);
      return Object.fromEntries(inputs.map((name, i) => [name, () => runInPrecision(precision, works[i]!)]));
    },
  });
}

/**
 * A convolution and its two gradients are each linear in two of x, filter and dy, so each one's gradients are the other
 * two.
 */
for (const [kernel, version] of [
  ['Conv2D', ''],
  ['DepthwiseConv2dNative', ''],
  ['Conv3D', 'V2'],
] as const) {
  const [backInput, backFilter] = [`${kernel}BackpropInput${version}`, `${kernel}BackpropFilter${version}`];
  const forward = (x: Tensor, filter: Tensor, attrs: Attrs): Tensor =>
    run(kernel, { x, filter }, { ...attrs, dilations: attrs.dilations ?? 1 });
  registerProduct(kernel, ['x', 'filter'], (dy, [x, filter], attrs) => [
    () => inputGradient(backInput, x, filter, dy, attrs),
    () => filterGradient(backFilter, x, filter, dy, attrs),
  ]);
  // Includes transposed convolutions.
  registerProduct(backInput, ['dy', 'filter'], (x, [dy, filter], attrs) => [
    () => forward(x, filter, attrs),
    () => filterGradient(backFilter, x, filter, dy, attrs),
  ]);
  registerProduct(backFilter, ['x', 'dy'], (filter, [x, dy], attrs) => [
    () => inputGradient(backInput, x, filter, dy, attrs),
    () => forward(x, filter, attrs),
  ]);
}

/** Number of non-padding cells of each window, along one axis. */
const cellsAlong = (size: number, count: number, taps: number, stride: number, before: number): number[] =>
  Array.from({ length: count }, (_, i) => {
    const begin = i * stride - before;
    return Math.max(0, Math.min(size, begin + taps) - Math.max(0, begin));
  });

const infoOf = (shape: Tensor4D['shape'], { filterSize, strides, pad, dimRoundingMode }: Attrs) =>
  backend_util.computePool2DInfo(shape, filterSize, strides, 1, pad, dimRoundingMode ?? undefined);

/** Ratio of a whole window's cells to the non-padding cells of each window; 0 for windows of padding alone. */
function windowFactors(shape: Tensor4D['shape'], attrs: Attrs): Tensor {
  const info = infoOf(shape, attrs);
  const { filterHeight: height, filterWidth: width, padInfo } = info;
  const down = cellsAlong(info.inHeight, info.outHeight, height, info.strideHeight, padInfo.top);
  const across = cellsAlong(info.inWidth, info.outWidth, width, info.strideWidth, padInfo.left);
  const factors = down.flatMap((rows) =>
    across.map((columns) => (rows * columns === 0 ? 0 : (height * width) / (rows * columns))),
  );
  return tensor(factors, [info.outHeight, info.outWidth, 1]);
}

/** Whether windows reach beyond the input. */
const isPadded = (shape: Tensor4D['shape'], attrs: Attrs): boolean => {
  const info = infoOf(shape, attrs);
  const { top, left } = info.padInfo;
  const bottom = (info.outHeight - 1) * info.strideHeight + info.filterHeight - top;
  const right = (info.outWidth - 1) * info.strideWidth + info.filterWidth - left;
  return top > 0 || left > 0 || bottom > info.inHeight || right > info.inWidth;
};

const poolAttrs = ({ filterSize, strides, pad, dimRoundingMode }: Attrs): Attrs => ({
  filterSize,
  strides,
  pad,
  dimRoundingMode,
});

/** tfjs's forgets how sizes are rounded. */
registerGradient({
  kernelName: 'MaxPool',
  inputsToSave: ['x'],
  outputsToSave: [true],
  gradFunc: (dy, saved, attrs) => {
    const [input, output] = saved as Tensor[];
    return {
      x: () => run('MaxPoolGrad', { dy: dy as Tensor, input: input!, output: output! }, poolAttrs(attrs)),
    };
  },
});

/** The kernel divides by the cells of a whole window; the factor corrects windows that contain padding. */
registerGradient({
  kernelName: 'AvgPool',
  inputsToSave: ['x'],
  gradFunc: (dy, saved, attrs) => {
    const [x] = saved as [Tensor4D];
    const part = (): Tensor =>
      isPadded(x.shape, attrs) ? mul(dy as Tensor, windowFactors(x.shape, attrs)) : (dy as Tensor);
    return { x: () => run('AvgPoolGrad', { dy: part(), input: x }, poolAttrs(attrs)) };
  },
});

/** The kernel reads only the shape of the input. */
registerGradient({
  kernelName: 'AvgPoolGrad',
  inputsToSave: ['input'],
  gradFunc: (ddx, saved, attrs) => {
    const [input] = saved as [Tensor4D];
    const means = (): Tensor => run('AvgPool', { x: ddx as Tensor }, poolAttrs(attrs));
    return {
      dy: () => (isPadded(input.shape, attrs) ? div(means(), windowFactors(input.shape, attrs)) : means()),
      input: () => zerosLike(input),
    };
  },
});
