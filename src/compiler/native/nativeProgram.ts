/** @file Compiled C as a `Backend`: its memory, its runs off the main thread, its end. */
import { availableParallelism } from 'node:os';
import type { Backend, FlatBinding } from '../backend.js';
import { IndexError, UNKNOWN_INDEX } from '../indexChecks.js';
import type { ProgramProfile } from '../profile/profiler.js';
import {
  type BoundArray,
  CompilerError,
  formatSpec,
  type HostArray,
  sizeOf,
  type TensorSpec,
} from '../tensors.js';
import {
  type Addressing,
  type AddressTable,
  addressing,
  largePages,
  loadProgram,
  type ProgramFunctions,
  reserveThreads,
} from './library.js';
import type { Overwrite } from './overwrites.js';
import type { Toolchain } from './toolchain/index.js';
import type { Entry } from './toolchain/programCache.js';

/** How a program runs. */
export interface OpenOptions {
  /** Threads of a run; 0 for one a core. */
  readonly threads: number;
  /** For messages. */
  readonly name: string;
  /** Specs of what `bind` is given, which then is checked against them. */
  readonly inputs?: readonly TensorSpec[];
  readonly outputs?: readonly TensorSpec[];
  /** Which of them are bound to bfloat16 elements. */
  readonly halves?: Backend['halves'];
  /** Which outputs may lie on which inputs; none where absent. */
  readonly overwrites?: readonly Overwrite[];
  /** Where the times of runs are collected, of a source that is compiled with LUTHIER_PROFILE. */
  readonly profile?: ProgramProfile | undefined;
}

/** What lt_program_run gives for an index that was out of range: the run in which it was, times 256, and this. */
const [BAD_INDEX, BAD_INDEX_ROUND] = [2, 256];
/** What its other results than 0 mean. */
const failures: Readonly<Record<number, string>> = {
  1: 'there is not enough memory',
};

/**
 * Makes a program of a library.
 *
 * @param find finds or makes the library, which exports lt_program_create, lt_program_run and lt_program_destroy; luthier.h
 *   tells how. It is asked again where another process drops the library before it is loaded.
 * @param constants arrays that the program reads; they stay in memory as long as it does.
 * @throws CompilerError where the library can't be loaded, or memory or threads are short; what `find` throws.
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
    throw new CompilerError(
      `${options.name}: ${threads} threads were asked for, and the system grants ${granted}.`,
    );
  const functions = await load(find, options.profile !== undefined);
  const tables = await addressing();
  const table = tables.addresses(constants);
  const handle = await functions.create(threads, table.address);
  if (handle === null) throw new CompilerError(`${options.name}: ${failures[1]} for what it works on.`);
  const preferLargePages = await largePages(runtime.library);
  return new Program(functions, handle, { ...tables, preferLargePages }, options, [table, constants]);
}

/** Another process may drop the library between its being found and its being loaded. */
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
  readonly halves: Backend['halves'];
  private disposed = false;
  /** Whether frozen inputs have changed since the last run. */
  private stale = false;
  /** The end of the last run that was asked for: runs share the program's memory, so they take turns. */
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly functions: ProgramFunctions,
    private readonly handle: bigint,
    private readonly tables: Addressing & { preferLargePages(arrays: readonly BoundArray[]): void },
    private readonly options: OpenOptions,
    /** What the program reads until its end. */
    protected kept: readonly unknown[],
  ) {
    this.halves = options.halves;
  }

  bind(binding: FlatBinding): (times?: number) => Promise<void> {
    this.check('input', binding, this.options.inputs);
    this.check('output', binding, this.options.outputs);
    const inputs = this.tables.addresses(binding.inputs);
    const outputs = this.tables.addresses(binding.outputs);
    const bound = [...binding.inputs, ...binding.outputs];
    this.tables.preferLargePages(bound);
    const strides = this.stridesOf(binding);
    const request = this.requestOf(binding, strides);
    // Also keeps them in memory.
    const arrays = [...bound, ...strides.map(({ table }) => table)];
    const lengths = arrays.map(({ length }) => length);
    return (times = 1) => {
      if (this.disposed) return Promise.reject(this.error('the program has been disposed of'));
      const run = this.last.then(async () => {
        // A buffer that was transferred to a thread, or shrunk, is no longer where it was.
        if (arrays.some((array, i) => array.length !== lengths[i]))
          throw this.error('the memory of a bound array was transferred or resized');
        request.table[0] = BigInt(times);
        request.table[1] = BigInt(this.stale);
        this.stale = false;
        const { profile } = this.options;
        const before = performance.now();
        const result = await this.functions.run(
          this.handle,
          inputs.address,
          outputs.address,
          request.address,
        );
        if (profile !== undefined) {
          const seconds = (performance.now() - before) / 1000;
          profile.add(seconds, times, await this.functions.spans!(this.handle));
        }
        if (result % BAD_INDEX_ROUND === BAD_INDEX)
          throw new IndexError(this.options.name, {
            ...UNKNOWN_INDEX,
            run: Math.floor(result / BAD_INDEX_ROUND),
          });
        if (result !== 0) throw this.error(failures[result] ?? `it failed with code ${result}`);
      });
      this.last = run.catch(() => {});
      return run;
    };
  }

  mayOverwrite(output: number, input: number): boolean {
    return this.options.overwrites?.some(([to, over]) => to === output && over === input) === true;
  }

  refresh(): void {
    this.stale = true;
  }

  /** How far it is from a run's part to the next one's, of inputs and of outputs; nothing where no array has parts. */
  private stridesOf({ inputs, outputs, parted }: FlatBinding): AddressTable[] {
    if (parted === undefined) return [];
    const { runs } = parted;
    const table = (arrays: readonly HostArray[], areParted: readonly boolean[]) =>
      this.tables.numbers(arrays.map(({ byteLength }, i) => (areParted[i] ? byteLength / runs : 0)));
    return [table(inputs, parted.inputs), table(outputs, parted.outputs)];
  }

  /** An lt_request (runtime/program.h). */
  private requestOf({ outputs, carried = [] }: FlatBinding, strides: readonly AddressTable[]): AddressTable {
    const words = carried.flatMap(({ output, input }) => [output, input, outputs[output]!.byteLength]);
    const [inputStrides, outputStrides] = strides.map(({ address }) => address);
    return this.tables.numbers([1, 0, inputStrides ?? 0, outputStrides ?? 0, carried.length, ...words]);
  }

  /** Waits for the runs that were asked for. */
  async dispose(): Promise<void> {
    if (this.disposed) return;
    this.disposed = true;
    await this.last;
    await this.functions.destroy(this.handle);
    this.kept = [];
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
      const parts = binding.parted?.[`${kind}s`][i] ? binding.parted.runs : 1;
      const spec = specs[i]!;
      const isHalf = this.halves?.[`${kind}s`][i] === true;
      const bytes = isHalf ? 2 : spec.dtype === 'bool' ? 1 : 4;
      if (array.length !== parts * sizeOf(spec.shape) || array.BYTES_PER_ELEMENT !== bytes)
        throw this.error(
          `${kind} ${i} is ${formatSpec(spec)}, and was given a ${array.constructor.name} of ${array.length}`,
        );
    });
  }

  private error(what: string): CompilerError {
    return new CompilerError(`${this.options.name}: ${what}.`);
  }
}
