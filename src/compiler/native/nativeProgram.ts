/** @file Backend of a compiled C library: its memory, its runs off the main thread, its disposal. */
import { availableParallelism } from 'node:os';
import { Turns } from '../../system/index.js';
import type { ProgramProfile } from '../profile/profiler.js';
import type { Backend, FlatBinding, Pages } from '../program/backend.js';
import { IndexError, UNKNOWN_INDEX } from '../program/indexChecks.js';
import { heldSpecs } from '../program/ports.js';
import type { RankCalls } from '../program/rankCalls.js';
import {
  arrayTypeOf,
  type BoundArray,
  CompilerError,
  formatSpec,
  type HostArray,
  NativeEngineError,
  sizeOf,
  type TensorSpec,
} from '../program/tensors.js';
import type { Group } from '../rules/collectiveRules.js';
import {
  type Addressing,
  type AddressTable,
  addressing,
  largePages,
  loadProgram,
  type ProgramFunctions,
  reserveThreads,
  smallPages,
} from './library.js';
import type { Overwrite } from './plan/overwrites.js';
import { openGroups, type RankFunctions } from './rankFunctions.js';
import type { Toolchain } from './toolchain/index.js';
import type { Entry } from './toolchain/programCache.js';

/** Options for opening a program. */
export interface OpenOptions {
  /** Threads per run; 0 for one per core. */
  readonly threads: number;
  /** Name in messages. */
  readonly name: string;
  /** Specs that `bind` checks its arrays against. */
  readonly inputs?: readonly TensorSpec[] | undefined;
  readonly outputs?: readonly TensorSpec[] | undefined;
  /** Inputs and outputs whose storage the plan has chosen. */
  readonly storages?: Backend['storages'];
  /** Outputs that may share memory with inputs; absent means none. */
  readonly overwrites?: readonly Overwrite[];
  /** Groups of ranks, in the order of their numbers in the program, and the way to these ranks. */
  readonly groups?: readonly Group[];
  readonly ranks?: RankCalls | undefined;
  /** Collects the run times of a source compiled with LUTHIER_PROFILE. */
  readonly profile?: ProgramProfile | undefined;
}

/** Result of lt_program_run for an index out of range: this code plus 256 times the number of the run. */
const [BAD_INDEX, BAD_INDEX_ROUND] = [2, 256];
/** Its result for a collective that failed. */
const RANKS_FAILED = 3;
/** Messages for its other nonzero results. */
const failures: Readonly<Record<number, string>> = {
  1: 'there is not enough memory',
};

/**
 * Opens a compiled library as a backend.
 *
 * @param find finds or makes the library, which exports lt_program_create, lt_program_run and lt_program_destroy; see
 *   luthier.h. It is called again where another process drops the library before it is loaded.
 * @param constants arrays that the program reads; they stay alive as long as the program.
 * @throws NativeEngineError where the library can't be loaded, or memory or threads are short; errors of `find`.
 */
export async function openProgram(
  { runtime }: Toolchain,
  find: () => Promise<Entry>,
  constants: readonly HostArray[],
  options: OpenOptions,
): Promise<Backend> {
  const threads = options.threads === 0 ? availableParallelism() : options.threads;
  const granted = await reserveThreads(runtime.library, threads);
  if (granted < threads)
    throw new NativeEngineError(
      `${options.name}: expected ${threads} threads, got ${granted} from the system.`,
    );
  const functions = await load(find, options.profile !== undefined);
  const tables = await addressing();
  const table = tables.addresses(constants);
  const { name, groups = [], ranks } = options;
  const calls =
    groups.length === 0 ? undefined : await openGroups(name, groups, ranks, threads, runtime.library);
  const groupTable = tables.numbers(calls?.words ?? []);
  const handle = await functions.create(threads, table.address, groupTable.address);
  if (handle === null)
    throw new NativeEngineError(`${options.name}: ${failures[1]} for its intermediate values.`);
  const preferLargePages = await largePages(runtime.library);
  const pages = await smallPages(runtime.library);
  const own = { ...functions, ...calls };
  const memory = { ...tables, preferLargePages, pages };
  return new Program(own, handle, memory, options, [table, constants, groupTable]);
}

/** Retries where another process drops the library between finding and loading it. */
async function load(find: () => Promise<Entry>, isProfiled: boolean): Promise<ProgramFunctions> {
  for (let attempt = 0; ; attempt++) {
    const { library } = await find();
    try {
      return await loadProgram(library, isProfiled);
    } catch (error) {
      if (attempt === 2) throw error;
    }
  }
}

class Program implements Backend {
  readonly runner = 'native';
  readonly repeats = true;
  readonly updatesInPlace = true;
  readonly storages: Backend['storages'];
  /** Specs of the arrays that it is bound to. */
  private readonly held: Pick<OpenOptions, 'inputs' | 'outputs'>;
  private disposed = false;
  /** Whether frozen inputs have changed since the last run. */
  private stale = false;
  /** Runs share the program's memory. */
  private readonly turns = new Turns();
  /** The arrays of the last run: the library knows by their addresses what persistent results were made of. */
  protected lastArrays: readonly unknown[] = [];

