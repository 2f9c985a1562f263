/** @file Checkpointer: saving, retention and restoring by Pax's rules. */

import { join } from 'node:path';
import { isThere, removeQuietly } from '../files/index.js';
import { brokenError, CheckpointError, unreadableError } from './checkpointErrors.js';
import {
  asideName,
  checkpointName,
  listCheckpoints,
  noCheckpointsError,
  prepareDirectory,
  temporaryName,
} from './directory.js';
import type { FilePart } from './filePart.js';
import { KnownCheckpoints } from './knownCheckpoints.js';
import { leaseCheckpoint } from './leases.js';
import { stepOf } from './locate.js';
import { type BestCheckpoint, describeState, PROGRESS_FILE, TRAIN_INPUT_FILE, textsOf } from './metadata.js';
import {
  type CheckpointContents,
  type ReadOptions,
  type ReadTogether,
  readCheckpoint,
  readTogether,
} from './restore.js';
import { type CheckpointPolicy, parseDuration, type RetentionOptions, stepsToDelete } from './retention.js';
import { SaveMeter, type SaveStatistics } from './saveMeter.js';
import { SaveThread } from './saveThread.js';
import { StateSnapshot, type TrainState } from './trainState.js';
import { beginCheckpoint, type WriteRequest } from './writeCheckpoint.js';

export interface CheckpointerOptions {
  /** `<job_log_dir>/checkpoints`. */
  readonly directory: string;
  /** Name of the experiment; a checkpoint of another one is not restored. */
  readonly experiment: string;
  /** Whether nothing is created, cleaned up, saved or deleted, as in evaluation and decoding. */
  readonly readOnly?: boolean;
  /** Default 5000. */
  readonly saveIntervalSteps?: number;
  /** How many of the newest are kept, default 10; null keeps all. */
  readonly saveMaxToKeep?: number | null;
  /** Checkpoints this far apart are kept for good: '12h' (default; units s, m, h, d), seconds, or null for none. */
  readonly saveKeepIntervalDuration?: string | number | null;
  /** Policies that save and keep checkpoints beside these settings. */
  readonly policies?: readonly CheckpointPolicy[] | undefined;
  /** Folder in the directory that old checkpoints are moved to instead of being deleted, as with Pax. */
  readonly toDeleteSubdir?: string | undefined;
  /**
   * Receives the errors of failed saves, of old checkpoints that could not be deleted or read, and of broken ones that
   * restoring skipped. With it, `save` doesn't throw the error of the save before; `waitUntilFinished` and `close` do.
   */
  readonly notify?: (error: CheckpointError) => void;
  /** The clock. */
  readonly now?: () => Date;
}

export interface SaveOptions {
  /** State of the training input, anything that JSON holds. */
  readonly inputState?: unknown;
  /** Further state of a run, so that it resumes as if it had not stopped: anything that JSON holds. */
  readonly progress?: unknown;
  /**
   * Whether training is sound: the last step was valid and the state is finite. Default true. Retention never deletes
   * the newest checkpoint that is.
   */
  readonly isGood?: boolean;
  /** The best checkpoint up to this one, which retention never deletes; its step may be the present one. */
  readonly best?: BestCheckpoint | undefined;
  /** Writers of the state's file together with this process; absent where it writes all of it. */
  readonly writers?: StateWriters | undefined;
  /** Metrics of checkpoints that policies compare, by step and `<program>/<metric>`, those of this one among them. */
  readonly metrics?: ReadonlyMap<number, Readonly<Record<string, number>>> | undefined;
}

/** Processes that hold a state in parts, of which this one is the first. */
export interface StateWriters {
  /** Has all copy their parts and begin to write them into an unfinished checkpoint. @returns this one's */
  begin(unfinished: string, step: number): Promise<FilePart>;
}

export interface RestoreOptions extends Omit<ReadOptions, 'experiment'> {
  /** The step to restore, or `best`; the newest by default. */
  readonly step?: number | 'best' | undefined;
  /** Where the newest checkpoint is broken, go back to the newest whole one. */
  readonly allowPrevious?: boolean | undefined;
  /** Reads the tensors, where several processes hold the state in parts. */
  readonly together?: ReadTogether | undefined;
}

export interface RestoredCheckpoint extends CheckpointContents {
  readonly step: number;
  /** The checkpoint's directory. */
  readonly path: string;
  /** Errors of newer checkpoints that were skipped; empty unless `allowPrevious` was needed. */
  readonly passedOver: readonly CheckpointError[];
}

