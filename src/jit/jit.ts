/** @file jit: functions on tensors, compiled at the first call with each signature. */
import {
  CompilerError,
  type EagerDevice,
  type Engine,
  foldIn,
  type HostArray,
  type HostTensor,
  isTracing,
  KeptPrograms,
  loadBackend,
  type OnHost,
  type PrngKey,
  prngKey,
  type Tensor,
  type Tree,
  tf,
  withBackend,
} from '../compiler/index.js';
import { Turns } from '../system/index.js';
import { type BucketArguments, type BucketOptions, BucketProgram, Buckets, type Rows } from './buckets.js';
import { type Arguments, readArguments, readResults } from './callStructure.js';
import { engine as tfjsEngine } from './engineState.js';
import { type ProgramOptions, StatefulProgram } from './statefulProgram.js';

/** Options of `jit`. */
export interface JitOptions extends Omit<ProgramOptions, 'engine'> {
  /** `auto` by default; `eager` runs operation by operation on a tfjs backend. */
  readonly engine?: Engine;
  /** Device of the eager engine. */
  readonly device?: EagerDevice;
  /** Most programs that are kept, one for each signature; 16 by default. The one not used for longest goes first. */
  readonly maxPrograms?: number;
  /**
   * Whether a function that can't be compiled for a signature, such as one that reads values, runs operation by
   * operation on the current tfjs backend instead; a notice says so once. False by default: it is an error.
   */
  readonly graphBreaks?: boolean;
  /** Seed of `tf.randomNormal`, `tf.dropout` and the like; each call draws again. Random by default. */
  readonly seed?: number;
  /** Takes notices; `console.warn` by default. */
  readonly notify?: (notice: string) => void;
}

/** Options of `jit` for arguments of any number of rows. */
export interface BucketJitOptions extends JitOptions {
  /**
   * Compiles for a few numbers of rows and pads arguments to the next of them; results are cut again. `f` is given the
   * `Rows` that are no padding before its arguments. It is right where rows are computed independently, or padding is
   * left out by `rows`.
   */
  readonly bucket: BucketOptions;
}

/** Options of `compileModel`. */
export interface ModelOptions extends JitOptions {
  /**
   * Predicts for a few numbers of rows, powers of two or `sizes`: batches are padded to the next of them, and predictions are
   * cut again. It is right for models that compute each row of its own.
   */
  readonly bucket?: Pick<BucketOptions, 'sizes'>;
}

/** Nested arrays of numbers of one shape. */
type Numbers = number | boolean | readonly Numbers[];

/** Arguments that are no tensors of tfjs. */
type HostArgument = HostTensor | HostArray | Uint8ClampedArray | Numbers | string | null | undefined;

/** A compiled function. */
export interface Jitted<A extends readonly unknown[], R> {
  (...args: A): Promise<R>;
  /** Results of arrays are host tensors. */
  (...args: Tree<HostArgument>[]): Promise<OnHost<R>>;
  /** Number of programs that are kept. */
  readonly numPrograms: number;
  /** Frees all programs. A later call compiles again. */
  dispose(): Promise<void>;
}

/** A way to run the function for one signature. */
interface Runnable {
  isCurrent(): boolean;
  run(
    given: Arguments | BucketArguments,
    wrap: (result: HostTensor) => unknown,
    nextKey: () => PrngKey,
  ): Promise<unknown>;
  dispose(): Promise<void>;
}

const MAX_PROGRAMS = 16;

/** Calls of all compiled functions: they share variables. */
const calls = new Turns();

/** The current backend of tfjs if it computes, else its cpu backend. */
async function computingBackend(): Promise<string> {
  const current = tfjsEngine()
    .backendNames()
    .filter((name) => name !== 'luthier-trace');
  return current.length === 0 ? loadBackend('cpu') : tf.getBackend() || current[0]!;
}

/** Runs `f` operation by operation. */
function runnable(f: (...args: any[]) => unknown, backend: string): Runnable {
  return {
    isCurrent: () => true,
    dispose: async () => {},
    run: async (padded, wrap) => {
      const given = 'resized' in padded ? padded.resized(padded.count) : padded;
      const values = await Promise.all(given.arrays.map(({ values }) => values));
      const tensors = (): Tensor[] =>
        given.arrays.map(({ spec: { shape, dtype } }, i) =>
          // The backend may keep the array, and the caller reuses it.
          tf.tensor((values[i] as Float32Array).slice(), [...shape], dtype),
        );
      return withBackend(backend, () => {
        let made: unknown;
        const held: HostTensor[] = [];
        tf.tidy(() => {
          const results = readResults(f(...given.rebuild(tensors())));
          for (const tensor of results.tensors) {
            const { shape, dtype } = tensor;
            held.push({
              shape,
              dtype: dtype as HostTensor['dtype'],
              data: tensor.dataSync().slice() as HostArray,
            });
            // Auxiliary results of valueAndGrad are kept.
            if (tensor.kept && !(tensor instanceof tf.Variable)) tensor.dispose();
          }
          made = results;
        });
        return (made as ReturnType<typeof readResults>).rebuild(held.map(wrap));
      });
    },
  };
}

