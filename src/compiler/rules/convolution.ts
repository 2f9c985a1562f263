/** @file Rules of convolutions and poolings over [batch, height, width, channels], and of their gradients. */
import type { Attrs } from '../graph.js';
import { precisionAttr } from '../precision.js';
import { type Shape, sizeOf } from '../types.js';
import { type OpRule, type RawAttrs, type RuleTable, spec } from './rule.js';
import { windowAttrs, windowsOf } from './windows.js';

const ints = (value: unknown): readonly number[] => value as readonly number[];

const sizes = (shape: Shape): [number, number] => [shape[0]!, shape[1]!];

/** [batch, windows down, windows across, channels]. */
const windowed = (batch: number, attrs: Attrs, channels: number): number[] => {
  const [height, width] = windowsOf(attrs);
  return [batch, height.count, width.count, channels];
};

const tapsOf = (attrs: Attrs): number => {
  const [height, width] = windowsOf(attrs);
  return height.taps * width.taps;
};

/** FLOPs of a multiply-add for each element of input `index`, or of the output, each tap, and each of so many channels. */
const perTap =
  (index: number | 'output', channels: (inputs: readonly Shape[], attrs: Attrs) => number) =>
  (inputs: readonly { shape: Shape }[], outputs: readonly { shape: Shape }[], attrs: Attrs): number => {
    const { shape } = index === 'output' ? outputs[0]! : inputs[index]!;
    const shapes = inputs.map((input) => input.shape);
    return 2 * sizeOf(shape) * tapsOf(attrs) * channels(shapes, attrs);
  };

const one = (): number => 1;

/** A convolution: `outChannels` of the filter's shape, `channels` that each of its sums runs over. */
const convolution = (
  name: string,
  outChannels: (filter: Shape) => number,
  channels: (filter: Shape) => number,
  precision: (raw: RawAttrs) => Attrs,
): OpRule => ({
  inputs: ['x', 'filter'],
  attrs: (raw, [x, filter]) => ({
    ...windowAttrs(name, x!.shape, sizes(filter!.shape), raw),
    ...precision(raw),
  }),
  infer: ([x, filter], attrs) => [spec(windowed(x!.shape[0]!, attrs, outChannels(filter!.shape)), 'float32')],
  flops: perTap('output', ([, filter]) => channels(filter!)),
});

/** The gradient of a convolution by its input. */
const backpropInput = (
  name: string,
  channels: (filter: Shape) => number,
  precision: (raw: RawAttrs) => Attrs,
): OpRule => ({
  inputs: ['dy', 'filter'],
  attrs: (raw, [, filter]) => ({
    ...windowAttrs(name, raw.inputShape, sizes(filter!.shape), raw),
    inputShape: [...raw.inputShape],
    ...precision(raw),
  }),
  infer: (_, attrs) => [spec(ints(attrs.inputShape), 'float32')],
  flops: perTap(0, ([, filter]) => channels(filter!)),
});

/** The gradient of a convolution by its filter. */
const backpropFilter = (
  name: string,
  channels: (filter: Shape) => number,
  precision: (raw: RawAttrs) => Attrs,
): OpRule => ({
  inputs: ['x', 'dy'],
  attrs: (raw, [x]) => ({
    ...windowAttrs(name, x!.shape, sizes(raw.filterShape), raw),
    filterShape: [...raw.filterShape],
    ...precision(raw),
  }),
  infer: (_, attrs) => [spec(ints(attrs.filterShape), 'float32')],
  flops: perTap(1, (_, attrs) => channels(ints(attrs.filterShape))),
});

/** A multiply-add for each tap of each result is no matrix product: it is float32 in every precision. */
const exact = (): Attrs => ({});

const poolAttrs =
  (name: string, input: number): NonNullable<OpRule['attrs']> =>
  (raw, inputs) => {
    const { filterSize } = raw;
    const window = typeof filterSize === 'number' ? ([filterSize, filterSize] as const) : filterSize;
    return windowAttrs(name, inputs[input]!.shape, window, raw);
  };

const pooling = (name: string): OpRule => ({
  inputs: ['x'],
  attrs: poolAttrs(name, 0),
  infer: ([x], attrs) => [spec(windowed(x!.shape[0]!, attrs, x!.shape[3]!), x!.dtype)],
  flops: (_, [out], attrs) => sizeOf(out!.shape) * tapsOf(attrs),
});

const poolingGradient = (name: string, inputs: readonly string[]): OpRule => ({
  inputs,
  attrs: poolAttrs(name, 1),
  infer: ([, x]) => [x!],
  flops: ([dy], _, attrs) => sizeOf(dy!.shape) * tapsOf(attrs),
});

const [inputChannels, outputChannels] = [2, 3].map((axis) => (filter: Shape) => filter[axis]!) as [
  (filter: Shape) => number,
  (filter: Shape) => number,
];
const allChannels = (filter: Shape): number => filter[2]! * filter[3]!;

export const convolutionRules: RuleTable = {
  /** x [B, H, W, C] with filter [height, width, C, O]: [B, H', W', O]. */
  Conv2D: convolution('conv2d', outputChannels, inputChannels, precisionAttr),
  Conv2DBackpropInput: backpropInput('The gradient of conv2d by its input', inputChannels, precisionAttr),
  Conv2DBackpropFilter: backpropFilter('The gradient of conv2d by its filter', inputChannels, precisionAttr),
  /** x [B, H, W, C] with filter [height, width, C, M], each channel on its own: [B, H', W', C * M]. */
  DepthwiseConv2dNative: convolution('depthwiseConv2d', allChannels, one, exact),
  DepthwiseConv2dNativeBackpropInput: backpropInput(
    'The gradient of depthwiseConv2d by its input',
    one,
    exact,
  ),
  DepthwiseConv2dNativeBackpropFilter: backpropFilter(
    'The gradient of depthwiseConv2d by its filter',
    one,
    exact,
  ),
  /** The largest cell of each window; padding is never it. NaN is, where tfjs's cpu kernel passes over it. */
  MaxPool: pooling('maxPool'),
  MaxPoolGrad: poolingGradient('The gradient of maxPool', ['dy', 'input', 'output']),
  /** The mean of the cells of each window that are no padding. */
  AvgPool: pooling('avgPool'),
  /** dy / (cells of a window), also where some of them are padding: see the gradient of AvgPool. */
  AvgPoolGrad: poolingGradient('The gradient of avgPool', ['dy', 'input']),
};
