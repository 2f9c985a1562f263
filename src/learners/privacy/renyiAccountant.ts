/**
 * @file Privacy of the sampled Gaussian mechanism by Rényi divergences (Mironov, Talwar and Zhang, "Rényi Differential Privacy
 * of the Sampled Gaussian Mechanism", 2019).
 */

/** Orders at which divergences are computed, those of PyPI's dp-accounting. */
const ORDERS: readonly number[] = [
  ...Array.from({ length: 99 }, (_, i) => 1 + (i + 1) / 10),
  ...Array.from({ length: 53 }, (_, i) => 11 + i),
  ...[128, 256, 512, 1024],
];

/** Terms of a series below e to this do not count. */
const NEGLIGIBLE = -30;

/** log(e^a + e^b) */
function logAdd(a: number, b: number): number {
  const [high, low] = a > b ? [a, b] : [b, a];
  return low === Number.NEGATIVE_INFINITY ? high : high + Math.log1p(Math.exp(low - high));
}

/** log(e^a − e^b), of a ≥ b */
const logSubtract = (a: number, b: number): number =>
  b === Number.NEGATIVE_INFINITY ? a : a + Math.log(-Math.expm1(Math.min(0, b - a)));

/** Natural logarithm of the complementary error function. */
export function logErfc(x: number): number {
  if (x < 0) return Math.log(2 - Math.exp(logErfc(-x)));
  if (x < 2.5) {
    // erf(x) = 2 / √π e^(−x²) Σ 2^n x^(2n + 1) / (2n + 1)!!
    let [term, sum] = [x, x];
    for (let n = 1; term > sum * 1e-17; n++) {
      term *= (2 * x * x) / (2 * n + 1);
      sum += term;
    }
    return Math.log1p((-2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum);
  }
  // erfc(x) = e^(−x²) / √π · 1 / (x + (1/2) / (x + 1 / (x + (3/2) / …)))
  let fraction = x;
  for (let n = 80; n > 0; n--) fraction = x + n / 2 / fraction;
  return -x * x - Math.log(Math.sqrt(Math.PI) * fraction);
}

/** log A of a whole order, by the binomial expansion. */
function logMomentWhole(q: number, sigma: number, order: number): number {
  let sum = Number.NEGATIVE_INFINITY;
  let logBinomial = 0;
  for (let k = 0; k <= order; k++) {
    const term =
      logBinomial + k * Math.log(q) + (order - k) * Math.log1p(-q) + (k * k - k) / (2 * sigma ** 2);
    sum = logAdd(sum, term);
    logBinomial += Math.log((order - k) / (k + 1));
  }
  return sum;
}

/** log A of any order, by two series on both sides of the point where the densities are equal (section 3.3). */
function logMomentAny(q: number, sigma: number, order: number): number {
  const equal = sigma ** 2 * Math.log(1 / q - 1) + 1 / 2;
  const sums = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
  let binomial = 1;
  for (let i = 0; ; i++) {
    const j = order - i;
    const half = (x: number): number => Math.log(0.5) + logErfc(x / (Math.SQRT2 * sigma));
    const term = (k: number, rest: number, tail: number): number =>
      Math.log(Math.abs(binomial)) +
      k * Math.log(q) +
      rest * Math.log1p(-q) +
      (k * k - k) / (2 * sigma ** 2) +
      half(tail);
    const terms = [term(i, j, i - equal), term(j, i, equal - j)];
    for (const side of [0, 1])
      sums[side] = binomial > 0 ? logAdd(sums[side]!, terms[side]!) : logSubtract(sums[side]!, terms[side]!);
    if (Math.max(...terms) < NEGLIGIBLE) return logAdd(sums[0]!, sums[1]!);
    binomial *= (order - i) / (i + 1);
  }
}

/** Rényi divergence of one step at an order above 1. @param q share of the examples that a step draws, each by itself */
export function renyiDivergence(q: number, sigma: number, order: number): number {
  if (q === 0) return 0;
  if (sigma === 0) return Number.POSITIVE_INFINITY;
  if (q === 1) return order / (2 * sigma ** 2);
  const moment = Number.isInteger(order) ? logMomentWhole : logMomentAny;
  return moment(q, sigma, order) / (order - 1);
}

/**
 * The epsilon for which `steps` steps are (epsilon, delta)-differentially private, where each draws every example with
 * probability `q` by itself: of all orders the least (Canonne, Kamath and Steinke, 2020, proposition 12).
 *
 * @param sigma standard deviation of the noise over the bound of an example's gradient.
 */
export function epsilonOf(q: number, sigma: number, steps: number, delta: number): number {
  const all = ORDERS.map((order) => {
    const divergence = steps * renyiDivergence(q, sigma, order);
    // The total variation is at most √(1 − e^(−divergence)).
    if (delta ** 2 + Math.expm1(-divergence) > 0) return 0;
    return divergence + Math.log1p(-1 / order) - Math.log(delta * order) / (order - 1);
  });
  return Math.max(0, Math.min(...all));
}
