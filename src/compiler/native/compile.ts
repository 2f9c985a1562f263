/** @file Compiles a graph to machine code. */
import { availableParallelism } from 'node:os';
import { productPrecision } from '../cost.js';
import type { Backend } from '../executable.js';
import type { Graph } from '../graph.js';
import type { Profiler } from '../profile/profiler.js';
import { CompilerError } from '../types.js';
import { writeDump } from './dump/dump.js';
import { type KeptInputs, lowerToC } from './lower.js';
import { partsOf } from './parts.js';
import { openProgram } from './session.js';
import { openToolchain } from './toolchain/index.js';

/** Options of a native program. */
export interface NativeOptions extends KeptInputs {
  readonly name?: string;
  /** Threads of a run; one a core by default. */
  readonly numThreads?: number;
  /** Is told where the time of runs goes. */
  readonly profiler?: Profiler | undefined;
  /** Makes a graph that follows in the same run; its inputs and outputs come behind those of the first. */
  readonly following?: (() => Graph) | undefined;
}

/** A backend, or why there is none, as a sentence. */
export type Attempt = { readonly backend: Backend } | { readonly reason: string };

/**
 * Compiles an optimized graph with the machine's C compiler, where it and the graph allow it.
 *
 * @throws CompilerError where the compiler fails, or memory is short.
 */
export async function tryNative(graph: Graph, options: NativeOptions = {}): Promise<Attempt> {
  // The compiler is asked what it is while the graph is lowered.
  const opening = openToolchain();
  const lowered = lowerToC(graph, options, options.following?.());
  if ('missing' in lowered)
    return { reason: `The native engine has no rule for the operation '${lowered.missing}'.` };
  const { LUTHIER_DUMP } = process.env;
  if (LUTHIER_DUMP) writeDump(LUTHIER_DUMP, options.name ?? 'program', lowered);
  const toolchain = await opening;
  if ('reason' in toolchain) return toolchain;
  const { name = 'program', numThreads = availableParallelism(), profiler } = options;
  const backend = await openProgram(
    lowered.source,
    lowered.plan.constants.map(({ data }) => data!),
    {
      name,
      threads: numThreads,
      profile: profiler?.open(name, 'native', productPrecision(graph), numThreads, partsOf(lowered.plan)),
      inputs: lowered.graph.inputs,
      outputs: lowered.graph.outputs,
      halves: lowered.halves,
    },
  );
  return { backend };
}

/**
 * Compiles an optimized graph to machine code.
 *
 * @throws CompilerError for an operation without a rule, and where there is no compiler.
 */
export async function compileNative(graph: Graph, options: NativeOptions = {}): Promise<Backend> {
  const attempt = await tryNative(graph, options);
  if ('backend' in attempt) return attempt.backend;
  throw new CompilerError(`${options.name ?? 'program'}: ${attempt.reason} Use --engine=onnx.`);
}
