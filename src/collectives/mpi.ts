/** @file Ranks over MPI: the few lines of C in mpi.c, called through koffi one after the other on a thread of its own. */
import { fileURLToPath } from 'node:url';
import { loadKoffi } from '../system/index.js';
import type { Ranks } from './ranks.js';

/** The C source, for mpicc. */
export const mpiSource = fileURLToPath(new URL('mpi.c', import.meta.url));

/** An error of MPI, or of how it was started. */
export class RanksError extends Error {
  override readonly name = 'RanksError';
}

/** A collective that this rank has begun. */
export interface CollectiveNote {
  readonly name: 'allReduce' | 'allGather' | 'broadcast';
  readonly bytes: number;
  /** Milliseconds since the epoch. */
  readonly begin: number;
  /** Absent while it is not over. */
  readonly end?: number;
}

/** Collectives that a rank remembers. */
const REMEMBERED = 1000;
const VERSION_BYTES = 256;

interface Callable {
  (...args: unknown[]): unknown;
  async(...args: unknown[]): void;
}

type Functions = Record<'allReduce' | 'allGather' | 'broadcast' | 'finish' | 'abort', Callable>;

/** Calls a function on one of koffi's threads. */
const call = (callable: Callable, ...args: unknown[]): Promise<number> =>
  new Promise((resolve, reject) => {
    callable.async(...args, (failure: unknown, result: number) =>
      failure ? reject(failure) : resolve(result),
    );
  });

/** Ranks of MPI. Open once a process: MPI can't be started again. */
export class MpiRanks implements Ranks {
  /** The last call: calls follow one another, as MPI asks for. */
  #last: Promise<unknown> = Promise.resolve();
  readonly #notes: CollectiveNote[] = [];

  private constructor(
    readonly rank: number,
    readonly count: number,
    /** Name and version of the library, such as `Open MPI v5.0.11`. */
    readonly version: string,
    private readonly functions: Functions,
  ) {}

  /**
   * Starts MPI.
   *
   * @param library of {@link mpiSource}
   * @param check may refuse a version before MPI is started.
   * @throws RanksError where it cannot be loaded or started.
   */
  static async open(library: string, check: (version: string) => void = () => {}): Promise<MpiRanks> {
    const koffi = await loadKoffi();
    let loaded: ReturnType<typeof koffi.load>;
    try {
      // Its plug-ins look for its symbols.
      loaded = koffi.load(library, { global: true, lazy: true });
    } catch (error) {
      throw new RanksError(`MPI's library could not be loaded: ${(error as Error).message}`, {
        cause: error,
      });
    }
    const text = new Uint8Array(VERSION_BYTES);
    loaded.func('void lt_mpi_version(void *text, int32_t size)')(text, VERSION_BYTES);
    const [line] = new TextDecoder().decode(text.subarray(0, text.indexOf(0))).split(/[\n,]/, 1);
    const version = line!.replace(/ Version:\s*/, ' ').trim();
    check(version);
    const facts = new Int32Array(3);
    // On a stack of the size that loadKoffi gives to calls by threads; those of the main thread are smaller.
    const error = await call(loaded.func('int lt_mpi_start(void *facts)'), facts);
    if (error !== 0) throw new RanksError(`MPI could not be started: error ${error}.`);
    const [rank, count, isSafe] = facts as unknown as [number, number, number];
    if (!isSafe)
      throw new RanksError(
        `${version} grants no calls by threads (MPI_THREAD_SERIALIZED): install one built with them.`,
      );
    return new MpiRanks(rank, count, version, {
      allReduce: loaded.func('int lt_mpi_all_reduce(void *sums, int64_t size)'),
      allGather: loaded.func('int lt_mpi_all_gather(void *all, int64_t block)'),
      broadcast: loaded.func('int lt_mpi_broadcast(void *data, int64_t bytes)'),
      finish: loaded.func('int lt_mpi_finish(void)'),
      abort: loaded.func('void lt_mpi_abort(int32_t code)'),
    });
  }

  allReduce(sums: Float32Array): Promise<void> {
    return this.#call('allReduce', sums, sums.length);
  }

  allGather(all: Uint8Array): Promise<void> {
    return this.#call('allGather', all, all.length / this.count);
  }

  broadcast(data: Uint8Array): Promise<void> {
    return this.#call('broadcast', data, data.length);
  }

  /** The last collectives, oldest first. */
  get notes(): readonly CollectiveNote[] {
    return this.#notes;
  }

  /** Waits for calls under way, then for all ranks to do so. */
  async finish(): Promise<void> {
    await this.#last;
    this.functions.finish();
  }

  /** Ends all ranks at once, this one included. */
  abort(code: number): void {
    this.functions.abort(code);
  }

  #call(name: CollectiveNote['name'], data: ArrayBufferView, size: number): Promise<void> {
    const made = this.#last.then(async () => {
      const note = { name, bytes: data.byteLength, begin: Date.now() };
      if (this.#notes.push(note) > REMEMBERED) this.#notes.shift();
      const error = await call(this.functions[name], data, size);
      this.#notes[this.#notes.indexOf(note)] = { ...note, end: Date.now() };
      if (error === -1)
        throw new RanksError(`${name} of ${data.byteLength} bytes: memory is short on rank ${this.rank}.`);
      if (error !== 0)
        throw new RanksError(
          `${name} of ${data.byteLength} bytes failed on rank ${this.rank}: MPI's error ${error}.`,
        );
    });
    this.#last = made.catch(() => {});
    return made;
  }
}
