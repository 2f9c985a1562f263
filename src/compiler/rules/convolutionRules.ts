/** @file Shapes and FLOPs of convolutions and poolings over [batch, height, width, channels], and of their gradients. */
import { type Attrs, ints } from '../program/ir.js';
import { precisionAttr } from '../program/precision.js';
import { type DType, type Shape, sameShape, sizeOf, type TensorSpec } from '../program/tensors.js';
import { alongAxes, lettered } from './factors.js';
import {
  type Composite,
  expects,
  expectsDtypes,
  FLOAT,
  type OperationTable,
  type RawAttrs,
  spec,
} from './operation.js';
import { windowAttrs, windowsOf } from './windowAttrs.js';

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

/** FLOPs of a multiply-add per element of input `index` (or of the output), tap and channel. */
const perTap =
  (index: number | 'output', channels: (inputs: readonly Shape[], attrs: Attrs) => number) =>
  (inputs: readonly { shape: Shape }[], outputs: readonly { shape: Shape }[], attrs: Attrs): number => {
    const { shape } = index === 'output' ? outputs[0]! : inputs[index]!;
    const shapes = inputs.map((input) => input.shape);
    return 2 * sizeOf(shape) * tapsOf(attrs) * channels(shapes, attrs);
  };

/** Requires tensors [batch, height, width, channels] of these dtypes. */
function expectsImages(images: readonly TensorSpec[], dtypes = FLOAT): void {
  expectsDtypes(images, dtypes);
  expects(
    images.every(({ shape }) => shape.length === 4),
    'tensors of rank 4',
    images,
  );
}

/** Requires the input shape that the node's windows are defined over. */
function expectsWindows(x: Shape, attrs: Attrs, given: readonly TensorSpec[]): void {
  const [height, width] = windowsOf(attrs);
  const fits = x.length === 4 && x[1] === height.size && x[2] === width.size;
  expects(fits, `an input of ${height.size}x${width.size} cells`, given);
}

/** Requires the gradient of an output with these windows. */
function expectsGradient(dy: TensorSpec, batch: number, attrs: Attrs, channels: number): void {
  const expected = windowed(batch, attrs, channels);
  expects(sameShape(dy.shape, expected), `a gradient of shape [${expected}]`, dy);
}

/** Distinguishes the kinds of convolution. */
interface Kind {
  /** tfjs's function, for messages. */
  readonly call: string;
  /** Output channels, from the filter's shape. */
  readonly outChannels: (filter: Shape) => number;
  /** Channels that each sum runs over. */
  readonly summed: (filter: Shape) => number;
  readonly isProduct: boolean;
  /** Factors of the dimensions of x, the filter and the output. */
  readonly factors: readonly [x: string, filter: string, y: string];
  /** What the convolution and its gradients consist of, and the calls that run them as a whole. */
  readonly forward: Forms;
  readonly byInput: Forms;
  readonly byFilter: Forms;
}

type Forms = Pick<Composite, 'decompose' | 'device'>;

