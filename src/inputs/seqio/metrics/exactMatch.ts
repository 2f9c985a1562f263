/** @file ExactMatch: share of predictions that equal their targets. */
import { isDeepStrictEqual } from 'node:util';
import { BasePredictMetric } from './taskMetric.js';

/** Share of the predictions that equal their targets, texts or other values (T5's accuracy and sequence_accuracy, as a share). */
export class ExactMatch extends BasePredictMetric {
  override compute(targets: readonly unknown[], predictions: readonly unknown[]): number {
    return targets.filter((target, i) => isDeepStrictEqual(target, predictions[i])).length / targets.length;
  }
}
