/** @file TrackProgram: the best value of a metric so far, and the end of training where it gets no better. */
import { z } from 'zod';
import type { JsonValue } from '../inputs/index.js';
import type { Program, ProgramRun, TrackMetric } from '../tasks/index.js';
import { followed, valueAt } from './followedMetric.js';

const FIELD = 'task.train.trackMetric';

const state = z.strictObject({
  best: z.strictObject({ step: z.int(), metric: z.string(), value: z.number() }).nullable(),
  /** Evaluations without a better value since. */
  since: z.int(),
  /** Step of the newest value. */
  step: z.int().nullable(),
});

/** Follows `task.train.trackMetric`. Runs after the program that gives the metric, at the same steps. */
export class TrackProgram implements Program {
  readonly name = 'track_metric';
  readonly #evaluation: Program;
  #state: z.infer<typeof state> = { best: null, since: 0, step: null };

  /**
   * @param programs that may give it: evaluations, decodes, and the task's own.
   * @throws ConfigError where none of them has the name that `track` gives.
   */
  constructor(
    private readonly track: TrackMetric,
    programs: readonly Program[],
  ) {
    this.#evaluation = followed(programs, track.hp, FIELD);
  }

  isDue(step: number, isLast: boolean): boolean {
    return this.#evaluation.isDue(step, isLast);
  }

  /** Compares the value of this step, if its evaluation did not fail. @throws ConfigError where there is no such metric */
  async run(run: ProgramRun): Promise<undefined> {
    const value = valueAt(run, this.track.hp, FIELD);
    if (value === undefined) return;
    // A program that runs again at a step has counted its value.
    if (this.#state.step !== run.step) this.#count(run, value);
    const { best, since } = this.#state;
    const { label, hp } = this.track;
    if (hp.patience === null || since < hp.patience) return;
    const than = best === null ? 'finite' : `better than ${best.value}, its value at step ${best.step},`;
    run.endTraining(`${label} was not ${than} in ${since} evaluations.`);
  }

  #count(run: ProgramRun, value: number): void {
    const { step } = run;
    const { best, since } = this.#state;
    const { label: metric } = this.track;
    if (this.track.isBetter(value, best?.value)) {
      run.saveBest(metric, value);
      this.#state = { best: { step, metric, value }, since: 0, step };
    } else this.#state = { best, since: since + 1, step };
  }

  getState(): JsonValue {
    return this.#state as unknown as JsonValue;
  }

  setState(saved: JsonValue): void {
    const parsed = state.parse(saved);
    // Values of another metric do not compare.
    if (parsed.best === null || parsed.best.metric === this.track.label) this.#state = parsed;
  }

  async close(): Promise<void> {}
}
