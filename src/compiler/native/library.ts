/** @file Functions of compiled libraries, called through koffi, and addresses of typed arrays. */
import { loadKoffi as loadAnyKoffi } from '../../system/index.js';
import type { Pages } from '../program/backend.js';
import { type BoundArray, NativeEngineError } from '../program/tensors.js';

type Koffi = typeof import('koffi');

/** A C pointer. */
type Address = bigint;

/** Exports of a program's library; calls run off the main thread. */
export interface ProgramFunctions {
  /** Null if memory is short. */
  create(threads: number, constants: Address, groups: Address): Promise<Address | null>;
  /** 0, or an error code. */
  run(program: Address, inputs: Address, outputs: Address, request: Address): Promise<number>;
  destroy(program: Address): Promise<void>;
  /** Timing spans of the last run, of a library compiled for profiling (see `lt_spans`). */
  spans?(program: Address): Promise<Float64Array>;
}

/** A table of addresses for C. The table and its arrays must stay alive while C uses them. */
export interface AddressTable {
  readonly address: Address;
  readonly table: BigUint64Array;
}

let loading: Promise<Koffi> | undefined;

/** Loads koffi at first use: other engines don't need it. */
function loadKoffi(): Promise<Koffi> {
  loading ??= loadAnyKoffi().catch((error: Error) => {
    throw new NativeEngineError(
      `koffi, which calls compiled programs, could not be loaded on ${process.platform} ${process.arch}: ` +
        `${error.message}. Reinstall with npm ci.`,
      { cause: error },
    );
  });
  return loading;
}

/** A C function known to koffi. */
interface Callable {
  (...args: unknown[]): unknown;
  async(...args: unknown[]): void;
}

/** Calls a C function on one of koffi's threads. */
export const call = <T>(callable: Callable, ...args: unknown[]): Promise<T> =>
  new Promise((resolve, reject) => {
    callable.async(...args, (error: unknown, result: T) => (error ? reject(error) : resolve(result)));
  });

/** Opens functions of a library by their C declarations. */
export async function open(path: string, ...definitions: string[]): Promise<Callable[]> {
  const koffi = await loadKoffi();
  try {
    const library = koffi.load(path, { lazy: true });
    return definitions.map((definition) => library.func(definition));
  } catch (error) {
    throw new NativeEngineError(`${path} could not be loaded: ${(error as Error).message}`, { cause: error });
  }
}

/** Numbers per span. */
const spanWords = 5;

/** Reads the spans into an array that grows as needed. */
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
 * Loads the functions of a program's library.
 *
 * @param isProfiled whether it was compiled with LUTHIER_PROFILE.
 * @throws NativeEngineError where the file is missing or no such library.
 */
export async function loadProgram(path: string, isProfiled = false): Promise<ProgramFunctions> {
  const [create, run, destroy] = await open(
    path,
    'void *lt_program_create(int threads, void *constants, void *groups)',
    'int lt_program_run(void *program, void *inputs, void *outputs, void *request)',
    'void lt_program_destroy(void *program)',
  );
  return {
    create: (threads, constants, groups) => call(create!, threads, constants, groups),
    run: (program, inputs, outputs, request) => call(run!, program, inputs, outputs, request),
    destroy: (program) => call(destroy!, program),
    ...(isProfiled && { spans: await spansOf(path) }),
  };
}

/** Starts the threads for later runs; returns how many the system grants, including the caller's. */
export async function reserveThreads(runtime: string, threads: number): Promise<number> {
  const [reserve] = await open(runtime, 'int lt_team_reserve(int threads)');
  return call(reserve!, threads);
}

/**
 * The kernels in use, such as `avx512 (float32), avx512bf16 (bfloat16, few queries)`.
 *
 * @param way of multiplying bfloat16, by its number in luthier.h.
 */
export async function kernelNames(runtime: string, way = 1): Promise<string> {
  const [names] = await open(runtime, 'const char *lt_kernels(int p)');
  return call(names!, way);
}

/** FLOP/s of products by packed operands. @param way of multiplying, by its number in luthier.h. */
export async function productRate(
  runtime: string,
  way: number,
  { m, n, k, seconds }: Readonly<Record<'m' | 'n' | 'k' | 'seconds', number>>,
  threads: number,
): Promise<number> {
  const [rate] = await open(
    runtime,
    'double lt_product_rate(int p, int64_t m, int64_t n, int64_t k, int threads, double seconds)',
  );
  return call(rate!, way, m, n, k, threads, seconds);
}

