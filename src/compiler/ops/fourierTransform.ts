/** @file Discrete Fourier transforms of pairs of real tensors, by products with tables of cosines and sines. */
import { runInPrecision } from '../program/precision.js';
import { sameShape, sizeOf } from '../program/tensors.js';
import { defineOperation } from '../rules/index.js';
import { expects, expectsDtypes, FLOAT, spec } from '../rules/operation.js';
import * as tf from '../tfjs/tfjs.js';
import { hostConstant, isTracing, isZeros, recordOp } from '../trace/tracing.js';

/** Real and imaginary parts. */
export type Parts = readonly [real: tf.Tensor, imag: tf.Tensor];

/** The longest transform that is one product, unless its length is prime. */
const LONGEST_PRODUCT = 64;

/** Up to this length, a product is cheaper than a convolution of twice the length. */
const LONGEST_PRIME = 256;

/** cos and sin of 2 pi i / n, which symmetries make exact where they are 0, 1/2 or 1. */
const cosineOf = (i: number, n: number): number => sineOf(4 * i + n, 4 * n);
function sineOf(i: number, n: number): number {
  const turn = i % n;
  if (2 * turn >= n) return -sineOf(turn - n / 2, n);
  if (4 * turn > n) return sineOf(n / 2 - turn, n);
  if (8 * turn > n) return Math.cos((2 * Math.PI * (n / 4 - turn)) / n);
  return Math.sin((2 * Math.PI * turn) / n);
}

const constant = (key: string, shape: readonly number[], at: (i: number, j: number) => number): tf.Tensor =>
  hostConstant(`fourier ${key}`, { shape, dtype: 'float32' }, () => {
    const columns = shape.at(-1)!;
    return Float32Array.from({ length: sizeOf(shape) }, (_, k) => at(Math.floor(k / columns), k % columns));
  });

/**
 * exp(-2 pi i j k / n) as the matrix of a product with the parts side by side: from [real, imag], or from the real part
 * alone, to [real, imag].
 */
const rootTable = (n: number, isReal: boolean): tf.Tensor =>
  constant(`roots ${n} ${isReal}`, [isReal ? n : 2 * n, 2 * n], (row, column) => {
    const [j, k] = [row % n, column % n];
    const [cos, sin] = [cosineOf((j * k) % n, n), sineOf((j * k) % n, n)];
    if (row < n === column < n) return cos;
    return row < n ? -sin : sin;
  });

const halves = (x: tf.Tensor, axis: number): Parts => tf.split(x, 2, axis) as [tf.Tensor, tf.Tensor];

function times([ar, ai]: Parts, [br, bi]: Parts): Parts {
  return [tf.sub(tf.mul(ar, br), tf.mul(ai, bi)), tf.add(tf.mul(ar, bi), tf.mul(ai, br))];
}

/** The transform along the last axis of parts [b, n] as one product. */
const byProduct = (real: tf.Tensor, imag: tf.Tensor | null, n: number): Parts =>
  halves(tf.matMul(imag === null ? real : tf.concat([real, imag], 1), rootTable(n, imag === null)), 1);

/** The divisor next to the square root of n, at most `LONGEST_PRODUCT`; 1 where there is none. */
function divisorOf(n: number): number {
  for (let d = Math.min(LONGEST_PRODUCT, Math.floor(Math.sqrt(n))); d > 1; d--) if (n % d === 0) return d;
  return 1;
}

/** Transforms of length n = d m as d-point transforms, factors and m-point transforms (Cooley & Tukey, 1965). */
function byFactors(real: tf.Tensor, imag: tf.Tensor | null, n: number, d: number): Parts {
  const [batch, m] = [real.shape[0]!, n / d];
  const columns = (x: tf.Tensor): tf.Tensor => tf.reshape(x, [batch, d, m]);
  const table = tf.expandDims(tf.transpose(rootTable(d, imag === null)));
  const first = halves(
    tf.matMul(table, imag === null ? columns(real) : tf.concat([columns(real), columns(imag)], 1)),
    1,
  );
  const factors: Parts = [
    constant(`cos ${n} ${d}`, [d, m], (k, j) => cosineOf(k * j, n)),
    constant(`-sin ${n} ${d}`, [d, m], (k, j) => -sineOf(k * j, n)),
  ];
  const turned = times(first, factors).map((x) => tf.reshape(x, [batch * d, m])) as unknown as Parts;
  return transformRows(...turned).map((x) =>
    tf.reshape(tf.transpose(tf.reshape(x, [batch, d, m]), [0, 2, 1]), [batch, n]),
  ) as unknown as Parts;
}