  constructor(
    private readonly functions: ProgramFunctions & Partial<RankFunctions>,
    private readonly handle: bigint,
    private readonly tables: Addressing & {
      preferLargePages(arrays: readonly BoundArray[]): void;
      readonly pages: Pages;
    },
    private readonly options: OpenOptions,
    /** Arrays that the program reads until it is disposed of. */
    protected kept: readonly unknown[],
  ) {
    const { inputs, outputs, storages } = options;
    this.storages = storages;
    this.held = {
      inputs: inputs && heldSpecs(inputs, storages?.inputs),
      outputs: outputs && heldSpecs(outputs, storages?.outputs),
    };
  }

  bind(binding: FlatBinding): (times?: number) => Promise<void> {
    this.check('input', binding, this.held.inputs);
    this.check('output', binding, this.held.outputs);
    const inputs = this.tables.addresses(binding.inputs);
    const outputs = this.tables.addresses(binding.outputs);
    const bound = [...binding.inputs, ...binding.outputs];
    this.tables.preferLargePages(bound);
    const strides = this.stridesOf(binding);
    const request = this.requestOf(binding, strides);
    // This closure also keeps them alive.
    const arrays = [...bound, ...strides.map(({ table }) => table)];
    const lengths = arrays.map(({ length }) => length);
    const run = async (times: number): Promise<void> => {
      // A buffer that was transferred to a thread, or shrunk, has lost its address.
      if (arrays.some((array, i) => array.length !== lengths[i]))
        throw this.error('the memory of a bound array was transferred or resized');
      request.table[0] = BigInt(times);
      request.table[1] = BigInt(this.stale);
      this.stale = false;
      this.lastArrays = arrays;
      const { profile } = this.options;
      const before = performance.now();
      const result = await this.functions.run(this.handle, inputs.address, outputs.address, request.address);
      if (profile !== undefined) {
        const seconds = (performance.now() - before) / 1000;
        profile.add(seconds, times, await this.functions.spans!(this.handle));
      }
      if (result % BAD_INDEX_ROUND === BAD_INDEX)
        throw new IndexError(this.options.name, {
          ...UNKNOWN_INDEX,
          run: Math.floor(result / BAD_INDEX_ROUND),
        });
      if (result === RANKS_FAILED) throw this.error(this.functions.failure!(this.handle));
      if (result !== 0) throw this.error(failures[result] ?? `it failed with code ${result}`);
    };
    const ended = (error: unknown): never => {
      this.options.ranks?.end();
      throw error;
    };
    return (times = 1) => {
      if (this.disposed) return Promise.reject(this.error('the program has been disposed of'));
      return this.turns.take(() => run(times)).catch(ended);
    };
  }

  get pages(): Pages {
    return this.tables.pages;
  }

  mayOverwrite(output: number, input: number): boolean {
    return this.options.overwrites?.some(([to, over]) => to === output && over === input) === true;
  }

  refresh(): void {
    this.stale = true;
  }

  /** Byte strides from run to run of stacked inputs and outputs; empty where no array is stacked. */
  private stridesOf({ inputs, outputs, stacked }: FlatBinding): AddressTable[] {
    if (stacked === undefined) return [];
    const { runs } = stacked;
    const table = (arrays: readonly HostArray[], areStacked: readonly boolean[]) =>
      this.tables.numbers(arrays.map(({ byteLength }, i) => (areStacked[i] ? byteLength / runs : 0)));
    return [table(inputs, stacked.inputs), table(outputs, stacked.outputs)];
  }

  /** An lt_request (runtime/program.h). */
  private requestOf({ outputs, carried = [] }: FlatBinding, strides: readonly AddressTable[]): AddressTable {
    const words = carried.flatMap(({ output, input }) => [output, input, outputs[output]!.byteLength]);
    const [inputStrides, outputStrides] = strides.map(({ address }) => address);
    return this.tables.numbers([1, 0, inputStrides ?? 0, outputStrides ?? 0, carried.length, ...words]);
  }

  /** Waits for pending runs, then frees the program. */
  async dispose(): Promise<void> {
    if (this.disposed) return;
    this.disposed = true;
    await this.turns.ended();
    await this.functions.destroy(this.handle);
    this.kept = this.lastArrays = [];
  }

  private check(
    kind: 'input' | 'output',
    binding: FlatBinding,
    specs: readonly TensorSpec[] | undefined,
  ): void {
    if (specs === undefined) return;
    const arrays = binding[`${kind}s`];
    if (arrays.length !== specs.length)
      throw this.error(`it takes ${specs.length} ${kind}s, and was given ${arrays.length}`);
    arrays.forEach((array, i) => {
      const runs = binding.stacked?.[`${kind}s`][i] ? binding.stacked.runs : 1;
      const spec = specs[i]!;
      const { BYTES_PER_ELEMENT } = arrayTypeOf(spec);
      if (array.length !== runs * sizeOf(spec.shape) || array.BYTES_PER_ELEMENT !== BYTES_PER_ELEMENT)
        throw this.error(
          `${kind} ${i} is ${formatSpec(spec)}, and was given a ${array.constructor.name} of ${array.length}`,
        );
    });
  }

  private error(what: string): CompilerError {
    return new CompilerError(`${this.options.name}: ${what}.`);
  }
}
