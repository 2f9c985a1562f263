/** @file Choice of the engine that runs a graph, and the notice where it is not the fastest. */

import type { Backend } from './backend.js';
import { nodeFlops, productFlops } from './cost.js';
import type { EagerDevice } from './eager/eagerBackend.js';
import { inTurn, type Turn } from './inTurn.js';
import type { Graph, Value } from './ir.js';
import { compileNative, tryNative } from './native/compile.js';
import { compileOnnx } from './onnx/onnxSession.js';
import { optimize } from './passes/index.js';
import type { Profiler } from './profile/profiler.js';
import { CompilerError, sizeOf } from './tensors.js';
import { type Cut, cutLoops } from './wasm/cut.js';
import { compileWasm } from './wasm/wasmProgram.js';

/**
 * Engines. `auto` takes machine code where the machine has a C compiler and the program is large enough to be worth
 * compiling; otherwise WebAssembly for the elementwise loops of an optimizer's update, and ONNX Runtime for the rest.
 */
export type Engine = 'auto' | 'native' | 'onnx' | 'eager';
export const ENGINES: readonly Engine[] = ['auto', 'native', 'onnx', 'eager'];

/** Whether these options allow machine code; the program and the machine decide whether it is used. */
export const mayBeNative = ({
  engine = 'auto',
  device,
}: {
  engine?: Engine;
  device?: EagerDevice;
}): boolean => (engine === 'auto' || engine === 'native') && device !== 'gpu';

/** Options for compiling a graph. */
export interface GraphOptions {
  readonly name?: string;
  readonly engine?: Engine;
  readonly numThreads?: number;
  readonly frozen?: readonly string[];
  readonly halves?: readonly string[];
  readonly profiler?: Profiler | undefined;
  readonly runs?: number | undefined;
  /** Traces the graph that follows in the same run. Only machine code runs it; other engines never call this. */
  readonly following?: (() => Graph) | undefined;
}

/** A run below this many FLOPs takes less than a millisecond on any engine; the C compiler takes half a second. */
const MIN_NATIVE_FLOPS = 2e7;
/** From so many runs on, a program of any size pays for its compiling: each saves the overhead of ONNX Runtime's operators. */
const MANY_RUNS = 1000;
/** The threshold for elementwise programs, which are bound by memory. */
const MIN_NATIVE_ELEMENTS = 1 << 20;

const told = new Set<string>();

/** Writes a notice once per process. */
function tellOnce(line: string): void {
  if (told.has(line)) return;
  told.add(line);
  process.stderr.write(`${line}\n`);
}

/** Machine code for a graph, or null where another engine must take over. */
async function nativeIfPossible(graph: Graph, options: GraphOptions): Promise<Backend | null> {
  let reason: string;
  try {
    const attempt = await tryNative(graph, options);
    if ('backend' in attempt) return attempt.backend;
    reason = attempt.reason;
  } catch (error) {
    if (!(error instanceof CompilerError)) throw error;
    reason = error.message;
  }
  tellOnce(`${reason} Running on ONNX Runtime instead, which is slower.`);
  return null;
}

/**
 * Whether an optimized program with few products is worth compiling; `cut` tells whether it is only elementwise loops.
 */
function isWorthCompiling(graph: Graph, cut: Cut | undefined): boolean {
  const elements = graph.outputs.reduce((sum, { shape }) => sum + sizeOf(shape), 0);
  return cut?.head.outputs.length === 0
    ? elements >= MIN_NATIVE_ELEMENTS
    : graph.nodes.reduce((sum, node) => sum + nodeFlops(node), 0) >= MIN_NATIVE_FLOPS;
}

/** Runs the program's head on ONNX Runtime and its trailing loops in WebAssembly. */
async function compileLoops(graph: Graph, { head, loops }: Cut, options: GraphOptions): Promise<Backend> {
  const between = head.outputs.filter((value) => !graph.outputs.includes(value));
  const written = [...graph.outputs, ...between];
  const to = (value: Value): number => graph.inputs.length + written.indexOf(value);
  const from = (value: Value): number =>
    graph.inputs.includes(value) ? graph.inputs.indexOf(value) : to(value);
  const turn = (backend: Backend, { inputs, outputs }: Graph): Turn => ({
    backend,
    inputs: inputs.map(from),
    outputs: outputs.map(to),
  });
  const turns = await Promise.all(loops.map(async (loop) => turn(await compileWasm(loop), loop)));
  if (head.outputs.length > 0) turns.unshift(turn(await compileOnnx(head, options), head));
  return inTurn(graph, turns, between);
}

/** Compiles a traced graph with the engine that suits the program and the machine. */
async function compileAuto(traced: Graph, options: GraphOptions): Promise<Backend> {
  // No pass removes most products, so a graph with this many goes to machine code before it is optimized; so does one that
  // pays anyway.
  const isHeavy = productFlops(traced) >= 2 * MIN_NATIVE_FLOPS || (options.runs ?? 1) >= MANY_RUNS;
  const early = isHeavy ? await nativeIfPossible(traced, options) : null;
  if (early !== null) return early;
  const graph = optimize(traced);
  const cut = cutLoops(graph);
  const native = !isHeavy && isWorthCompiling(graph, cut) ? await nativeIfPossible(traced, options) : null;
  if (native !== null) return native;
  return cut === undefined ? compileOnnx(graph, options) : compileLoops(graph, cut, options);
}

/**
 * Compiles a traced graph with the requested engine.
 *
 * @throws CompilerError where `native` is requested and the machine or the program does not support it.
 */
export async function compileGraph(traced: Graph, options: GraphOptions): Promise<Backend> {
  const { engine = 'auto' } = options;
  if (engine === 'native') return compileNative(traced, options);
  return engine === 'auto' ? compileAuto(traced, options) : compileOnnx(optimize(traced), options);
}
