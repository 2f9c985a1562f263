/** @file The functions of compiled libraries, called through koffi; and addresses of typed arrays. */
import { loadKoffi as loadAnyKoffi } from '../../system/index.js';
import { type BoundArray, CompilerError } from '../tensors.js';

type Koffi = typeof import('koffi');

/** A place in C's memory. */
type Address = bigint;

/** What a program's library exports; calls run off the main thread. */
export interface ProgramFunctions {
  /** Null where memory is short. */
  create(threads: number, constants: Address): Promise<Address | null>;
  /** 0, or the number of what went wrong. */
  run(program: Address, inputs: Address, outputs: Address, request: Address): Promise<number>;
  destroy(program: Address): Promise<void>;
  /** What each thread did in the last run, of a library that is compiled to be profiled (`lt_spans` tells the form). */
  spans?(program: Address): Promise<Float64Array>;
}

/** Addresses of arrays, as C takes them. Both must stay in memory as long as C uses them. */
export interface AddressTable {
  readonly address: Address;
  readonly table: BigUint64Array;
}

let loading: Promise<Koffi> | undefined;

/** Loaded at first use: other engines do without it. */
function loadKoffi(): Promise<Koffi> {
  loading ??= loadAnyKoffi().catch((error: Error) => {
    throw new CompilerError(
      `koffi, which calls compiled programs, could not be loaded on ${process.platform} ${process.arch}: ` +
        `${error.message}. Reinstall with npm ci.`,
      { cause: error },
    );
  });
  return loading;
}

/** A C function that koffi knows. */
interface Callable {
  (...args: unknown[]): unknown;
  async(...args: unknown[]): void;
}

/** Calls a C function on a thread of koffi's. */
export const call = <T>(callable: Callable, ...args: unknown[]): Promise<T> =>
  new Promise((resolve, reject) => {
    callable.async(...args, (error: unknown, result: T) => (error ? reject(error) : resolve(result)));
  });

/** Functions of a library, by their C declarations. */
export async function open(path: string, ...definitions: string[]): Promise<Callable[]> {
  const koffi = await loadKoffi();
  try {
    const library = koffi.load(path, { lazy: true });
    return definitions.map((definition) => library.func(definition));
  } catch (error) {
    throw new CompilerError(`${path} could not be loaded: ${(error as Error).message}`, { cause: error });
  }
}

/** Numbers of a span. */
const spanWords = 5;

/** Asks for the spans; an array that was too small is made as large as is needed. */
async function spansOf(path: string): Promise<(program: Address) => Promise<Float64Array>> {
  const [read] = await open(path, 'int64_t lt_program_spans(void *program, void *spans, int64_t capacity)');
  const { address } = await loadKoffi();
  let room = 1 << 12;
  return async (program) => {
    for (;;) {
      const spans = new Float64Array(spanWords * room);
      const count = Number(await call<number | bigint>(read!, program, address(spans), room));
      if (count <= room) return spans.subarray(0, spanWords * count);
      room = 2 * count;
    }
  };
}

/**
 * The functions of a program's library.
 *
 * @param isProfiled whether it is compiled with LUTHIER_PROFILE.
 * @throws CompilerError where it is not there, or not what it should be.
 */
export async function loadProgram(path: string, isProfiled = false): Promise<ProgramFunctions> {
  const [create, run, destroy] = await open(
    path,
    'void *lt_program_create(int threads, void *constants)',
    'int lt_program_run(void *program, void *inputs, void *outputs, void *request)',
    'void lt_program_destroy(void *program)',
  );
  return {
    create: (threads, constants) => call(create!, threads, constants),
    run: (program, inputs, outputs, request) => call(run!, program, inputs, outputs, request),
    destroy: (program) => call(destroy!, program),
    ...(isProfiled && { spans: await spansOf(path) }),
  };
}

/** Starts the threads that runs need; gives how many the system grants, the caller's counted. */
export async function reserveThreads(runtime: string, threads: number): Promise<number> {
  const [reserve] = await open(runtime, 'int lt_team_reserve(int threads)');
  return call(reserve!, threads);
}

/** The runtime's kernels in use, such as `avx512 (float32), avx512bf16 (bfloat16, few queries)`. */
export async function kernelNames(runtime: string): Promise<string> {
  const [names] = await open(runtime, 'const char *lt_kernels()');
  return call(names!);
}

/** The rate at which registers multiply and add in the runtime's microkernel, in FLOP/s. */
export async function registerPeak(
  runtime: string,
  isBfloat16: boolean,
  threads: number,
  seconds: number,
): Promise<number> {
  const [peak] = await open(runtime, 'double lt_peak_flops(int p, int threads, double seconds)');
  return call(peak!, isBfloat16 ? 1 : 0, threads, seconds);
}

/** The rate at which all threads together read memory that is in no cache, in bytes a second. */
export async function readBandwidth(runtime: string, threads: number, seconds: number): Promise<number> {
  const [bandwidth] = await open(runtime, 'double lt_read_bandwidth(int threads, double seconds)');
  return call(bandwidth!, threads, seconds);
}

/** Arrays in less memory than this have no large page to themselves. */
const worthLargePages = 4 << 20;

/**
 * Asks the system for large pages under the buffers of large arrays. Programs walk through parts of their memory, as the
 * filled parts of caches, that lie too far apart for the CPU to remember the places of small pages: on those, decoding a token
 * takes 3 to 21 % longer, and a training step 1 to 2 %.
 */
export async function largePages(runtime: string): Promise<(arrays: readonly BoundArray[]) => void> {
  const [prefer] = await open(runtime, 'void lt_prefer_large_pages(void *memory, int64_t bytes)');
  const { address } = await loadKoffi();
  return (arrays) => {
    for (const buffer of new Set(arrays.map((array) => array.buffer)))
      if (buffer.byteLength >= worthLargePages) prefer!(address(new Uint8Array(buffer)), buffer.byteLength);
  };
}

/** What C is given for an array without elements. */
const nothing = new Uint8Array(new ArrayBuffer(64));

/** Makes tables for C. Arrays whose addresses stand in one must stay in memory as long as C uses it. */
export interface Addressing {
  addresses(arrays: readonly BoundArray[]): AddressTable;
  numbers(values: readonly (number | Address)[]): AddressTable;
}

export async function addressing(): Promise<Addressing> {
  const { address } = await loadKoffi();
  const addressOf = (array: BoundArray | BigUint64Array): Address => {
    if (array.length === 0) return address(nothing);
    // Small arrays lie in V8's heap, which moves them about; asking for the buffer moves them out of it for good.
    void array.buffer;
    return address(array);
  };
  const tableOf = (words: readonly bigint[]): AddressTable => {
    const table = new BigUint64Array(new ArrayBuffer(8 * Math.max(1, words.length)));
    table.set(words);
    return { table, address: address(table) };
  };
  return {
    addresses: (arrays) => tableOf(arrays.map(addressOf)),
    numbers: (values) => tableOf(values.map(BigInt)),
  };
}
