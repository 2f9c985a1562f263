/** @file Choice of the engine that runs a graph, and the notice where it is not the fastest. */

import { availableParallelism } from 'node:os';
import { warn } from '../system/index.js';
import type { Backend } from './backend.js';
import type { EagerDevice } from './eager/eagerBackend.js';
import { type PredictedSeconds, predictSeconds } from './engineCost.js';
import { inTurn, type Turn } from './inTurn.js';
import type { Graph, Value } from './ir.js';
import { compileNative, tryNative } from './native/compile.js';
import { compileOnnx } from './onnx/onnxSession.js';
import { optimize } from './passes/index.js';
import type { Profiler } from './profile/profiler.js';
import { CompilerError } from './tensors.js';
import { type Cut, cutLoops } from './wasm/cut.js';
import { compileWasm } from './wasm/wasmProgram.js';

/**
 * Engines. `auto` takes machine code where the machine has a C compiler and the expected runs are predicted to pay for
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
  readonly explain?: ((sentence: string) => void) | undefined;
  /** Traces the graph that follows in the same run. Only machine code runs it. */
  readonly following?: (() => Graph) | undefined;
}

/** Runs where none are told: a program that is compiled is run more than a few times. */
const DEFAULT_RUNS = 100;

const told = new Set<string>();

/** Writes a notice once per process. */
function tellOnce(line: string): void {
  if (told.has(line)) return;
  told.add(line);
  warn(line);
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

const inSeconds = (seconds: number): string => `${Number(seconds.toPrecision(2))} s`;

/** The sentence that explains a choice. */
function explanation(
  name: string,
  runs: number,
  predicted: PredictedSeconds,
  taken: 'native' | 'onnx',
): string {
  const other = taken === 'native' ? 'onnx' : 'native';
  return (
    `${name} runs on engine ${taken}: ${runs} ${runs === 1 ? 'run' : 'runs'} should take ${inSeconds(predicted[taken])} ` +
    `there, compiling included, and ${inSeconds(predicted[other])} on ${other} (--engine=${other} takes that).`
  );
}

/** Compiles a traced graph with the engine that is predicted to take less time in all. */
async function compileAuto(traced: Graph, options: GraphOptions): Promise<Backend> {
  const { name = 'program', runs = DEFAULT_RUNS, numThreads = availableParallelism(), following } = options;
  const graphs = following === undefined ? [traced] : [traced, following()];
  const predicted = predictSeconds(graphs, runs, numThreads);
  const pays = predicted.native <= predicted.onnx;
  const native = pays ? await nativeIfPossible(traced, options) : null;
  // Where machine code is not possible, the notice has told why.
  if (native !== null || !pays)
    options.explain?.(explanation(name, runs, predicted, native === null ? 'onnx' : 'native'));
  if (native !== null) return native;
  const graph = optimize(traced);
  const cut = cutLoops(graph);
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
