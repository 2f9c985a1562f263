/** @file Compiles a graph to machine code. */
import type { Backend } from '../executable.js';
import type { Graph } from '../graph.js';
import { CompilerError } from '../types.js';
import { lowerToC, missingRule } from './lower.js';
import { openProgram } from './session.js';
import { openToolchain } from './toolchain/index.js';

/** Options of a native program. */
export interface NativeOptions {
  readonly name?: string;
  /** Threads of a run; one a core by default. */
  readonly numThreads?: number;
}

/** Why the machine or the graph does not allow machine code, as a sentence; null where they do. */
export async function missingNative(graph: Graph): Promise<string | null> {
  const op = missingRule(graph);
  if (op !== null) return `The native engine has no rule for the operation '${op}'.`;
  const toolchain = await openToolchain();
  return 'reason' in toolchain ? toolchain.reason : null;
}

/**
 * Compiles an optimized graph with the machine's C compiler.
 *
 * @throws CompilerError for an operation without a rule, and where there is no compiler.
 */
export async function compileNative(graph: Graph, options: NativeOptions = {}): Promise<Backend> {
  const name = options.name ?? 'program';
  const missing = await missingNative(graph);
  if (missing !== null) throw new CompilerError(`${name}: ${missing} Use --engine=onnx.`);
  const { source, constants } = lowerToC(graph);
  const arrays = constants.map(({ data }) => data!);
  return openProgram(source, arrays, {
    name,
    threads: options.numThreads ?? 0,
    inputs: graph.inputs,
    outputs: graph.outputs,
  });
}
