/**
 * @file Distributions of random words, with the same bits on every machine: only operations that IEEE 754 defines to the
 * last bit. runtime/distributions.h and onnx/randomLowerings.ts hold the same operations, in the same order.
 */

/** c0 + z (c1 + z (c2 + … + z (c_last + z / divisor))), each operation rounded. */
export interface Series {
  readonly coefficients: readonly number[];
  readonly divisor: number;
}

/** The sum of a series of seven or eight coefficients. A loop would be slower. */
function sumOf({ coefficients: c, divisor }: Series, z: number): number {
  const last = z / divisor;
  const seventh = c.length === 8 ? c[6]! + z * (c[7]! + last) : c[6]! + last;
  return c[0]! + z * (c[1]! + z * (c[2]! + z * (c[3]! + z * (c[4]! + z * (c[5]! + z * seventh)))));
}

/** (artanh(s) / s - 1) / z by z = s^2. */
export const ARTANH: Series = {
  coefficients: [1 / 3, 1 / 5, 1 / 7, 1 / 9, 1 / 11, 1 / 13, 1 / 15, 1 / 17],
  divisor: 19,
};

/** sin(x) / x by x^2. */
export const SINE: Series = {
  coefficients: [1, -1 / 6, 1 / 120, -1 / 5040, 1 / 362880, -1 / 39916800, 1 / 6227020800],
  divisor: -1307674368000,
};

/** cos(x) by x^2. */
export const COSINE: Series = {
  coefficients: [1, -1 / 2, 1 / 24, -1 / 720, 1 / 40320, -1 / 3628800, 1 / 479001600, -1 / 87178291200],
  divisor: 20922789888000,
};

/** The natural logarithm of mantissa * 2^exponent, with a mantissa from 1 to 2, to one or two units in the last place. */
function logOf(mantissa: number, exponent: number): number {
  const isLarge = mantissa > Math.SQRT2;
  const m = isLarge ? mantissa * 0.5 : mantissa;
  // log m = 2 artanh((m - 1) / (m + 1)), a series in squares of at most 0.0295.
  const s = (m - 1) / (m + 1);
  const z = s * s;
  return (isLarge ? exponent + 1 : exponent) * Math.LN2 + 2 * (s + s * z * sumOf(ARTANH, z));
}

/** 2^(1 - i) at index i. */
const SCALES = Float64Array.from({ length: 34 }, (_, i) => 2 ** (1 - i));

/** The natural logarithm of (word + 1/2) / 2^32. */
function logOfWord(word: number): number {
  const exponent = 31 - Math.clz32(word);
  return logOf((word + 0.5) * SCALES[exponent + 1]!, exponent - 32);
}

/** A number's bits, to split it into exponent and mantissa. */
const number = new Float64Array(1);
const halves = new Uint32Array(number.buffer);

/** The natural logarithm of a positive number that is not subnormal. */
function logOfNumber(x: number): number {
  number[0] = x;
  const exponent = (halves[1]! >>> 20) - 1023;
  halves[1] = (halves[1]! & 0xfffff) | 0x3ff00000;
  return logOf(number[0]!, exponent);
}

const ANGLE = (2 * Math.PI) / 2 ** 32;

/**
 * The Box-Muller transform (1958): words r and a of one counter give scale * sqrt(-2 log((r + 1/2) / 2^32)) times the
 * cosine and the sine of 2 pi a / 2^32. An odd length drops the last number.
 */
export function fillNormal(bits: Uint32Array, scale: number, out: Float32Array): void {
  for (let i = 0; i < bits.length; i += 2) {
    const radius = scale * Math.sqrt(-2 * logOfWord(bits[i]!));
    const word = bits[i + 1]!;
    // The angle as a number of quarter turns and a remainder of at most an eighth of a turn.
    const turns = ((word >>> 29) + 1) >> 1;
    const x = ANGLE * ((word - (turns << 30)) | 0);
    const z = x * x;
    const sine = x * sumOf(SINE, z);
    const cosine = sumOf(COSINE, z);
    const isTurned = (turns & 1) === 1;
    const c = isTurned ? sine : cosine;
    const s = isTurned ? cosine : sine;
    // Cosines are negative in the second and third quadrants, sines in the third and fourth.
    out[i] = (turns + 1) & 2 ? -radius * c : radius * c;
    out[i + 1] = turns & 2 ? -radius * s : radius * s;
  }
}

/** The part of the normal distribution within two standard deviations. */
const WITHIN_TWO = 0.9544997361036416;

/** Multiplies a magnitude of 31 bits and a half to a probability below `WITHIN_TWO`. */
export const TRUNCATED_SCALE = WITHIN_TWO * 2 ** -31;

/**
 * sqrt(2) erfinv(x) / x for x up to `WITHIN_TWO`, as a quotient of two polynomials in x^2, constant terms first; relative
 * error 1.5e-9, fitted by reweighted least squares.
 */
export const QUANTILE: { readonly above: readonly number[]; readonly below: readonly number[] } = {
  above: [
    1.2533141391595826, -3.8546323507339735, 4.376828774689208, -2.199999143388869, 0.445164728805328,
    -0.02035635627403332,
  ],
  below: [
    1, -3.337350879835634, 4.221986105826804, -2.477952213723387, 0.6488071142128492, -0.05539094509530405,
  ],
};

function horner(coefficients: readonly number[], x: number): number {
  let sum = coefficients.at(-1)!;
  for (let i = coefficients.length - 2; i >= 0; i--) sum = coefficients[i]! + x * sum;
  return sum;
}

/** The quantile of a word, whose highest bit is the sign, under the normal distribution cut at -2 and 2. */
export function truncatedOfWord(word: number): number {
  const x = TRUNCATED_SCALE * ((word & 0x7fffffff) + 0.5);
  const y = x * x;
  const size = (x * horner(QUANTILE.above, y)) / horner(QUANTILE.below, y);
  return word >> 31 ? -size : size;
}

/** The quantile of (word + 1/2) / 2^32 under the standard Gumbel distribution, -log(-log(u)). */
export const gumbelOfWord = (word: number): number => -logOfNumber(-logOfWord(word));
