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

/** By their numbers in collectives.h and mpi.c. */
const OPERATIONS = [
  'allReduce',
  'reduceScatter',
  'allGather',
  'allToAll',
  'collectivePermute',
  'broadcast',
  'combine',
] as const;

/** A collective that this rank has begun, within a step or between steps. */
export interface CollectiveNote {
  readonly name: (typeof OPERATIONS)[number];
  /** Ranks that take part. */
  readonly members: number;
  /** Bytes of the tensor that all of them make, or exchange. */
  readonly bytes: number;
  /** Milliseconds since the epoch. */
  readonly begin: number;
  /** Absent while it is not over. */
  readonly end?: number;
}

/** Collectives that a rank remembers, and numbers of each. */
const [REMEMBERED, NOTE_NUMBERS] = [1000, 5];
const TEXT_BYTES = 256;

/** Errors of mpi.c besides MPI's, which are positive. */
const SHORT_OF_MEMORY = -1;
const BUSY = -2;

interface Callable {
  (...args: unknown[]): unknown;
  async(...args: unknown[]): void;
}

type Functions = Record<
  'allReduce' | 'allGather' | 'broadcast' | 'combine' | 'group' | 'transport' | 'reason' | 'finish' | 'abort',
  Callable
>;

/** Calls a function on one of koffi's threads. */
const call = <T = number>(callable: Callable, ...args: unknown[]): Promise<T> =>
  new Promise((resolve, reject) => {
    callable.async(...args, (failure: unknown, result: T) => (failure ? reject(failure) : resolve(result)));
  });

/** Text that a function writes to an array of bytes. */
function textOf(write: (text: Uint8Array, size: number) => void): string {
  const text = new Uint8Array(TEXT_BYTES);
  write(text, TEXT_BYTES);
  return new TextDecoder().decode(text.subarray(0, text.indexOf(0)));
}

/**
 * A function that tells the last collectives of this process's rank, oldest first, those within steps among them. Any thread may
 * call it.
 *
 * @param library that {@link MpiRanks} has opened.
 */
export async function collectiveNotes(library: string): Promise<() => CollectiveNote[]> {
  const koffi = await loadKoffi();
  const notes = koffi.load(library, { global: true, lazy: true }).func('int32_t lt_mpi_notes(void *notes)');
  const rows = new Float64Array(NOTE_NUMBERS * REMEMBERED);
  return () =>
    Array.from({ length: notes(rows) as number }, (_, i) => {
      const [name, members, bytes, begin, end] = rows.subarray(NOTE_NUMBERS * i) as unknown as number[];
      const note = { name: OPERATIONS[name!]!, members: members!, bytes: bytes!, begin: begin! };
      return end === 0 ? note : { ...note, end: end! };
    });
}

/** Ranks of MPI. Open once a process: MPI can't be started again. */
export class MpiRanks implements Ranks {
  /** The last call: calls follow one another, as MPI asks for. */
  #last: Promise<unknown> = Promise.resolve();
  /** Contexts of groups, by name. */
  readonly #groups = new Map<string, Promise<bigint>>();

  private constructor(
    readonly rank: number,
    readonly count: number,
    /** Name and version of the library, such as `Open MPI v5.0.11`. */
    readonly version: string,
    /** That of {@link mpiSource}. */
    readonly library: string,
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
    // UCX, which Open MPI loads, replaces brk, and gives up memory in use where brk cannot grow, as beside V8's code.
    process.env.UCX_MEM_EVENTS ??= 'no';
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
    const [line] = textOf(loaded.func('void lt_mpi_version(void *text, int32_t size)')).split(/[\n,]/, 1);
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
    return new MpiRanks(rank, count, version, library, {
      allReduce: loaded.func('int lt_mpi_all_reduce(void *sums, int64_t size)'),
      allGather: loaded.func('int lt_mpi_all_gather(void *all, int64_t block)'),
      broadcast: loaded.func('int lt_mpi_broadcast(void *data, int64_t bytes, int32_t root)'),
      combine: loaded.func('int lt_mpi_combine(void *data, int64_t bytes, int32_t root)'),
      group: loaded.func('void *lt_mpi_group(int32_t colour, int32_t number)'),
      transport: loaded.func('void *lt_mpi_transport(void)'),
      reason: loaded.func('void lt_mpi_reason(int32_t error, void *text, int32_t size)'),
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

  broadcast(data: Uint8Array, root = 0): Promise<void> {
    return this.#call('broadcast', data, data.length, root);
  }

  combine(data: Uint8Array, root: number): Promise<void> {
    return this.#call('combine', data, data.length, root);
  }

  /**
   * These ranks as compiled programs call them within their steps: the option `ranks` of the compiler. A step's collectives
   * and the calls above must not overlap: a rank awaits each before the next.
   */
  get steps() {
    const { rank, count } = this;
    return {
      ...{ rank, count, areThreads: false, transport: this.functions.transport() as bigint },
      open: (members: readonly number[], name: string) => this.#open(members, name),
      reason: (code: number) => this.#reason(code),
      // A process that ends with an error ends the job.
      end: () => {},
    };
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

  #open(members: readonly number[], name: string): Promise<bigint> {
    const known = this.#groups.get(name) ?? this.#last.then(() => this.#newGroup(members, name));
    this.#groups.set(name, known);
    this.#last = known.catch(() => {});
    return known;
  }

  async #newGroup(members: readonly number[], name: string): Promise<bigint> {
    // Groups have different first ranks.
    const [colour, number] = [Math.min(...members), members.indexOf(this.rank)];
    const group = await call<bigint | null>(this.functions.group, colour, number);
    if (group === null)
      throw new RanksError(`MPI could not make the groups of ranks ${name}, on rank ${this.rank}.`);
    return group;
  }

  #reason(code: number): string {
    if (code === SHORT_OF_MEMORY) return 'memory is short';
    if (code === BUSY) return 'another collective of this rank is under way';
    const text = textOf((bytes, size) => this.functions.reason(code, bytes, size)).trim();
    return text === '' ? `MPI's error ${code}` : `MPI's error ${code}, ${text}`;
  }

  #call(
    name: 'allReduce' | 'allGather' | 'broadcast' | 'combine',
    data: ArrayBufferView,
    ...others: readonly number[]
  ): Promise<void> {
    const made = this.#last.then(async () => {
      const error = await call(this.functions[name], data, ...others);
      if (error !== 0)
        throw new RanksError(
          `${name} of ${data.byteLength} bytes failed on rank ${this.rank}: ${this.#reason(error)}.`,
        );
    });
    this.#last = made.catch(() => {});
    return made;
  }
}
