/** @file Kernels of complex numbers as kernels of their real and imaginary parts. */
import { fourierTransform } from '../ops/fourierTransform.js';
import * as tf from '../tfjs/tfjs.js';
import { type Decomposition, type DecompositionTable, isComplex, runKernel } from './decomposition.js';

/** A tensor's real and imaginary parts; those of a real tensor are itself and zeros. */
const partsOf = (x: tf.Tensor): [tf.Tensor, tf.Tensor] =>
  isComplex(x) ? [tf.real(x), tf.imag(x)] : [x, tf.zerosLike(x)];

const complexOf = (real: tf.Tensor, imag: tf.Tensor): tf.Tensor => tf.complex(real, imag);

/** Kernels that move or add elements: each part by itself. Indices and conditions are for both. */
const PART_BY_PART = [
  ...['Add', 'AddN', 'BroadcastTo', 'Concat', 'Cumsum', 'ExpandDims', 'GatherNd', 'GatherV2', 'Identity'],
  ...['Mean', 'MirrorPad', 'Neg', 'Pack', 'Reshape', 'Reverse', 'ScatterNd', 'Select', 'Slice', 'SplitV'],
  ...['StridedSlice', 'Sub', 'Sum', 'Tile', 'Transpose', 'Unpack', 'UnsortedSegmentSum', 'ZerosLike'],
];

const partByPart =
  (kernel: string): Decomposition =>
  (inputs, attrs) => {
    const parts = Object.entries(inputs).map(
      ([name, x]) => [name, isComplex(x) || x.dtype === 'float32' ? partsOf(x) : [x, x]] as const,
    );
    const [real, imag] = [0, 1].map((part) => {
      const own = Object.fromEntries(parts.map(([name, both]) => [name, both[part]!]));
      // Lists stay lists.
      return runKernel(kernel, (Array.isArray(inputs) ? Object.values(own) : own) as never, attrs);
    }) as [tf.Tensor | tf.Tensor[], tf.Tensor | tf.Tensor[]];
    return Array.isArray(real)
      ? real.map((each, i) => complexOf(each, (imag as tf.Tensor[])[i]!))
      : complexOf(real, imag as tf.Tensor);
  };

/** The constant that pads is real. */
const pad: Decomposition = ({ x }, attrs) => {
  const [real, imag] = partsOf(x!);
  return complexOf(
    runKernel('PadV2', { x: real }, attrs),
    runKernel('PadV2', { x: imag }, { ...attrs, constantValue: 0 }),
  );
};

const multiply: Decomposition = ({ a, b }) => {
  const [[ar, ai], [br, bi]] = [partsOf(a!), partsOf(b!)];
  return complexOf(tf.sub(tf.mul(ar, br), tf.mul(ai, bi)), tf.add(tf.mul(ar, bi), tf.mul(ai, br)));
};

/** Divides by a divisor that is scaled to size 1 first, so that no square overflows (Smith, 1962). */
const divide: Decomposition = ({ a, b }) => {
  const [[ar, ai], [br, bi]] = [partsOf(a!), partsOf(b!)];
  const size = tf.maximum(tf.abs(br), tf.abs(bi));
  const [cr, ci] = [tf.div(br, size), tf.div(bi, size)];
  const square = tf.mul(size, tf.add(tf.square(cr), tf.square(ci)));
  return complexOf(
    tf.div(tf.add(tf.mul(ar, cr), tf.mul(ai, ci)), square),
    tf.div(tf.sub(tf.mul(ai, cr), tf.mul(ar, ci)), square),
  );
};

/** The absolute value without overflow; infinite where a part is, as Math.hypot has it. */
const absolute: Decomposition = ({ x }) => {
  const [real, imag] = partsOf(x!).map((part) => tf.abs(part)) as [tf.Tensor, tf.Tensor];
  const [large, small] = [tf.maximum(real, imag), tf.minimum(real, imag)];
  const ratio = tf.where(tf.equal(large, 0), tf.zerosLike(large), tf.div(small, large));
  const size = tf.mul(large, tf.sqrt(tf.add(tf.square(ratio), 1)));
  const infinite = tf.logicalOr(tf.isInf(real), tf.isInf(imag));
  return tf.where(infinite, tf.fill(size.shape, Number.POSITIVE_INFINITY), size);
};

/** To complex numbers, or to others by the real part. */
const cast: Decomposition = ({ x }, { dtype }) =>
  dtype === 'complex64'
    ? complexOf(...partsOf(isComplex(x!) ? x! : tf.cast(x!, 'float32')))
    : tf.cast(tf.real(x!), dtype);

const onesLike: Decomposition = ({ x }) => {
  const real = tf.real(x!);
  return complexOf(tf.onesLike(real), tf.zerosLike(real));
};

/** The transform with the parts exchanged, before and after. */
const inverse: Decomposition = ({ input }) => {
  const [real, imag] = partsOf(input!);
  const [first, second] = fourierTransform(imag, real, 1 / input!.shape.at(-1)!);
  return complexOf(second, first);
};

/** Decompositions of kernels on complex numbers, by kernel. */
export const complexKernels: DecompositionTable = {
  ...Object.fromEntries(PART_BY_PART.map((kernel) => [kernel, partByPart(kernel)])),
  PadV2: pad,
  Multiply: multiply,
  RealDiv: divide,
  ComplexAbs: absolute,
  Cast: cast,
  OnesLike: onesLike,
  FFT: ({ input }) => complexOf(...fourierTransform(...partsOf(input!))),
  IFFT: inverse,
};
