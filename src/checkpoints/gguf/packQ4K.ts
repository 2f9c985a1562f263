/**
 * @file Packing of Q4_K: 256 elements as 4 bits each, in eighths with a scale and a minimum of 6 bits, which two float16 scale.
 * Scales and minima are fitted as ggml fits them: the best of 21 candidates by weighted least squares.
 */
import { putHalf } from './halves.js';

const PART = 32;
const PARTS = 8;
const MOST_CODE = 15;
const MOST_SCALE = 63;

/** An eighth as `scale * code - minimum`. */
interface Fit {
  readonly scale: number;
  readonly minimum: number;
}

/** Scale and minimum of an eighth; larger elements weigh more. */
function fit(x: Float32Array): Fit {
  let [least, most, squares] = [0, Number.NEGATIVE_INFINITY, 0];
  for (const value of x) {
    least = Math.min(least, value);
    most = Math.max(most, value);
    squares += value * value;
  }
  if (most <= least) return { scale: 0, minimum: -least };
  const mean = Math.sqrt(squares / x.length);
  const weights = x.map((value) => mean + Math.abs(value));
  let best: Fit = { scale: (most - least) / MOST_CODE, minimum: -least };
  let error = errorOf(best, x, weights, (most - least) / MOST_CODE, least);
  for (let step = 0; step <= 20; step++) {
    // Codes of a range that is a little wider or narrower, and the line that fits them best.
    const spacing = (most - least) / (MOST_CODE - 1 + 0.1 * step);
    const next = fitted(x, weights, spacing, least);
    if (next === undefined) continue;
    const nextError = errorOf(next, x, weights, spacing, least);
    if (nextError < error) [best, error] = [next, nextError];
  }
  return best;
}

const codeOf = (value: number): number => Math.min(Math.max(Math.round(value), 0), MOST_CODE);

function errorOf(
  { scale, minimum }: Fit,
  x: Float32Array,
  weights: Float32Array,
  spacing: number,
  least: number,
): number {
  let sum = 0;
  for (let i = 0; i < x.length; i++)
    sum += weights[i]! * (scale * codeOf((x[i]! - least) / spacing) - minimum - x[i]!) ** 2;
  return sum;
}

/** The weighted least squares of a line through codes; undefined where all are one. */
function fitted(x: Float32Array, weights: Float32Array, spacing: number, least: number): Fit | undefined {
  let [w, wl, wll, wx, wxl] = [0, 0, 0, 0, 0];
  for (let i = 0; i < x.length; i++) {
    const [weight, code] = [weights[i]!, codeOf((x[i]! - least) / spacing)];
    w += weight;
    wl += weight * code;
    wll += weight * code * code;
    wx += weight * x[i]!;
    wxl += weight * x[i]! * code;
  }
  const determinant = w * wll - wl * wl;
  if (determinant <= 0) return undefined;
  const minimum = -(wll * wx - wl * wxl) / determinant;
  // A minimum is stored without a sign.
  return minimum < 0
    ? { scale: wxl / wll, minimum: 0 }
    : { scale: (w * wxl - wl * wx) / determinant, minimum };
}

/** Packs one block of 256. */
export function packQ4K(values: Float32Array, from: number, bytes: Uint8Array, at: number): void {
  const parts = Array.from({ length: PARTS }, (_, j) =>
    values.subarray(from + PART * j, from + PART * (j + 1)),
  );
  const fits = parts.map(fit);
  const d = putHalf(bytes, at, Math.max(0, ...fits.map(({ scale }) => scale)) / MOST_SCALE);
  const m = putHalf(bytes, at + 2, Math.max(0, ...fits.map(({ minimum }) => minimum)) / MOST_SCALE);
  const steps = (value: number, unit: number): number =>
    unit === 0 ? 0 : Math.min(Math.max(Math.round(value / unit), 0), MOST_SCALE);
  parts.forEach((part, j) => {
    const [scale, minimum] = [steps(fits[j]!.scale, d), steps(fits[j]!.minimum, m)];
    putScales(bytes, at + 4, j, scale, minimum);
    const unit = d * scale;
    part.forEach((value, i) => {
      const code = unit === 0 ? 0 : codeOf((value + m * minimum) / unit);
      bytes[at + 16 + (j >> 1) * PART + i]! |= j % 2 === 0 ? code : code << 4;
    });
  });
}

/** The 6 bits of both: those of the last four eighths are split over the others' spare bits. */
function putScales(bytes: Uint8Array, at: number, j: number, scale: number, minimum: number): void {
  if (j < 4) {
    bytes[at + j]! |= scale;
    bytes[at + j + 4]! |= minimum;
    return;
  }
  bytes[at + j + 4] = (scale & 15) | ((minimum & 15) << 4);
  bytes[at + j - 4]! |= (scale >> 4) << 6;
  bytes[at + j]! |= (minimum >> 4) << 6;
}
