/** @file Checkpoints of a state that ranks hold in parts: each rank writes and reads its chunks of the state's file. */
import { hostname } from 'node:os';
import { join } from 'node:path';
import {
  CheckpointError,
  createStateFile,
  type FilePart,
  readRange,
  SaveThread,
  STATE_FILE,
  type StateLayouts,
  StateRange,
  type StateWriters,
  stateFileLayout,
} from '../../checkpoints/index.js';
import { gatherJson } from '../../collectives/index.js';
import { isThere } from '../../files/index.js';
import { JobError, type JobRanks } from '../../runs/index.js';
import { agree, announce, hear, tell } from './agreement.js';
import { collect, type HeldTensors, spread } from './stateExchange.js';

/** A save, as rank 0 tells the others. */
interface Save {
  readonly unfinished: string;
  readonly step: number;
}

/** An error of a rank that reads, as it tells the others. */
interface ReadFailure {
  readonly kind: CheckpointError['kind'];
  readonly path: string;
  readonly problem: string;
}

export class SharedCheckpoints implements StateWriters {
  /** Of this rank, in the file that saves write. */
  #range: StateRange | undefined;
  /** Of a checkpoint that has been read. */
  #read: StateRange | undefined;
  /** Writes on a rank other than 0. */
  readonly #thread = new SaveThread();

  /** @param layouts of the whole state. */
  constructor(
    private readonly ranks: JobRanks,
    private readonly layouts: StateLayouts,
    private readonly held: HeldTensors,
  ) {}

  /** On rank 0: has all ranks copy their parts; each begins to write. @returns rank 0's part */
  async begin(unfinished: string, step: number): Promise<FilePart> {
    const { fileLength } = this.#ownRange();
    createStateFile({ directory: unfinished, fileLength });
    await announce(this.ranks, 'save');
    const save: Save = { unfinished, step };
    await tell(this.ranks, save);
    return this.#copy(save);
  }

  /** Takes part in `begin` on another rank. */
  async follow(): Promise<void> {
    const save = await hear<Save>(this.ranks);
    let part: FilePart;
    try {
      part = await this.#copy(save);
    } catch {
      // Rank 0 tells of it, and training goes on without this checkpoint.
      return;
    }
    const ignored = () => {};
    const listener = { written: ignored, failed: ignored, kept: ignored };
    await this.#thread.write(save.unfinished, () => part, listener);
  }

  /** Reads each rank's chunks of a checkpoint, for `spread`. All ranks call it. @throws CheckpointError on all, of the first that fails */
  async read(directory: string): Promise<void> {
    const { rank, count } = this.ranks;
    let failure: ReadFailure | null = null;
    try {
      this.#read = readRange(directory, rank, count);
    } catch (error) {
      if (!(error instanceof CheckpointError)) throw error;
      const { kind, path, problem } = error;
      failure = { kind, path, problem };
    }
    const failures = await gatherJson(this.ranks, failure);
    const first = failures.findIndex((each) => each !== null);
    if (first < 0) return;
    const { kind, path, problem } = failures[first]!;
    throw new CheckpointError(kind, path, first === 0 ? problem : `${problem} (on rank ${first})`);
  }

  /** Fills the parts of all ranks by what they have read. All ranks call it. */
  async spread(): Promise<void> {
    await spread(this.ranks, this.#read!, this.held);
    this.#read = undefined;
  }

  /** Waits for this rank's part of the last save. */
  async close(): Promise<void> {
    await this.#thread.close().catch(() => {});
  }

  #ownRange(): StateRange {
    this.#range ??= new StateRange(stateFileLayout(this.layouts), this.ranks.rank, this.ranks.count);
    return this.#range;
  }

  async #copy({ unfinished, step }: Save): Promise<FilePart> {
    const { ranks, held } = this;
    const range = await agree(ranks, async () => {
      // Its memory is that of the save before.
      await this.#thread.finished();
      if (!isThere(join(unfinished, STATE_FILE)))
        throw new JobError(
          `${unfinished} is not there on ${hostname()}. Give --job_log_dir on a file system that all ranks share.`,
        );
      return this.#ownRange();
    });
    await collect(ranks, range, { step, held });
    const { rank: index, count } = ranks;
    const { fileLength, chunk, begin, data } = range;
    return { directory: unfinished, step, index, count, fileLength, chunk, begin, data };
  }
}