/** Transforms of prime length as a convolution with a chirp, of a length that is a power of two (Bluestein, 1970). */
function byChirp(real: tf.Tensor, imag: tf.Tensor, n: number): Parts {
  const size = 2 ** Math.ceil(Math.log2(2 * n - 1));
  const square = (k: number): number => Number((BigInt(k) * BigInt(k)) % BigInt(2 * n));
  const chirp = (name: string, at: (i: number, n: number) => number): tf.Tensor =>
    constant(`chirp ${name} ${n}`, [1, n], (_, k) => at(square(k), 2 * n));
  const [cos, sin] = [chirp('cos', cosineOf), chirp('sin', sineOf)];
  const around = (at: (i: number, n: number) => number) => (_: number, k: number) =>
    Math.min(k, size - k) < n ? at(square(Math.min(k, size - k)), 2 * n) : 0;
  const kernel = transformRows(
    constant(`around cos ${n}`, [1, size], around(cosineOf)),
    constant(`around sin ${n}`, [1, size], around(sineOf)),
  );
  const down: Parts = [cos, tf.neg(sin)];
  const padded = times([real, imag], down).map((x) =>
    tf.pad(x, [
      [0, 0],
      [0, size - n],
    ]),
  );
  const [productReal, productImag] = times(transformRows(padded[0]!, padded[1]!), kernel);
  // The inverse transform is the transform with the parts exchanged.
  const [convolvedImag, convolvedReal] = transformRows(productImag, productReal);
  const cut = (x: tf.Tensor): tf.Tensor => tf.mul(tf.slice(x, [0, 0], [-1, n]), 1 / size);
  return times([cut(convolvedReal), cut(convolvedImag)], down);
}

/** The transform along the last axis of parts [b, n]. */
function transformRows(real: tf.Tensor, imag: tf.Tensor | null): Parts {
  const n = real.shape[1]!;
  const divisor = divisorOf(n);
  if (n <= LONGEST_PRODUCT || (divisor === 1 && n <= LONGEST_PRIME)) return byProduct(real, imag, n);
  if (divisor > 1) return byFactors(real, imag, n, divisor);
  return byChirp(real, imag ?? tf.zerosLike(real), n);
}

defineOperation('FourierTransform', {
  inputs: 'list',
  attrs: (raw) => ({ scale: raw.scale }),
  infer: (inputs) => {
    expectsDtypes(inputs, FLOAT);
    const [{ shape }, imag] = inputs as [(typeof inputs)[0], (typeof inputs)[0]?];
    const fits = shape.length > 0 && (imag === undefined || sameShape(imag.shape, shape));
    expects(fits, 'a tensor [..., n], or two of one shape', inputs);
    return [spec(shape, 'float32'), spec(shape, 'float32')];
  },
  flops: ([real], [out]) => 5 * sizeOf(out!.shape) * Math.log2(Math.max(1, real!.shape.at(-1)!)),
  decompose: ([real, imag], { scale }) =>
    runInPrecision('float32', () => {
      const { shape } = real!;
      const rows = (x: tf.Tensor): tf.Tensor => tf.reshape(x, [-1, shape.at(-1)!]);
      return transformRows(rows(real!), imag ? rows(imag) : null).map((x) => {
        const whole = tf.reshape(x, [...shape]);
        return scale === 1 ? whole : tf.mul(whole, scale as number);
      });
    }),
});

/**
 * The discrete Fourier transform along the last axis, times `scale`: the sums over j of x[j] exp(-2 pi i j k / n). With
 * the parts exchanged, before and after, it is the inverse, but for the scale 1 / n.
 */
export function fourierTransform(real: tf.Tensor, imag: tf.Tensor, scale = 1): Parts {
  const inputs = isTracing() && isZeros(imag) ? [real] : [real, imag];
  return recordOp('FourierTransform', inputs, { scale }) as unknown as Parts;
}
