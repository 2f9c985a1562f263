/** @file sweep.json: the runs of a sweep, their status and results. */
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { isComplete, listCheckpoints } from '../checkpoints/index.js';
import { explain, isThere, readJsonFile } from '../files/index.js';
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

const runSchema = z.looseObject({
  name: z.string(),
  settings: z.array(z.string()),
  flags: z.array(z.string()),
  status: z.enum(['waiting', 'running', 'finished', 'failed', 'stopped']),
  /** Exit code of its process, or the signal that ended it. */
  exit: z.union([z.number(), z.string()]).optional(),
  /** The last training step and its loss, from metrics.jsonl; JSON has null for a loss that is not finite. */
  step: z.number().optional(),
  loss: z.number().nullable().optional(),
  seconds: z.number().optional(),
});

/** A run and its status. A run that is `running` after its sweep has ended was killed with it. */
export type RunRecord = z.output<typeof runSchema>;

const fileSchema = z.looseObject({
  format: z.literal('luthier-sweep'),
  version: z.literal(1),
  name: z.string(),
  sweeps: z.array(z.string()),
  runs: z.array(runSchema),
});

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
      return isDone
        ? { ...earlier }
        : { ...run, settings: [...run.settings], flags: [...run.flags], status: 'waiting' };
    });
    this.#others = [...known.values()];
  }

  /** Writes the file atomically. @throws JobError if it can't be written */
  save(): void {
    const file: z.output<typeof fileSchema> = {
      format: 'luthier-sweep',
      version: 1,
      name: this.name,
      sweeps: [...this.sweeps],
      runs: [...this.runs, ...this.#others],
    };
    writeJobFile(join(this.directory, 'sweep.json'), `${JSON.stringify(file, null, 1)}\n`);
  }
}

function readRecords(path: string): readonly RunRecord[] {
  if (!isThere(path)) return [];
  try {
    return readJsonFile(path, fileSchema).runs;
  } catch (cause) {
    throw new JobError(
      `${path} is not what a sweep wrote (${explain(cause)}): move it away, or take another --job_log_dir.`,
      { cause },
    );
  }
}

/** Why a run that finished earlier is not all there; undefined where its last checkpoint is. */
export function missingOf({ step = 0 }: RunRecord, directory: string): string | undefined {
  if (!isThere(directory)) return 'its directory is gone';
  const checkpoints = join(directory, 'checkpoints');
  const [last, name] = [...listCheckpoints(checkpoints)].at(-1) ?? [];
  if (last === undefined) return 'its checkpoints are gone';
  return last < step || !isComplete(join(checkpoints, name!)) ? 'its last checkpoint is gone' : undefined;
}
