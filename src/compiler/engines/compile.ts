/** @file Entry points of the compiler: compile, evalShape. */

import { compileEager, type EagerDevice } from '../eager/eagerBackend.js';
import type { Bfloat16Products } from '../native/toolchain/kernelTable.js';
import { joinRows, optimize } from '../passes/index.js';
import type { Profiler, ProgramProfile } from '../profile/profiler.js';
import type { Backend } from '../program/backend.js';
import { compileWithinBorder } from '../program/border.js';
import { productPrecision } from '../program/cost.js';
import { Executable } from '../program/executable.js';
import type { Graph } from '../program/ir.js';
import type { RankCalls } from '../program/rankCalls.js';
import type { NarrowType, TensorSpec, Tree } from '../program/tensors.js';
import type { Tensor } from '../tfjs/tfjs.js';
import {
  checkProgram,
  joinPrograms,
  type OnHost,
  type Program,
  type TensorFunction,
  traceProgram,
} from '../trace/tracedProgram.js';
import { compileGraph, type Engine } from './engine.js';
import { oneAfterAnother } from './inTurn.js';

/** Options of a compilation. */
export interface CompileOptions {
  /** Name in messages; 'program' by default. */
  readonly name?: string;
  readonly engine?: Engine;
  /** Device of the eager engine. */
  readonly device?: EagerDevice;
  /** Threads per operation; one per core by default. */
  readonly numThreads?: number;
  /**
   * Inputs whose contents stay the same until `refresh` is called, by path or path prefix, such as 'params'. Values
   * that depend only on them, such as packed operands of products, may be computed once.
   */
  readonly frozen?: readonly string[];
  /**
   * Storage in which the engine may hold inputs, and the results of changing them in place, by path or prefix: of float32 one
   * to whose values all readers round them, of int32 one that has all of their values. `Executable.newInputs` gives arrays of the storage that it has chosen.
   */
  readonly storages?: Readonly<Record<string, NarrowType>>;
  /**
   * Instructions for products of bfloat16 in machine code, which add in different orders; by default, the faster ones on this
   * machine.
   */
  readonly bfloat16Products?: Bfloat16Products | undefined;
  /** Runs that are expected, by which engine `auto` weighs compiling; 100 by default. */
  readonly runs?: number | undefined;
  /** Whether products by the same matrix become one, of the rows of all, so that the matrix is read once; default false. */
  readonly joinsRows?: boolean | undefined;
  /** Takes the sentence that explains which engine `auto` has chosen. */
  readonly explain?: ((sentence: string) => void) | undefined;
  /** Collects the run times. Machine code is then compiled with timing marks. */
  readonly profiler?: Profiler | undefined;
  /** The other ranks, for programs with collectives, which machine code alone runs (program/rankCalls.ts). */
  readonly ranks?: RankCalls | undefined;
  /**
   * A function that follows in every run. Through arrays bound to both, it may read what the first one has written and
   * overwrite what the first one has read. Inputs and outputs are then pairs. It may depend on what the first one gives.
   */
  readonly following?: Following | ((outputs: Tree<TensorSpec>) => Following) | undefined;
}

/** A function that follows another, and the specs of its arguments. */
export interface Following {
  /** Name in messages and profiles where it is a separate program. */
  readonly name: string;
  readonly f: TensorFunction;
  readonly inputs: Tree<TensorSpec>;
}

/**
 * Compiles a function over one structure of tensors. The function is called once, on symbolic tensors.
 *
 * @param f takes a structure of tensors like `inputs` and gives a structure of tensors.
 * @param inputs the specs of the arguments.
 * @throws CompilerError for an operation without a rule, shapes that don't fit, or a value that is read.
 */
export function compile<R extends Tree<Tensor>>(
  f: (inputs: any) => R,
  inputs: Tree<TensorSpec>,
  options?: CompileOptions & { readonly following?: undefined },
): Promise<Executable<OnHost<R>>>;
export function compile(
  f: TensorFunction,
  inputs: Tree<TensorSpec>,
  options?: CompileOptions,
): Promise<Executable>;
export async function compile(
  f: TensorFunction,
  inputs: Tree<TensorSpec>,
  options: CompileOptions = {},
): Promise<Executable> {
  const traced = checkProgram(traceProgram(f, inputs));
  const first = options.joinsRows ? { ...traced, graph: joinRows(optimize(traced.graph)) } : traced;
  return compileFirst(f, first, options);
}

/** Compiles a program, and the function that follows it. */
async function compileFirst(f: TensorFunction, first: Program, options: CompileOptions): Promise<Executable> {
  const { name = 'program' } = options;
  const following =
    typeof options.following === 'function' ? options.following(first.outputs) : options.following;
  if (following === undefined) return new Executable(name, first, await lower(f, first, options));
  let then: Program | undefined;
  const second = (): Program => {
    then ??= checkProgram(traceProgram(following.f, following.inputs));
    return then;
  };
  const backend = await lower(f, first, options, () => second().graph);
  const both = joinPrograms(first, second());
  if (backend.runner === 'native') return new Executable(name, both, backend, true);
  const next = await lower(following.f, second(), { ...options, name: following.name, explain: undefined });
  return new Executable(name, both, oneAfterAnother(first.graph, [backend, next]), true);
}

/** Compiles a program that was traced before, and maybe changed since; not for the eager engine, which has no graph. */
export const compileProgram = (
  traced: Program,
  options: Omit<CompileOptions, 'device' | 'joinsRows'> & { readonly engine?: Exclude<Engine, 'eager'> },
): Promise<Executable> => compileFirst(notCalled, checkProgram(traced), options);

const notCalled: TensorFunction = () => {
  throw new Error('Only the eager engine calls a traced function.');
};

/** Counts the runs of a backend that reports no times itself. */
function timeRuns(backend: Backend, profile: ProgramProfile): void {
  const bind = backend.bind.bind(backend);
  backend.bind = (binding) => {
    const run = bind(binding);
    return async (times = 1) => {
      const before = performance.now();
      await run(times);
      profile.add((performance.now() - before) / 1000, times);
    };
  };
}

/** @param following traces the graph that machine code runs afterwards; `auto` counts its cost; other engines ignore it. */
async function lower(
  f: TensorFunction,
  program: Program,
  options: CompileOptions,
  following?: () => Graph,
): Promise<Backend> {
  const { engine, device, name = 'program', profiler } = options;
  const backend =
    engine === 'eager' || device === 'gpu'
      ? await compileEager(f, program, device, name)
      : await compileWithinBorder(program.graph, following, (graph, then) =>
          compileGraph(graph, { ...options, following: then }),
        );
  if (profiler !== undefined && backend.runner !== 'native')
    timeRuns(backend, profiler.open(name, backend.runner, productPrecision(program.graph)));
  return backend;
}

/** Shapes and dtypes of the result of `f` for arguments of these specs; nothing is computed or allocated. */
export function evalShape(f: (...args: any[]) => Tree<any>, ...specs: Tree<TensorSpec>[]): Tree<TensorSpec> {
  return traceProgram((inputs: any[]) => f(...inputs), specs, { abstract: true }).outputs;
}
