/** @file The metric by which the best checkpoint is kept and training stops early (Pax's track_decoder_metric and early_stopping_fn). */
import { z } from 'zod';
import { Configurable } from '../hparams/index.js';

/** A metric of an evaluation, which of its values are better, and how long training waits for a better one. */
export class TrackMetric extends Configurable.with({
  evaluation: z.string().min(1).describe('Name of the evaluation: eval_test_<dataset>, or eval_train.'),
  metric: z.string().min(1).default('total_loss').describe('Name of the metric.'),
  mode: z.enum(['min', 'max']).default('min').describe('Whether lower or higher values are better.'),
  minDelta: z.number().nonnegative().default(0).describe('Least difference that counts as better.'),
  patience: z
    .int()
    .positive()
    .nullable()
    .default(null)
    .describe('Evaluations in a row without a better value after which training ends; null: it goes on.'),
}) {
  /** The metric in messages and checkpoints. */
  get label(): string {
    return `${this.hp.evaluation}/${this.hp.metric}`;
  }

  /** Whether `value` is better than `best`, which is undefined before the first one. NaN and infinities never are. */
  isBetter(value: number, best: number | undefined): boolean {
    if (!Number.isFinite(value)) return false;
    if (best === undefined) return true;
    const gain = this.hp.mode === 'min' ? best - value : value - best;
    return gain > this.hp.minDelta;
  }
}
