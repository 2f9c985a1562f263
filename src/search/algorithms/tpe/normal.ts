/** @file The normal distribution's cumulative function, and draws of a truncated one. */
import type { Draws } from '../../proposalDraws.js';

/** erfc(x) of x from 2 on: the continued fraction of Abramowitz and Stegun (7.1.14), from its end. */
function erfcTail(x: number): number {
  let fraction = x;
  for (let k = 16; k > 0; k--) fraction = x + k / 2 / fraction;
  return Math.exp(-x * x) / (fraction * Math.sqrt(Math.PI));
}

/** erf(x) for |x| below 2: the series of Abramowitz and Stegun (7.1.6), whose terms are all of one sign. */
function erfSeries(x: number): number {
  let term = x;
  let sum = x;
  for (let n = 1; Math.abs(term) > 1e-12 * Math.abs(sum); n++) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

/** The probability that a normal number of mean 0 and deviation 1 is between two bounds. */
export function normalMass(low: number, high: number): number {
  // Far out on one side, the difference of two numbers near to 1 has no digits left.
  if (low > 0) return normalMass(-high, -low);
  return below(high) - below(low);
}

/** To nine digits. */
function below(z: number): number {
  const x = z * Math.SQRT1_2;
  if (x <= -2) return erfcTail(-x) / 2;
  return x >= 2 ? 1 - erfcTail(x) / 2 : (1 + erfSeries(x)) / 2;
}

/** A draw of a normal distribution between two bounds that its mean is between. */
export function drawTruncated(
  mean: number,
  deviation: number,
  low: number,
  high: number,
  draws: Draws,
): number {
  for (;;) {
    const value = mean + deviation * draws.normal();
    if (value >= low && value <= high) return value;
  }
}
