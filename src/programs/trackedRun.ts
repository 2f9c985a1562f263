/** @file The trackers of a run: each gets all scalars, and none that fails ends the run. */
import { explain } from '../files/index.js';
import { JobError } from '../runs/index.js';
import type { BaseTracker, TrackedRun, TrackedScalars } from '../summaries/index.js';

/** Trackers that have begun. */
export class RunTrackers {
  /** Those whose last call failed; each failure is told once. */
  readonly #failing = new Set<BaseTracker>();

  /**
   * @param run asked for where there are trackers
   * @throws JobError where one cannot begin
   */
  constructor(
    private readonly trackers: readonly BaseTracker[],
    run: () => TrackedRun,
    private readonly notify: (line: string) => void,
  ) {
    for (const tracker of trackers)
      try {
        tracker.begin(run());
      } catch (cause) {
        throw new JobError(
          `${tracker.constructor.name} of task.train.trackers cannot begin: ${explain(cause)}`,
          {
            cause,
          },
        );
      }
  }

  log(scalars: TrackedScalars): void {
    this.#each(
      (tracker) => tracker.log(scalars),
      `${scalars.program} at step ${scalars.step} is not tracked`,
    );
  }

  close(): void {
    this.#each((tracker) => tracker.close(), 'it was not closed');
  }

  #each(act: (tracker: BaseTracker) => void, failure: string): void {
    for (const tracker of this.trackers)
      try {
        act(tracker);
        this.#failing.delete(tracker);
      } catch (cause) {
        if (!this.#failing.has(tracker))
          this.notify(`${tracker.constructor.name}: ${failure}, and the run goes on: ${explain(cause)}`);
        this.#failing.add(tracker);
      }
  }
}