/** Saves and restores the checkpoints of one directory. One writer at a time; readers may come and go. */
export class Checkpointer {
  readonly directory: string;
  readonly #options: CheckpointerOptions;
  readonly #saveIntervalSteps: number;
  readonly #retention: RetentionOptions;
  readonly #policies: readonly CheckpointPolicy[];
  readonly #thread = new SaveThread();
  readonly #meter = new SaveMeter();
  readonly #known: KnownCheckpoints;
  /** Steps whose checkpoints were found broken; they are never deleted and do not count as saved. */
  readonly #broken = new Set<number>();
  #snapshot:
    | {
        readonly of: TrainState['layout'];
        readonly slots: TrainState['slotLayouts'];
        readonly value: StateSnapshot;
      }
    | undefined;
  #lastSaved: number | undefined;
  /** Milliseconds of the process when the last save began. */
  #savedAt = performance.now();

  /** @throws CheckpointError when the directory cannot be written, RangeError for a duration that does not parse */
  constructor(options: CheckpointerOptions) {
    this.#options = options;
    this.directory = options.directory;
    this.#saveIntervalSteps = options.saveIntervalSteps ?? 5000;
    const duration =
      options.saveKeepIntervalDuration === undefined ? '12h' : options.saveKeepIntervalDuration;
    this.#policies = options.policies ?? [];
    this.#known = new KnownCheckpoints(this.directory, (error) => this.#tell(error));
    this.#retention = {
      policies: this.#policies,
      maxToKeep: options.saveMaxToKeep === undefined ? 10 : options.saveMaxToKeep,
      keepIntervalSeconds: duration === null ? null : parseDuration(duration),
    };
    if (!options.readOnly) prepareDirectory(this.directory);
    this.#lastSaved = this.latestStep();
  }

  /** Steps of the checkpoints in the directory, rising. Unfinished ones are not among them. */
  steps(): number[] {
    return [...listCheckpoints(this.directory).keys()];
  }

  /** The newest checkpoint's step, or undefined when there is none. */
  latestStep(): number | undefined {
    return this.steps().at(-1);
  }

  /** The step of the newest checkpoint that was saved as good and is not broken, or undefined. */
  latestGoodStep(): number | undefined {
    const found = [...listCheckpoints(this.directory)].reverse();
    return found.find(([step, name]) => !this.#broken.has(step) && this.#known.of(step, name)?.isGood)?.[0];
  }

  /** Whether to save before taking the step after `step`: every interval, where a policy says so, and the first time. */
  shouldSave(step: number): boolean {
    const last = this.#lastSaved;
    if (last === undefined || last >= step) return last === undefined;
    if (step % this.#saveIntervalSteps === 0) return true;
    const seconds = (performance.now() - this.#savedAt) / 1000;
    const { isWriting: isSaving, hasFailed } = this.#thread;
    const moment = { step, seconds, isSaving, hasFailed };
    return this.#policies.some((policy) => policy.isDue(moment));
  }

  /** Saves since the last call. */
  takeStatistics(): SaveStatistics {
    return this.#meter.take();
  }

  /**
   * Saves a state under `state.step`. Waits for the save before, copies the state, and returns while a worker
   * writes the copy; the state may be changed as soon as the promise is fulfilled.
   *
   * @returns false where that step is saved already
   * @throws CheckpointError when the save before could not be written, and there is no `notify` to tell
   */
  async save(state: TrainState, options: SaveOptions = {}): Promise<boolean> {
    if (this.#options.readOnly) throw new Error(`${this.directory}: this checkpointer is read-only`);
    const { notify } = this.#options;
    const began = performance.now();
    await this.waitUntilFinished().catch((error) => {
      if (notify === undefined) throw error;
    });
    const { step } = state;
    if (this.#isSaved(step)) return false;
    const previous = this.#lastSaved;
    this.#lastSaved = step;
    this.#savedAt = performance.now();
    const path = join(this.directory, checkpointName(step));
    await this.#thread.write(path, () => this.#request(state, options), {
      written: (written) => {
        this.#broken.delete(step);
        this.#meter.written(written);
      },
      failed: (error) => {
        this.#lastSaved = previous;
        this.#known.forget(step);
        notify?.(error);
      },
      kept: (error) => this.#tell(error),
    });
    this.#meter.begun(began);
    return true;
  }

  /** Waits until the save in progress, if any, is on the disk. @throws CheckpointError when it failed */
  async waitUntilFinished(): Promise<void> {
    await this.#thread.finished();
  }

  /** Waits for the save in progress and ends the worker. */
  async close(): Promise<void> {
    await this.#thread.close();
  }

  /**
   * Fills `state` from a checkpoint, bit for bit.
   *
   * @throws CheckpointError: no such checkpoint, one that is broken (and `allowPrevious` is not set or no whole one is
   *   left), or one that belongs to another experiment or model. The state and the directory are then untouched.
   */
  async restore(state: TrainState, options: RestoreOptions = {}): Promise<RestoredCheckpoint> {
    await this.waitUntilFinished();
    const found = listCheckpoints(this.directory);
    if (found.size === 0) throw noCheckpointsError(this.directory);
    const newestFirst =
      options.step === undefined
        ? [...found.keys()].reverse()
        : [stepOf(this.directory, found, options.step)];
    const passedOver: CheckpointError[] = [];
    for (const step of newestFirst) {
      const path = join(this.directory, found.get(step)!);
      try {
        const contents = await this.#read(path, state, options);
        this.#lastSaved = step;
        for (const broken of passedOver) this.#passOver(found, broken);
        return { ...contents, step, path, passedOver };
      } catch (error) {
        // A trainer may have deleted this checkpoint while it was being read: look again.
        if (options.step === undefined && !isThere(path)) return this.restore(state, options);
        if (!(error instanceof CheckpointError)) throw error;
        if (error.kind === 'io') throw unreadableError(path, error, newestFirst[passedOver.length + 1]);
        if (error.kind !== 'broken') throw error;
        passedOver.push(new CheckpointError('broken', path, error.message, { cause: error }));
        if (!options.allowPrevious) break;
      }
    }
    throw brokenError(passedOver, newestFirst[passedOver.length]);
  }

  /** Reads a checkpoint, which a trainer does not delete meanwhile. */
  async #read(path: string, state: TrainState, options: RestoreOptions): Promise<CheckpointContents> {
    const { experiment, readOnly } = this.#options;
    const { together } = options;
    const lease = readOnly ? leaseCheckpoint(path) : undefined;
    try {
      const given = { ...options, experiment };
      return together === undefined
        ? readCheckpoint(path, state, given)
        : await readTogether(path, state, given, together);
    } finally {
      lease?.release();
    }
  }

  #passOver(found: ReadonlyMap<number, string>, { path, problem }: CheckpointError): void {
    const message = `Checkpoint ${path} is broken and is skipped:\n  ${problem}`;
    this.#options.notify?.(new CheckpointError('broken', path, problem, { message }));
    for (const [step, name] of found) if (join(this.directory, name) === path) this.#broken.add(step);
  }

  #isSaved(step: number): boolean {
    if (this.#broken.has(step)) return false;
    try {
      return listCheckpoints(this.directory).has(step);
    } catch {
      // The reason is reported when the directory is written to.
      return false;
    }
  }

  #tell(error: CheckpointError): void {
    (this.#options.notify ?? process.emitWarning)(error);
  }

  /** Copies the state before it returns, unless several processes do. */
  #request(state: TrainState, options: SaveOptions): WriteRequest | Promise<WriteRequest> {
    const existing = listCheckpoints(this.directory).get(state.step);
    const { inputState, progress, isGood = true, best, writers } = options;
    const { toDeleteSubdir, experiment } = this.#options;
    const savedAt = this.#options.now?.() ?? new Date();
    const described = { isGood, best, hasChunks: writers !== undefined };
    const request = {
      directory: this.directory,
      description: describeState(state, experiment, savedAt, described),
      texts: textsOf({ [TRAIN_INPUT_FILE]: inputState, [PROGRESS_FILE]: progress }),
      broken: existing === undefined ? null : { name: existing, aside: asideName(this.directory, existing) },
      toDeleteDirectory: toDeleteSubdir === undefined ? null : join(this.directory, toDeleteSubdir),
    };
    const known = () => {
      this.#known.add({ step: state.step, savedAt: savedAt.getTime(), isGood });
      return { ...request, toDelete: this.#namesToDelete(request.description.step, options) };
    };
    if (writers !== undefined) return this.#sharedRequest(writers, state.step, known);
    const { prefix, data } = this.#snapshotOf(state);
    return { ...known(), state: { prefix, data } };
  }

  #snapshotOf(state: TrainState): StateSnapshot {
    const { layout: of, slotLayouts: slots } = state;
    if (this.#snapshot?.of !== of || this.#snapshot.slots !== slots)
      this.#snapshot = { of, slots, value: new StateSnapshot(state) };
    const snapshot = this.#snapshot.value;
    snapshot.take(state);
    return snapshot;
  }

  async #sharedRequest(
    writers: StateWriters,
    step: number,
    known: () => Omit<WriteRequest, 'state'>,
  ): Promise<WriteRequest> {
    const unfinished = join(this.directory, temporaryName(step));
    beginCheckpoint(this.directory, unfinished);
    try {
      return { state: await writers.begin(unfinished, step), unfinished, ...known() };
    } catch (error) {
      removeQuietly(unfinished);
      throw error;
    }
  }

  #namesToDelete(saving: number, { best, metrics }: SaveOptions): string[] {
    const found = listCheckpoints(this.directory);
    const whole = [...found.keys()].filter((step) => step !== saving && !this.#broken.has(step));
    const checkpoints = [...whole, saving].flatMap((step) => {
      const known = this.#known.of(step, found.get(step) ?? checkpointName(step));
      return known === undefined ? [] : { ...known, metrics: metrics?.get(step) };
    });
    return stepsToDelete(checkpoints, this.#retention, best?.step)
      .filter((step) => step !== saving)
      .map((step) => found.get(step)!);
  }
}
