/** @file Compiles a graph to machine code. */
import type { Backend } from '../executable.js';
import type { Graph } from '../graph.js';
import { CompilerError } from '../types.js';
import { lowerToC, missingRule } from './lower.js';
import { openProgram } from './session.js';

/** Options of a native program. */
export interface NativeOptions {
  readonly name?: string;
  /** Threads of a run; one a core by default. */
  readonly numThreads?: number;
}

/**
 * Compiles an optimized graph with the machine's C compiler.
 *
 * @throws CompilerError for an operation without a rule, and where there is no compiler.
 */
export async function compileNative(graph: Graph, options: NativeOptions = {}): Promise<Backend> {
  const name = options.name ?? 'program';
  const missing = missingRule(graph);
  if (missing !== null)
    throw new CompilerError(`${name}: the native engine has no rule for '${missing}'; use --engine=onnx.`);
  const { source, constants } = lowerToC(graph);
  return openProgram(
    source,
    constants.map(({ data }) => data!),
    {
      name,
      threads: options.numThreads ?? 0,
      inputs: graph.inputs,
      outputs: graph.outputs,
    },
  );
}
