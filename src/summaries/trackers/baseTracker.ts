/** @file BaseTracker: where a run's scalars go besides its own files, such as the trackers of others. */
import { Configurable } from '../../hparams/index.js';

/** A run as its trackers know it. */
export interface TrackedRun {
  /** Of the experiment. */
  readonly name: string;
  /** Its directory, an absolute path. */
  readonly jobLogDir: string;
  /** Fields of the configs by path: numbers, and the text of all others. */
  readonly config: Readonly<Record<string, number | string>>;
}

/** Scalars of a program at a step, by tag. */
export interface TrackedScalars {
  /** `train`, `eval_test_<dataset>` …, as in metrics.jsonl. */
  readonly program: string;
  readonly step: number;
  readonly scalars: Readonly<Record<string, number>>;
}

/**
 * Receives what metrics.jsonl receives. A run that was killed writes the steps since its checkpoint again: a tracker counts
 * each step of a program once. An error in `begin` ends the run before its first step; later ones are told, and it goes on.
 */
export abstract class BaseTracker extends Configurable.with({}) {
  static override readonly isAbstract = true;

  /** Called once, before the first scalars. */
  abstract begin(run: TrackedRun): void;

  abstract log(scalars: TrackedScalars): void;

  close(): void {}
}
