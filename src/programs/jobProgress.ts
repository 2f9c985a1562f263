/** @file Progress of a job on checkpoints, in a file: one that was interrupted goes on where it was (paxml's _eval_progress.json). */
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { isThere, readJsonFile } from '../files/index.js';
import { describeConfigs, type JobOptions, writeJobFile } from '../runs/index.js';

const schema = z.strictObject({
  /** The checkpoint's step, by Pax's name. */
  restore_checkpoint_step: z.int().nonnegative(),
  /** When it was saved: training that went back saves the step anew. */
  savedAt: z.string(),
  /** Programs that have yet to run with it; none: the job waited for the next one. */
  pending: z.array(z.string()),
  /** Digest of the configs, since other settings have other results. */
  settings: z.string(),
});

/** A checkpoint, and the programs that have yet to run with it. */
type Recorded = Pick<z.output<typeof schema>, 'savedAt' | 'pending'> & { readonly step: number };

/** Digest of a job's configs. */
export const settingsDigest = (options: JobOptions): string =>
  createHash('sha256').update(describeConfigs(options)).digest('hex').slice(0, 16);

/** The record of one job, there while it runs. */
export class JobProgress {
  readonly #path: string;
  readonly #settings: string;

  constructor(options: JobOptions) {
    const { mode, jobLogDir } = options;
    const name = mode === 'eval' || mode === 'infer' ? mode : 'decoder';
    this.#path = join(jobLogDir, '_internal_artifacts', `_${name}_progress.json`);
    this.#settings = settingsDigest(options);
  }

  /** Where a job with these settings was interrupted; undefined where it was not. A damaged record counts as none. */
  interrupted(): Recorded | undefined {
    if (!isThere(this.#path)) return undefined;
    try {
      const { restore_checkpoint_step: step, savedAt, pending, settings } = readJsonFile(this.#path, schema);
      return settings === this.#settings ? { step, savedAt, pending } : undefined;
    } catch {
      return undefined;
    }
  }

  /** @throws JobError where it can't be written */
  write({ step, savedAt, pending }: Recorded): void {
    const file: z.input<typeof schema> = {
      restore_checkpoint_step: step,
      ...{ savedAt, pending, settings: this.#settings },
    };
    writeJobFile(this.#path, `${JSON.stringify(file)}\n`);
  }

  /** The job has ended by itself. */
  remove(): void {
    rmSync(this.#path, { force: true });
  }
}
