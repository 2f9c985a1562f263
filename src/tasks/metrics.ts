/** @file Weighted scalars and their mean over many steps (Pax's WeightedScalars). */

import type { Images, NamedTable } from '../summaries/index.js';

/** A metric's value and the weight it counts with, usually the number of tokens behind it. */
export interface WeightedValue {
  readonly value: number;
  readonly weight: number;
}

/** A metric of many numbers, with names: a confusion matrix, figures by class. */
export type MetricTable = NamedTable;

/** A metric that is a picture. */
export type MetricImages = Images;

/** Metrics by name. */
export type WeightedValues = Readonly<Record<string, WeightedValue>>;

/**
 * Accumulates weighted means in float64: Σ value·weight ÷ max(Σ weight, 1e-6). The result does not depend on how
 * examples were grouped into batches, padding rows (weight 0) included.
 */
export class WeightedMeans {
  private readonly sums = new Map<string, { sum: number; weight: number }>();

  /** Adds one batch's metrics. A value with weight 0 counts for nothing, even if it is not finite. */
  add(metrics: WeightedValues): void {
    for (const [name, { value, weight }] of Object.entries(metrics)) {
      const entry = this.sums.get(name) ?? { sum: 0, weight: 0 };
      if (weight !== 0) entry.sum += value * weight;
      entry.weight += weight;
      this.sums.set(name, entry);
    }
  }

  /** Mean and total weight of each metric, in the order in which they were first added. */
  result(): Record<string, WeightedValue> {
    const means = [...this.sums].map(([name, { sum, weight }]) => {
      return [name, { value: sum / Math.max(weight, 1e-6), weight }] as const;
    });
    return Object.fromEntries(means);
  }

  /** The sums so far, [Σ value·weight, Σ weight] by name. */
  sumsByName(): Record<string, readonly [number, number]> {
    return Object.fromEntries([...this.sums].map(([name, { sum, weight }]) => [name, [sum, weight]]));
  }

  /** Goes on from such sums. */
  restore(sums: Readonly<Record<string, readonly [number, number]>>): void {
    this.clear();
    for (const [name, [sum, weight]] of Object.entries(sums)) this.sums.set(name, { sum, weight });
  }

  clear(): void {
    this.sums.clear();
  }
}