/** A convolution of x by a filter, and its two gradients. */
export function convolutions(
  kernel: string,
  { call, outChannels, summed, isProduct, factors: [x, filter, y], forward, byInput, byFilter }: Kind,
): OperationTable {
  const common = { isProduct, ofEmpty: () => 0 };
  const precision = (raw: RawAttrs): Attrs => (isProduct ? precisionAttr(raw) : {});
  const expectsChannels = (x: Shape, filter: Shape, given: readonly TensorSpec[]): void =>
    expects(filter.length === 4 && x[3] === filter[2], "as many channels as the filter's axis 2 has", given);
  return {
    [kernel]: {
      ...common,
      ...forward,
      call,
      inputs: ['x', 'filter'],
      attrs: (raw, [x, filter]) => ({
        ...windowAttrs(call, x!.shape, sizes(filter!.shape), raw),
        ...precision(raw),
      }),
      infer: ([x, filter], attrs) => {
        expectsImages([x!, filter!]);
        expectsWindows(x!.shape, attrs, [x!]);
        expectsChannels(x!.shape, filter!.shape, [x!, filter!]);
        return [spec(windowed(x!.shape[0]!, attrs, outChannels(filter!.shape)), 'float32')];
      },
      factors: (inputs, outputs) => lettered([x, filter], [y], { inputs, outputs }),
      flops: perTap('output', ([, filter]) => summed(filter!)),
    },
    [`${kernel}BackpropInput`]: {
      ...common,
      ...byInput,
      inputs: ['dy', 'filter'],
      attrs: (raw, [, filter]) => ({
        ...windowAttrs(`The gradient of ${call} by its input`, raw.inputShape, sizes(filter!.shape), raw),
        inputShape: [...raw.inputShape],
        ...precision(raw),
      }),
      infer: ([dy, filter], attrs) => {
        expectsImages([dy!, filter!]);
        const shape = ints(attrs.inputShape);
        expectsWindows(shape, attrs, [spec(shape, 'float32')]);
        expectsChannels(shape, filter!.shape, [dy!, filter!]);
        expectsGradient(dy!, shape[0]!, attrs, outChannels(filter!.shape));
        return [spec(shape, 'float32')];
      },
      factors: (inputs, outputs) =>
        lettered(
          [y, filter],
          [x],
          { inputs, outputs },
          {
            localAttrs: (inputShape) => ({ inputShape }),
          },
        ),
      flops: perTap(0, ([, filter]) => summed(filter!)),
    },
    [`${kernel}BackpropFilter`]: {
      ...common,
      ...byFilter,
      inputs: ['x', 'dy'],
      attrs: (raw, [x]) => ({
        ...windowAttrs(`The gradient of ${call} by its filter`, x!.shape, sizes(raw.filterShape), raw),
        filterShape: [...raw.filterShape],
        ...precision(raw),
      }),
      infer: ([x, dy], attrs) => {
        expectsImages([x!, dy!]);
        const shape = ints(attrs.filterShape);
        expectsWindows(x!.shape, attrs, [x!]);
        expectsChannels(x!.shape, shape, [x!, dy!]);
        expectsGradient(dy!, x!.shape[0]!, attrs, outChannels(shape));
        return [spec(shape, 'float32')];
      },
      factors: (inputs, outputs) =>
        lettered(
          [x, y],
          [filter],
          { inputs, outputs },
          {
            localAttrs: (filterShape) => ({ filterShape }),
          },
        ),
      flops: perTap(1, (_, attrs) => summed(ints(attrs.filterShape))),
    },
  };
}

const poolAttrs =
  (name: string, input: number): NonNullable<Composite['attrs']> =>
  (raw, inputs) => {
    const { filterSize } = raw;
    const window = typeof filterSize === 'number' ? ([filterSize, filterSize] as const) : filterSize;
    return windowAttrs(name, inputs[input]!.shape, window, raw);
  };

/** Windows reach over rows and columns of an image. */
const ofImages = alongAxes(() => [1, 2]);

/** A pooling. */
export const pooling = (
  name: string,
  takes: readonly DType[],
  decompose: Composite['decompose'],
): Composite => ({
  decompose,
  inputs: ['x'],
  attrs: poolAttrs(name, 0),
  infer: ([x], attrs) => {
    expectsImages([x!], takes);
    expectsWindows(x!.shape, attrs, [x!]);
    return [spec(windowed(x!.shape[0]!, attrs, x!.shape[3]!), x!.dtype)];
  },
  factors: ofImages,
  flops: (_, [out], attrs) => sizeOf(out!.shape) * tapsOf(attrs),
});

/** The gradient of a pooling. */
export const poolingGradient = (
  name: string,
  inputs: readonly string[],
  decompose: Composite['decompose'],
): Composite => ({
  decompose,
  inputs,
  attrs: poolAttrs(name, 1),
  infer: ([dy, x, y], attrs) => {
    expectsImages([dy!, x!, y ?? dy!]);
    expectsWindows(x!.shape, attrs, [x!]);
    for (const output of [dy!, y ?? dy!]) expectsGradient(output, x!.shape[0]!, attrs, x!.shape[3]!);
    return [spec(x!.shape, x!.dtype)];
  },
  factors: ofImages,
  flops: ([dy], _, attrs) => sizeOf(dy!.shape) * tapsOf(attrs),
});
