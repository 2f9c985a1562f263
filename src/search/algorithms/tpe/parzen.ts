/** @file Parzen estimator of values of several parameters: a mixture with a kernel for each trial, and one of the whole space. */
import type { Draws } from '../../proposalDraws.js';
import {
  type Domain,
  intervalOf,
  type NumberDomain,
  pointOf,
  type Value,
  type Values,
  valueAt,
} from '../../space.js';
import { drawTruncated, normalMass } from './normal.js';

/** Kernels of one parameter: one for each observation, and the last of the whole domain. */
interface Kernels {
  draw(kernel: number, draws: Draws): Value;
  logDensity(kernel: number, value: Value): number;
}

/** Choices: an observed one is likelier than the others, the less so the fewer observations there are. */
class ChoiceKernels implements Kernels {
  readonly #weights: Float64Array[];

  constructor(
    private readonly values: readonly Value[],
    observed: readonly Value[],
  ) {
    const prior = 1 / (observed.length + 1);
    const total = 1 + prior * values.length;
    this.#weights = observed.map((own) =>
      Float64Array.from(values, (value) => (prior + (value === own ? 1 : 0)) / total),
    );
    this.#weights.push(new Float64Array(values.length).fill(1 / values.length));
  }

  draw(kernel: number, draws: Draws): Value {
    return this.values[draws.weighted(this.#weights[kernel]!)]!;
  }

  logDensity(kernel: number, value: Value): number {
    return Math.log(this.#weights[kernel]![this.values.indexOf(value)]!);
  }
}

/** Numbers: truncated normal distributions around the observed ones, as wide as the farther of two neighbours is away. */
class NumberKernels implements Kernels {
  readonly #low: number;
  readonly #high: number;
  readonly #means: number[];
  readonly #deviations: number[];
  /** Logarithms of the mass between the bounds. */
  readonly #logMasses: number[];
  /** Of a domain with steps, logarithms of the mass at a value by kernel: candidates share their few values. */
  readonly #logCells = new Map<number, Float64Array>();

  constructor(
    private readonly domain: NumberDomain,
    observed: readonly number[],
  ) {
    const { low, high } = intervalOf(domain);
    [this.#low, this.#high] = [low, high];
    const points = observed.map((value) => pointOf(domain, value));
    this.#means = [...points, (low + high) / 2];
    this.#deviations = [...deviationsOf(points, low, high), high - low];
    this.#logMasses = this.#means.map((mean, i) => {
      const deviation = this.#deviations[i]!;
      return Math.log(normalMass((low - mean) / deviation, (high - mean) / deviation));
    });
  }

  draw(kernel: number, draws: Draws): Value {
    const point = drawTruncated(
      this.#means[kernel]!,
      this.#deviations[kernel]!,
      this.#low,
      this.#high,
      draws,
    );
    return valueAt(this.domain, point);
  }

  logDensity(kernel: number, value: Value): number {
    if (this.domain.step !== null) return this.#logCellsAt(value as number)[kernel]!;
    const z = (pointOf(this.domain, value as number) - this.#means[kernel]!) / this.#deviations[kernel]!;
    return -0.5 * z * z - Math.log(this.#deviations[kernel]!) - this.#logMasses[kernel]!;
  }

  #logCellsAt(value: number): Float64Array {
    const known = this.#logCells.get(value);
    if (known !== undefined) return known;
    const [from, to] = [this.#edge(value, -1), this.#edge(value, 1)];
    const cells = Float64Array.from(this.#means, (mean, kernel) => {
      const deviation = this.#deviations[kernel]!;
      const mass = normalMass((from - mean) / deviation, (to - mean) / deviation);
      return Math.log(mass + Number.MIN_VALUE) - this.#logMasses[kernel]!;
    });
    this.#logCells.set(value, cells);
    return cells;
  }

  /** The bound between a value and the next one, half a step away. */
  #edge(value: number, side: number): number {
    const edge = value + (side * this.domain.step!) / 2;
    if (!this.domain.log) return edge;
    return edge > 0 ? Math.log(edge) : this.#low;
  }
}

/**
 * Widths of kernels: the distance to the farther neighbour, for the outermost to the only one; at least a share of the
 * whole, the smaller the more observations there are (Bergstra et al., 2013: magic clipping).
 */
function deviationsOf(points: readonly number[], low: number, high: number): number[] {
  const order = [...points.keys()].sort((i, j) => points[i]! - points[j]!);
  const least = (high - low) / Math.min(100, points.length + 2);
  const deviations = points.map(() => 0);
  for (const [rank, place] of order.entries()) {
    const at = (other: number | undefined, bound: number) => (other === undefined ? bound : points[other]!);
    const [before, after] = [order[rank - 1], order[rank + 1]];
    const left = points[place]! - at(before, low);
    const right = at(after, high) - points[place]!;
    const isOnly = points.length === 1;
    const width =
      before === undefined && !isOnly ? right : after === undefined && !isOnly ? left : Math.max(left, right);
    deviations[place] = Math.min(high - low, Math.max(least, width));
  }
  return deviations;
}

/** An estimator of the parameters of a space that are active together. */
export class ParzenEstimator {
  readonly #names: readonly string[];
  readonly #kernels: readonly Kernels[];
  readonly #weights: Float64Array;
  readonly #logWeights: Float64Array;

  /**
   * @param parameters by name, all active in each observation.
   * @param weights of the observations, and of the kernel of the whole space.
   */
  constructor(
    parameters: ReadonlyMap<string, Domain>,
    observations: readonly Values[],
    weights: readonly number[],
  ) {
    this.#names = [...parameters.keys()];
    this.#kernels = Array.from(parameters, ([name, domain]) => {
      const observed = observations.map((values) => values[name]!);
      return domain.kind === 'choice'
        ? new ChoiceKernels(domain.values, observed)
        : new NumberKernels(domain, observed as number[]);
    });
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    this.#weights = Float64Array.from(weights, (weight) => weight / total);
    this.#logWeights = this.#weights.map(Math.log);
  }

  /** Values of one kernel, drawn by its weight. */
  draw(draws: Draws): Values {
    const kernel = draws.weighted(this.#weights);
    return Object.fromEntries(this.#names.map((name, i) => [name, this.#kernels[i]!.draw(kernel, draws)]));
  }

  /** The logarithm of the density at some values, up to a constant of the space. */
  logDensity(values: Values): number {
    const logs = this.#logWeights.map((logWeight, kernel) =>
      this.#kernels.reduce(
        (sum, each, i) => sum + each.logDensity(kernel, values[this.#names[i]!]!),
        logWeight,
      ),
    );
    const most = logs.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
    return most + Math.log(logs.reduce((sum, log) => sum + Math.exp(log - most), 0));
  }
}
