/** @file sweep.json: the runs of a sweep, their status and results. */
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { isThere, readRegularFile } from '../files/index.js';
import { writeJobFile } from './jobDirectory.js';
import { JobError } from './jobErrors.js';

/** A requested run of a sweep. */
export interface SweepRun {
  /** Name of its directory within the sweep's. */
  readonly name: string;
  /** Its settings in the sweep, as `path=value`. */
  readonly settings: readonly string[];
  /** All flags of the run except --job_log_dir. */
  readonly flags: readonly string[];
}

/** A run and its status. A run that is `running` after its sweep has ended was killed with it. */
export interface RunRecord extends SweepRun {
  status: 'waiting' | 'running' | 'finished' | 'failed' | 'stopped';
  /** Exit code of its process, or the signal that ended it. */
  exit?: number | string;
  /** The last training step and its loss, from metrics.jsonl. */
  step?: number;
  loss?: number;
  seconds?: number;
}

/** Content of the file. */
interface SweepFile {
  readonly format: 'luthier-sweep';
  readonly version: 1;
  readonly name: string;
  readonly sweeps: readonly string[];
  readonly runs: readonly RunRecord[];
}

/** The runs of a sweep, recorded in `directory`/sweep.json. */
export class SweepRecord {
  readonly runs: RunRecord[];
  /** Runs of earlier sweeps in the same directory. */
  readonly #others: readonly RunRecord[];

  /**
   * Merges the runs with those in the file; runs that finished with the same flags stay finished.
   *
   * @throws JobError for a file that no sweep wrote.
   */
  constructor(
    private readonly directory: string,
    private readonly name: string,
    private readonly sweeps: readonly string[],
    runs: readonly SweepRun[],
  ) {
    const known = new Map(readRecords(join(directory, 'sweep.json')).map((run) => [run.name, run]));
    this.runs = runs.map((run) => {
      const earlier = known.get(run.name);
      known.delete(run.name);
      const isDone = earlier?.status === 'finished' && isDeepStrictEqual(earlier.flags, run.flags);
      return isDone ? { ...earlier } : { ...run, status: 'waiting' };
    });
    this.#others = [...known.values()];
  }

  /** Writes the file atomically. @throws JobError if it can't be written */
  save(): void {
    const file: SweepFile = {
      format: 'luthier-sweep',
      version: 1,
      name: this.name,
      sweeps: this.sweeps,
      runs: [...this.runs, ...this.#others],
    };
    writeJobFile(join(this.directory, 'sweep.json'), `${JSON.stringify(file, null, 1)}\n`);
  }
}

function readRecords(path: string): readonly RunRecord[] {
  if (!isThere(path)) return [];
  let file: Partial<SweepFile> | undefined;
  try {
    file = JSON.parse(readRegularFile(path).toString()) as Partial<SweepFile>;
  } catch {
    file = undefined;
  }
  if (file?.format === 'luthier-sweep' && file.version === 1 && Array.isArray(file.runs)) return file.runs;
  throw new JobError(`${path} is not what a sweep wrote: move it away, or take another --job_log_dir.`);
}
