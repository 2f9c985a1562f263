/** @file Trackio: scalars for the tracker of that name (Hugging Face), without Python and without a server. */
import { createHash, randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { makeDirectory, removeTemporaries, writeWhole } from '../../files/index.js';
import { BaseTracker, type TrackedRun, type TrackedScalars } from './baseTracker.js';

/** Version of trackio's fragments. */
const FRAGMENT_VERSION = 1;

/** Trackio's own directory, by the variables that it reads. */
function trackioDirectory({ TRACKIO_DIR, HF_HOME }: NodeJS.ProcessEnv): string {
  return TRACKIO_DIR ?? join(HF_HOME ?? join(homedir(), '.cache', 'huggingface'), 'trackio');
}

/** A name for one thing, in all processes. */
const digest = (...parts: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);

/** A number as trackio has it in JSON. */
const jsonNumber = (value: number): number | string => (Number.isFinite(value) ? value : String(value));

/**
 * Writes scalars as fragments of trackio's inbox (trackio/fragments.py), which it has for processes that may not write to its
 * SQLite database: a JSON Lines file for each summary, renamed into place. `trackio show` moves them into the database, while
 * the run goes on or later, each record once by its id. The names of metrics begin with their program: `train/loss`.
 *
 * The database itself is left to trackio, which keeps it in WAL mode: builds of SQLite for WebAssembly have no shared
 * memory for that, nor locks that Python sees, and theirs outlive a process that is killed.
 */
export class Trackio extends BaseTracker.with({
  project: z.string().min(1).nullable().default(null).describe('Project; null: the name of the experiment.'),
  run: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe("Name of the run; null: that of the run's directory."),
  directory: z
    .string()
    .min(1)
    .nullable()
    .default(null)
    .describe("Trackio's directory; null: TRACKIO_DIR, else trackio in HF_HOME, as trackio has it."),
}) {
  #inbox = '';
  #fragments = 0;
  #record: Readonly<Record<string, unknown>> = {};
  #runId = '';

  override begin({ name, jobLogDir, config }: TrackedRun): void {
    const directory = this.hp.directory ?? trackioDirectory(process.env);
    const inbox = join(directory, 'inbox');
    // One directory a process, so that no two write one file.
    this.#inbox = join(inbox, randomUUID());
    makeDirectory(this.#inbox);
    // Trackio leaves what a killed process was writing, and its directory, for ever.
    for (const writer of readdirSync(inbox)) removeTemporaries(join(inbox, writer));
    this.#runId = digest('run', jobLogDir);
    this.#record = {
      ...{ v: FRAGMENT_VERSION, kind: 'metric', project: this.hp.project ?? name },
      ...{ run: this.hp.run ?? basename(jobLogDir), run_id: this.#runId, config },
    };
  }

  override log({ program, step, scalars }: TrackedScalars): void {
    const metrics = Object.entries(scalars).map(([tag, value]) => [`${program}/${tag}`, jsonNumber(value)]);
    const record = {
      ...this.#record,
      ...{ metrics: Object.fromEntries(metrics), step, timestamp: new Date().toISOString() },
      log_id: digest('log', this.#runId, program, String(step)),
    };
    // Trackio removes the directory once it has read what is there.
    makeDirectory(this.#inbox);
    const fragment = `${String(this.#fragments++).padStart(8, '0')}.jsonl`;
    writeWhole(join(this.#inbox, fragment), `${JSON.stringify(record)}\n`);
  }
}