/**
 * Compiles `f` at the first call with each signature: shapes and dtypes of tensors and arrays, and the values of
 * strings, booleans and nulls in its arguments.
 *
 * Variables that `f` uses are inputs of the program, and outputs if it assigns them, by `assign` or an optimizer:
 * their values stay in host arrays from call to call. Reading a variable gives its value after the last call, and an
 * assignment outside applies to the next one. Other captured values are constants, taken at the first call.
 *
 * @param f takes and returns structures of tensors. It is called a few times, on tensors without values.
 * @returns a function that takes tf.Tensor, `{ data, shape, dtype }`, typed arrays, nested arrays or numbers. It
 * returns tf.Tensor for a call with one, or without arguments, else `{ data, shape, dtype }`.
 * @throws CompilerError, as a rejection, for an operation that can't be compiled, shapes that don't fit, or a value
 * that is read.
 */
export function jit<A extends any[], R>(
  f: (rows: Rows, ...args: A) => R,
  options: BucketJitOptions,
): Jitted<A, R>;
export function jit<A extends any[], R>(
  f: (...args: A) => R,
  options?: JitOptions & { readonly bucket?: undefined },
): Jitted<A, R>;
export function jit(
  f: (...args: any[]) => unknown,
  options: JitOptions & { readonly bucket?: BucketOptions | undefined } = {},
): Jitted<any[], unknown> {
  const {
    maxPrograms = MAX_PROGRAMS,
    graphBreaks = false,
    notify = console.warn,
    engine,
    device,
    seed = Math.floor(Math.random() * 2 ** 32),
    bucket,
    ...rest
  } = options;
  const name = options.name ?? (f.name || 'jit');
  const buckets = bucket && new Buckets(name, bucket);
  const programs = new KeptPrograms<Runnable>('jit', maxPrograms);
  let hasNotified = false;
  const key = prngKey(seed);
  let draws = 0;
  const nextKey = (): PrngKey => foldIn(key, draws++);

  const make = async (given: Arguments): Promise<Runnable> => {
    if (engine === 'eager' || device === 'gpu') return runnable(f, await loadBackend(device ?? 'cpu'));
    const chosen = { ...rest, name, ...(engine && { engine }) };
    try {
      return buckets === undefined
        ? await StatefulProgram.compile(f, given, chosen, nextKey)
        : await BucketProgram.compile(f, given as BucketArguments, chosen, nextKey);
    } catch (error) {
      if (!graphBreaks || !(error instanceof CompilerError)) throw error;
      const backend = await computingBackend();
      if (!hasNotified)
        notify(
          `${name} can't be compiled and runs operation by operation on tfjs's backend ${backend}: ${error.message}`,
        );
      hasNotified = true;
      return runnable(f, backend);
    }
  };

  const call = (...args: unknown[]): Promise<unknown> => {
    if (isTracing())
      throw new CompilerError(
        `${name} was called within a function that is compiled: call the function that was given to jit.`,
      );
    return run(args);
  };
  const run = async (args: readonly unknown[]): Promise<unknown> => {
    const given = (await buckets?.read(args)) ?? readArguments(args);
    return calls.take(async () => {
      const program = await programs.get(
        given.signature,
        () => make(given),
        (kept) => kept.isCurrent(),
      );
      if (given.givesTensors && tf.getBackend() === undefined) await loadBackend('cpu');
      const wrap = given.givesTensors ? tensorFrom : (result: HostTensor): HostTensor => result;
      return program.run(given, wrap, nextKey);
    });
  };
  return Object.defineProperties(call, {
    numPrograms: { get: () => programs.size },
    dispose: {
      value: () => calls.take(() => programs.dispose()),
    },
  }) as unknown as Jitted<any[], unknown>;
}

const tensorFrom = ({ data, shape, dtype }: HostTensor): Tensor =>
  tf.tensor(data as Float32Array, [...shape], dtype);

/** Compiles a model's predictions `f`. The arrays of its first argument have the rows that are put in buckets. */
export function jitPredictions<A extends any[], R>(
  f: (...args: A) => R,
  { bucket, ...options }: ModelOptions,
): Jitted<A, R> {
  if (bucket === undefined) return jit(f, options);
  return jit((_: Rows, ...args: A) => f(...args), { ...options, bucket: { ...bucket, arguments: [0] } });
}
