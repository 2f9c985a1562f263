/** @file Policies of checkpoints as configs: when a run saves beside Pax's fixed interval, and which checkpoints it keeps for that. */
import { z } from 'zod';
import {
  type CheckpointPolicy,
  newestSteps,
  parseDuration,
  type SavedCheckpoint,
  type SaveMoment,
} from '../checkpoints/index.js';
import { Configurable } from '../hparams/index.js';

function isDuration(value: string | number): boolean {
  try {
    parseDuration(value);
    return true;
  } catch {
    return false;
  }
}

/** A duration such as 12h, or seconds. */
export const duration = z.union([z.string(), z.number().nonnegative()]).refine(isDuration, {
  error: (issue) => `expected a duration such as 12h, 30m, 90s or 2d, got '${issue.input}'`,
});

const keep = z
  .int()
  .nonnegative()
  .nullable()
  .describe('How many of the newest that it saves are kept; null: all.');

/** A policy of `task.train.checkpointPolicies`. All of them add up, with the fields of `Train`. */
export abstract class BaseCheckpointPolicy extends Configurable.with({}) implements CheckpointPolicy {
  static override readonly isAbstract = true;

  abstract isDue(moment: SaveMoment): boolean;

  abstract kept(checkpoints: readonly SavedCheckpoint[]): readonly number[];
}

/** Saves every so many steps. Two of them are permanent checkpoints, and ephemeral ones between them that later ones replace. */
export class SaveEverySteps extends BaseCheckpointPolicy.with({
  steps: z.int().positive().describe('Steps between checkpoints.'),
  keep: keep.default(null),
}) {
  isDue({ step }: Pick<SaveMoment, 'step'>): boolean {
    return step % this.hp.steps === 0;
  }

  kept(checkpoints: readonly SavedCheckpoint[]): number[] {
    return newestSteps(
      checkpoints.filter((each) => this.isDue(each)),
      this.hp.keep,
    );
  }
}

/** Saves at given steps, and keeps these checkpoints. */
export class SaveAtSteps extends BaseCheckpointPolicy.with({
  steps: z.array(z.int().nonnegative()).min(1).describe('Steps to save at.'),
}) {
  isDue({ step }: Pick<SaveMoment, 'step'>): boolean {
    return this.hp.steps.includes(step);
  }

  kept(checkpoints: readonly SavedCheckpoint[]): number[] {
    return newestSteps(
      checkpoints.filter((each) => this.isDue(each)),
      null,
    );
  }
}

/** Saves when a time has passed since the last checkpoint, however long steps take. */
export class SaveEveryDuration extends BaseCheckpointPolicy.with({
  duration: duration.describe('Time between checkpoints: 10m, 90s, or seconds.'),
  keep: keep.default(1).describe('How many of the newest checkpoints are kept; null: all.'),
}) {
  isDue({ seconds }: SaveMoment): boolean {
    return seconds >= parseDuration(this.hp.duration);
  }

  kept(checkpoints: readonly SavedCheckpoint[]): number[] {
    return newestSteps(checkpoints, this.hp.keep);
  }
}

/** Seconds after a save that failed, as on a full disk, before the next one is tried. */
const RETRY_SECONDS = 10;

/** Saves again as soon as the last checkpoint is on the disk, so that a failure costs the fewest steps. */
export class SaveContinuously extends BaseCheckpointPolicy.with({
  keep: keep.default(1).describe('How many of the newest checkpoints are kept; null: all.'),
}) {
  isDue({ isSaving, hasFailed, seconds }: SaveMoment): boolean {
    return !isSaving && (!hasFailed || seconds >= RETRY_SECONDS);
  }

  kept(checkpoints: readonly SavedCheckpoint[]): number[] {
    return newestSteps(checkpoints, this.hp.keep);
  }
}

/** Saves where a metric is among its best values so far, and keeps the checkpoints of these. */
export class SaveBest extends BaseCheckpointPolicy.with({
  evaluation: z.string().min(1).describe('Name of the evaluation: eval_test_<dataset>, or eval_train.'),
  metric: z.string().min(1).default('total_loss').describe('Name of the metric.'),
  mode: z.enum(['min', 'max']).default('min').describe('Whether lower or higher values are better.'),
  keep: z.int().positive().default(1).describe('How many of the best are kept.'),
  ties: z
    .enum(['earlier', 'later'])
    .default('earlier')
    .describe('Which of two checkpoints with the same value is the better one.'),
}) {
  /** The metric, as checkpoints name it. */
  get label(): string {
    return `${this.hp.evaluation}/${this.hp.metric}`;
  }

  /** Never by the step alone: the program that follows the metric asks for the checkpoint. */
  isDue(): boolean {
    return false;
  }

  kept(checkpoints: readonly SavedCheckpoint[]): number[] {
    const { mode, keep: count, ties } = this.hp;
    const metricOf = ({ metrics }: SavedCheckpoint): number => metrics?.[this.label] ?? Number.NaN;
    return checkpoints
      .filter((each) => Number.isFinite(metricOf(each)))
      .sort((a, b) => {
        const difference = metricOf(a) - metricOf(b);
        if (difference !== 0) return mode === 'min' ? difference : -difference;
        return ties === 'earlier' ? a.step - b.step : b.step - a.step;
      })
      .slice(0, count)
      .map(({ step }) => step);
  }
}
