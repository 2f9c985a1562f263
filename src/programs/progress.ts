/**
 * @file progress.json of a checkpoint: meters, pending programs and states, so that a resumed run reports like an
 * uninterrupted one.
 */
import { z } from 'zod';
import type { SaveOptions } from '../checkpoints/index.js';
import { schemaProblem } from '../files/index.js';
import type { JsonValue } from '../inputs/index.js';
import { mapValues } from '../learners/index.js';
import { JobError } from '../runs/index.js';
import type { DuePrograms } from './duePrograms.js';
import type { MetricsAt } from './newestMetrics.js';
import type { Run } from './run.js';
import { asPair, meterState, pair, type TrainMeter } from './trainMeter.js';
import type { TrainProgram } from './trainProgram.js';

const metric = pair.transform(([value, weight]) => ({ value, weight }));

const schema = z.strictObject({
  meter: meterState,
  /** States of programs by name; the field's name dates from when only evaluations had one. */
  positions: z.record(z.string(), z.custom<JsonValue>()),
  /** Programs that still have to run at this step. */
  pending: z.array(z.string()),
  /** The newest metrics by program. */
  results: z.record(z.string(), z.record(z.string(), metric)).default({}),
  /** The steps of these metrics; checkpoints of earlier versions have none. */
  evaluatedAt: z.record(z.string(), z.int()).default({}),
  /** Gradient norms of the last steps, where they set a bound. */
  gradNorms: z.array(z.number()).default([]),
});

/** `progress.json` of a checkpoint. */
export type Progress = z.output<typeof schema>;

/** The newest metrics by program. */
export function metricsOf({ results, evaluatedAt }: Progress): Record<string, MetricsAt> {
  return Object.fromEntries(
    Object.entries(results).map(([name, metrics]) => [name, { step: evaluatedAt[name] ?? 0, metrics }]),
  );
}

/** The parts of a run that checkpoints keep, beside its state. */
export interface Saved {
  readonly program: Pick<TrainProgram, 'inputState' | 'updater'>;
  readonly meter: TrainMeter;
  readonly programs: DuePrograms;
  readonly run: Pick<Run, 'newest' | 'best'>;
}

/** The data saved beside the state of the present step. */
export function savedWith({ program, meter, programs, run }: Saved): SaveOptions {
  const newest = run.newest.all();
  const progress: z.input<typeof schema> = {
    meter: meter.state(),
    positions: programs.states(),
    pending: [...programs.toResume],
    results: mapValues(newest, ({ metrics }) =>
      mapValues(metrics, ({ value, weight }) => asPair(value, weight)),
    ),
    evaluatedAt: mapValues(newest, ({ step }) => step),
    ...(program.updater.norms && { gradNorms: [...program.updater.norms.state] }),
  };
  return { inputState: program.inputState, isGood: meter.invalidInARow === 0, best: run.best, progress };
}

/** The progress of a checkpoint, if it has one. @throws JobError where it is of another version */
export function readProgress(saved: unknown, path: string): Progress | undefined {
  if (saved === null || saved === undefined) return undefined;
  const parsed = schema.safeParse(saved);
  if (parsed.success) return parsed.data;
  throw new JobError(
    `${path}: progress.json is not of this version of Luthier: ${schemaProblem(parsed.error)}`,
  );
}