/** Peak multiply-add rate of the microkernel on registers alone, in FLOP/s. @param way of multiplying, by its number. */
export async function registerPeak(
  runtime: string,
  way: number,
  threads: number,
  seconds: number,
): Promise<number> {
  const [peak] = await open(runtime, 'double lt_peak_flops(int p, int threads, double seconds)');
  return call(peak!, way, threads, seconds);
}

/** Rate at which all threads read uncached memory, in bytes per second. */
export async function readBandwidth(runtime: string, threads: number, seconds: number): Promise<number> {
  const [bandwidth] = await open(runtime, 'double lt_read_bandwidth(int threads, double seconds)');
  return call(bandwidth!, threads, seconds);
}

/** Elements of any type, as words of their size. */
export type Words = Int32Array | Uint16Array | Uint8Array | Float32Array | Float64Array | BigInt64Array;

/** A matrix whose columns are rows of a larger one. */
interface TransposedRows {
  readonly rows: number;
  readonly columns: number;
  /** Elements of the source between two neighbours of a row. */
  readonly between: number;
}

/** Fills `target` with the rows, one after the other; neighbours of a column are neighbours in `source`. */
export type Transpose = <W extends Words>(target: W, source: W, matrix: TransposedRows) => void;

export async function transposition(runtime: string): Promise<Transpose> {
  const [transpose] = await open(
    runtime,
    'void lt_transpose(void *to, void *from, int64_t rows, int64_t columns, int64_t between, int bytes)',
  );
  return (target, source, { rows, columns, between }) =>
    transpose!(target, source, rows, columns, between, target.BYTES_PER_ELEMENT);
}

/** Arrays below this size can't fill a large page. */
const worthLargePages = 4 << 20;

/** Buffers in small pages. */
const inSmallPages = new WeakSet<ArrayBufferLike>();

/** Pages under arrays that are written part by part: memory is taken as they are written, and given back. */
export async function smallPages(runtime: string): Promise<Pages> {
  const [prefer, discard] = await open(
    runtime,
    'void lt_prefer_small_pages(void *memory, int64_t bytes)',
    'void lt_discard(void *memory, int64_t bytes, int64_t count, int64_t step)',
  );
  const { address } = await loadKoffi();
  return {
    keepSmall: (arrays) => {
      for (const { buffer } of arrays) {
        if (inSmallPages.has(buffer)) continue;
        inSmallPages.add(buffer);
        prefer!(address(new Uint8Array(buffer)), buffer.byteLength);
      }
    },
    giveBack: (array, { begin, length, count = 1, step = 0 }) => {
      const { BYTES_PER_ELEMENT: bytes } = array;
      const from = address(array) + BigInt(begin * bytes);
      discard!(from, length * bytes, count, step * bytes);
    },
  };
}

/**
 * Requests large pages under the buffers of large arrays, but of those in small pages. Programs read memory, such as the filled parts of caches,
 * with strides too long for the TLB to cover in small pages: with those, decoding a token takes 3 to 21 % longer, and a
 * training step 1 to 2 %.
 */
export async function largePages(runtime: string): Promise<(arrays: readonly BoundArray[]) => void> {
  const [prefer] = await open(runtime, 'void lt_prefer_large_pages(void *memory, int64_t bytes)');
  const { address } = await loadKoffi();
  return (arrays) => {
    for (const buffer of new Set(arrays.map((array) => array.buffer)))
      if (buffer.byteLength >= worthLargePages && !inSmallPages.has(buffer))
        prefer!(address(new Uint8Array(buffer)), buffer.byteLength);
  };
}

/** Passed to C for an empty array. */
const nothing = new Uint8Array(new ArrayBuffer(64));

/** Makes address tables for C. Arrays whose addresses are in a table must stay alive while C uses it. */
export interface Addressing {
  addresses(arrays: readonly BoundArray[]): AddressTable;
  numbers(values: readonly (number | Address)[]): AddressTable;
}

export async function addressing(): Promise<Addressing> {
  const { address } = await loadKoffi();
  const addressOf = (array: BoundArray | BigUint64Array): Address => {
    if (array.length === 0) return address(nothing);
    // Small arrays live in V8's heap, which moves them; accessing the buffer moves them out for good.
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
