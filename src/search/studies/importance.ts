/** @file Importance of parameters: how far the best trials' values of each stand out (Watanabe et al., 2023: PED-ANOVA). */
import {
  type Domain,
  intervalOf,
  type NumberDomain,
  pointOf,
  type Space,
  sizeOf,
  type Value,
} from '../space.js';
import { byReward, rewarded, type Trial } from '../trial.js';

/** Share of the trials that count as the best. */
const BEST_SHARE = 0.1;
/** Cells of a domain of numbers. */
const CELLS = 50;

/** Weights of values on cells: those of choices, or kernels of numbers around them, summing up to 1. */
function densityOf(domain: Domain, values: readonly Value[]): Float64Array {
  const cells = new Float64Array(domain.kind === 'choice' ? domain.values.length : CELLS);
  if (domain.kind === 'choice') for (const value of values) cells[domain.values.indexOf(value)]! += 1;
  else addKernels(cells, domain, values as readonly number[]);
  // A little of every cell, so that none is impossible.
  const total = cells.reduce((sum, each) => sum + each, 0) + 1;
  return cells.map((each) => (each + 1 / cells.length) / total);
}

/** Normal kernels whose width is Scott's rule. */
function addKernels(cells: Float64Array, domain: NumberDomain, values: readonly number[]): void {
  const { low, high } = intervalOf(domain);
  const points = values.map((value) => (pointOf(domain, value) - low) / (high - low));
  const mean = points.reduce((sum, each) => sum + each, 0) / points.length;
  const spread = Math.sqrt(points.reduce((sum, each) => sum + (each - mean) ** 2, 0) / points.length);
  const width = Math.max(1 / CELLS, 1.06 * spread * points.length ** -0.2);
  for (const point of points) {
    const kernel = cells.map((_, i) => Math.exp(-0.5 * (((i + 0.5) / CELLS - point) / width) ** 2));
    const total = kernel.reduce((sum, each) => sum + each, 0);
    for (const [i, each] of kernel.entries()) cells[i]! += each / total;
  }
}

/**
 * Importance of each parameter: the Pearson divergence of its values among the best trials from those among all, as
 * shares of 1. A conditional one counts by the trials that have it.
 *
 * @returns nothing where fewer than ten trials have rewards.
 */
export function importanceOf(space: Space, trials: readonly Trial[]): ReadonlyMap<string, number> {
  const divergences = Object.entries(space).flatMap(([name, domain]): [string, number][] => {
    const known = rewarded(trials).filter(({ values }) => values[name] !== undefined);
    if (known.length < 10 || sizeOf(domain) === 1) return [];
    const best = byReward(known).slice(0, Math.max(3, Math.ceil(BEST_SHARE * known.length)));
    const [top, all] = [best, known].map((some) =>
      densityOf(
        domain,
        some.map(({ values }) => values[name]!),
      ),
    );
    const divergence = all!.reduce((sum, each, i) => sum + each * (top![i]! / each - 1) ** 2, 0);
    return [[name, divergence * (known.length / rewarded(trials).length)]];
  });
  const total = divergences.reduce((sum, [, each]) => sum + each, 0);
  return new Map(
    divergences
      .map(([name, each]): [string, number] => [name, total === 0 ? 0 : each / total])
      .sort(([, a], [, b]) => b - a),
  );
}
