/** @file Shapes, dtypes and ranges of the arrays of batches. */
import { arraysOf, type Batch } from '../../inputs/index.js';

/** An array of the batches, over all of them. */
export interface ArrayRange {
  readonly path: string;
  /** Of the first batch. */
  readonly shape: readonly number[];
  readonly dtype: string;
  /** Of the finite elements; null without any. */
  readonly min: number | null;
  readonly max: number | null;
  readonly mean: number | null;
  /** Number of elements that are NaN or infinite. */
  readonly nonFinite: number;
}

interface Totals {
  readonly shape: readonly number[];
  readonly dtype: string;
  min: number;
  max: number;
  sum: number;
  finite: number;
  nonFinite: number;
}

/** Ranges of the arrays of all batches added. */
export class ArrayRanges {
  readonly #arrays = new Map<string, Totals>();

  add(batch: Batch): void {
    for (const [path, { shape, dtype, data }] of arraysOf(batch)) {
      const empty = { min: Number.POSITIVE_INFINITY, max: Number.NEGATIVE_INFINITY };
      const totals = this.#arrays.get(path) ?? { shape, dtype, ...empty, sum: 0, finite: 0, nonFinite: 0 };
      this.#arrays.set(path, totals);
      for (const value of data) {
        if (!Number.isFinite(value)) {
          totals.nonFinite++;
          continue;
        }
        totals.min = Math.min(totals.min, value);
        totals.max = Math.max(totals.max, value);
        totals.sum += value;
        totals.finite++;
      }
    }
  }

  get ranges(): ArrayRange[] {
    return [...this.#arrays].map(([path, { shape, dtype, min, max, sum, finite, nonFinite }]) => {
      const known = finite > 0;
      const range = known ? { min, max, mean: sum / finite } : { min: null, max: null, mean: null };
      return { path, shape, dtype, ...range, nonFinite };
    });
  }
}
