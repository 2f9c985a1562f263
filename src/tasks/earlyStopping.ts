/** @file Early stopping functions: whether training ends at a step, by the metrics known there (Pax's early_stopping_fn). */
import { z } from 'zod';
import { ConfigError, Configurable, didYouMean } from '../hparams/index.js';

/** State of a job when its early stopping function is asked. */
export interface StoppingInputs {
  /**
   * Newest values under Pax's keys: `train/<m>`, `eval_train/metrics/<m>`, `eval_test_<dataset>/metrics/<m>`,
   * `decode_test_<dataset>/<m>`, `num_params`.
   */
  readonly metrics: Readonly<Record<string, number>>;
  /** Keys of those that are of this very step. */
  readonly fresh: ReadonlySet<string>;
  /** Programs that have metrics of this step: `train_eval_train`, say, as Pax joins them. */
  readonly runningMode: string;
  /** Finished steps. */
  readonly step: number;
  /** Whether training ends here anyway. */
  readonly isLast: boolean;
}

/** Decides whether training ends; asked wherever an evaluation, a decode or a summary has given metrics. */
export abstract class BaseEarlyStoppingFn extends Configurable.with({}) {
  static override readonly isAbstract = true;

  /** @returns the reason to stop, or false. */
  abstract shouldStop(inputs: StoppingInputs): string | false;
}

/** Stops once a metric reaches a target, as MLPerf's runs of GPT-3 do (paxml's c4.EarlyStoppingFn). */
export class StopAtTarget extends BaseEarlyStoppingFn.with({
  metric: z
    .string()
    .min(1)
    .describe("Pax's key of the metric: eval_test_<dataset>/metrics/log_pplx, train/total_loss."),
  target: z.number().describe('The value at which training stops.'),
  mode: z.enum(['min', 'max']).default('min').describe('Whether it is reached from above or from below.'),
}) {
  /** @throws ConfigError where the metric's program has run, and has no such metric. */
  override shouldStop({ metrics, fresh }: StoppingInputs): string | false {
    const { metric, target, mode } = this.hp;
    if (!fresh.has(metric)) {
      this.#checkName(metric, fresh);
      return false;
    }
    const value = metrics[metric]!;
    const isReached = mode === 'min' ? value <= target : value >= target;
    return isReached && `${metric} is ${value}, and its target ${target}.`;
  }

  #checkName(metric: string, fresh: ReadonlySet<string>): void {
    const program = metric.split('/')[0]!;
    const names = [...fresh].filter((name) => name.startsWith(`${program}/`));
    if (names.length === 0) return;
    throw new ConfigError(
      `task.earlyStoppingFn.metric: '${program}' has no '${metric}'.${didYouMean(metric, names)} It has: ${names.join(', ')}.`,
      { path: 'task.earlyStoppingFn.metric' },
    );
  }
}
