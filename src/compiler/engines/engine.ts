/** @file Choice of the engine that runs a graph, and the notice where it is not the fastest. */

import { availableParallelism } from 'node:os';
import { warn } from '../../system/index.js';
import type { EagerDevice } from '../eager/eagerBackend.js';
import { type Attempt, tryNative } from '../native/compileNatively.js';
import type { Bfloat16Products } from '../native/toolchain/kernelTable.js';
import { compileOnnx } from '../onnx/onnxSession.js';
import { optimize } from '../passes/index.js';
import type { Profiler } from '../profile/profiler.js';
import type { Backend } from '../program/backend.js';
import type { Graph } from '../program/ir.js';
import type { RankCalls } from '../program/rankCalls.js';
import { CompilerError, type NarrowType, NativeEngineError } from '../program/tensors.js';
import { type PredictedSeconds, predictSeconds } from './engineCost.js';

/**
 * Engines. `auto` takes machine code where the machine has a C compiler and the expected runs are predicted to pay for
 * compiling, otherwise ONNX Runtime.
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
  readonly storages?: Readonly<Record<string, NarrowType>>;
  readonly bfloat16Products?: Bfloat16Products | undefined;
  readonly profiler?: Profiler | undefined;
  /** The other ranks, for programs with collectives, which machine code alone runs (program/rankCalls.ts). */
  readonly ranks?: RankCalls | undefined;
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

/** A graph to be compiled. */
interface Request {
  readonly traced: Graph;
  readonly optimized: () => Graph;
  readonly options: GraphOptions;
}

/** An engine that runs graphs. */
interface GraphEngine {
  /** Its predicted time is under the same name. */
  readonly name: keyof PredictedSeconds;
  /** Whether `auto` takes another one, with a notice, where it gives a reason or fails. */
  readonly isOptional: boolean;
  /** Compiles a graph, or says why it can't. */
  readonly attempt: (request: Request) => Promise<Attempt>;
}

/**
 * All engines of graphs, which the list alone names. Of those that cost the same, earlier ones come first; the last one
 * runs every program.
 */
const GRAPH_ENGINES: readonly GraphEngine[] = [
  {
    name: 'native',
    isOptional: true,
    attempt: ({ traced, options }) => tryNative(traced, options),
  },
  {
    name: 'onnx',
    isOptional: false,
    attempt: async ({ optimized, options }) => ({ backend: await compileOnnx(optimized(), options) }),
  },
];

/** Attempts an engine; a program that an optional one can't compile is a reason. */
async function attempted(engine: GraphEngine, request: Request): Promise<Attempt> {
  try {
    return await engine.attempt(request);
  } catch (error) {
    if (!engine.isOptional || !(error instanceof CompilerError)) throw error;
    return { reason: error.message };
  }
}

const inSeconds = (seconds: number): string => `${Number(seconds.toPrecision(2))} s`;

/** The sentence that explains a choice. */
function explanation(
  { name = 'program' }: GraphOptions,
  runs: number,
  predicted: PredictedSeconds,
  taken: keyof PredictedSeconds,
): string {
  const other = taken === 'native' ? 'onnx' : 'native';
  return (
    `${name} runs on engine ${taken}: ${runs} ${runs === 1 ? 'run' : 'runs'} should take ${inSeconds(predicted[taken])} ` +
    `there, compiling included, and ${inSeconds(predicted[other])} on ${other} (--engine=${other} takes that).`
  );
}

/** Compiles a graph with the engine that is predicted to take less time in all, of those that can. */
async function compileAuto(request: Request): Promise<Backend> {
  const { traced, options } = request;
  const { runs = DEFAULT_RUNS, numThreads = availableParallelism(), following } = options;
  const graphs = following === undefined ? [traced] : [traced, following()];
  const predicted = predictSeconds(graphs, runs, numThreads);
  const byCost = GRAPH_ENGINES.toSorted((a, b) => predicted[a.name] - predicted[b.name]);
  let isExplained = false;
  for (const engine of byCost) {
    const attempt = await attempted(engine, request);
    if ('backend' in attempt) {
      if (!isExplained) options.explain?.(explanation(options, runs, predicted, engine.name));
      return attempt.backend;
    }
    tellOnce(`${attempt.reason} Running on ONNX Runtime instead, which is slower.`);
    isExplained = true;
  }
  throw new Error('The last engine gave a reason.');
}

/**
 * Compiles a traced graph with the requested engine.
 *
 * @throws CompilerError where `native` is requested and the machine or the program does not support it.
 */
export async function compileGraph(traced: Graph, options: GraphOptions): Promise<Backend> {
  let graph: Graph | undefined;
  const request: Request = { traced, options, optimized: () => (graph ??= optimize(traced)) };
  const { engine = 'auto', ranks, name = 'program' } = options;
  const named = engine === 'auto' && ranks !== undefined ? 'native' : engine;
  const asked = GRAPH_ENGINES.find((each) => each.name === named);
  if (asked === undefined) return compileAuto(request);
  const attempt = await asked.attempt(request);
  if ('backend' in attempt) return attempt.backend;
  throw new NativeEngineError(`${name}: ${attempt.reason} Use --engine=onnx.`);
}
