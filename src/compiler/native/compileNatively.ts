/** @file Compilation of a graph to machine code. */
import { availableParallelism } from 'node:os';
import { optimize } from '../passes/index.js';
import type { Profiler } from '../profile/profiler.js';
import type { Backend } from '../program/backend.js';
import { productPrecision } from '../program/cost.js';
import { type Graph, joinGraphs } from '../program/ir.js';
import { precisionOf } from '../program/precision.js';
import type { RankCalls } from '../program/rankCalls.js';
import { writeDump } from '../program/writeDump.js';
import { PROGRAM_SECTIONS } from './c/emitProgram.js';
import { lowerToC } from './c/lowerToC.js';
import { isChosen } from './c/productKernels.js';
import { dumpTexts } from './dump/programTexts.js';
import { openProgram } from './nativeProgram.js';
import type { KeptInputs } from './plan/planGraphs.js';
import { partsOf } from './plan/profiledParts.js';
import { planPlace } from './stored/storedPlan.js';
import { compileC } from './toolchain/compileC.js';
import { openToolchain } from './toolchain/index.js';
import { type Bfloat16Products, chooseBfloat16, kernelTable } from './toolchain/kernelTable.js';

/** Options of a native program. */
export interface NativeOptions extends KeptInputs {
  readonly name?: string;
  /** Threads per run; one per core by default. */
  readonly numThreads?: number;
  /** How products of bfloat16 are made; by default, as is faster on this machine. */
  readonly bfloat16Products?: Bfloat16Products | undefined;
  /** Collects the run times. */
  readonly profiler?: Profiler | undefined;
  /** The other ranks, for programs with collectives. */
  readonly ranks?: RankCalls | undefined;
  /** Traces the graph that follows in the same run; its inputs and outputs come after those of the first. */
  readonly following?: (() => Graph) | undefined;
}

/** Whether a graph has products whose instructions the machine's table chooses. */
const hasChosenProducts = ({ nodes }: Graph): boolean =>
  nodes.some(({ attrs, bodies = [] }) => isChosen(precisionOf(attrs)) || bodies.some(hasChosenProducts));

/** A backend, or a sentence that says why there is none. */
export type Attempt = { readonly backend: Backend } | { readonly reason: string };

/** Lowers traced graphs, the second to follow the first. @returns the plan, or an operation without a rule. */
function planAnew(graphs: readonly Graph[], { name = 'program', profiler, ...kept }: NativeOptions) {
  const [graph, following] = graphs.map(optimize);
  const lowered = lowerToC(graph!, kept, following);
  if ('missing' in lowered) return lowered;
  const { LUTHIER_DUMP } = process.env;
  if (LUTHIER_DUMP) writeDump(LUTHIER_DUMP, name, dumpTexts(lowered));
  const { source, groups, storages, overwrites, plan } = lowered;
  const parts = profiler === undefined ? undefined : partsOf(plan);
  return { source, groups, storages, overwrites, constants: plan.constants.map(({ data }) => data!), parts };
}

/**
 * Compiles a traced graph with the machine's C compiler, where the machine and the graph allow it. A plan that an
 * earlier process stored is reused, unless LUTHIER_DUMP asks for a dump.
 *
 * @throws NativeEngineError where the C compiler fails, or memory is short.
 */
export async function tryNative(graph: Graph, options: NativeOptions = {}): Promise<Attempt> {
  // Probes the toolchain while the second graph is traced.
  const opening = openToolchain();
  const { name = 'program', ranks, profiler, following } = options;
  const { numThreads = ranks?.areThreads ? 1 : availableParallelism() } = options;
  const graphs = following === undefined ? [graph] : [graph, following()];
  const toolchain = await opening;
  const products =
    'reason' in toolchain || !graphs.some(hasChosenProducts)
      ? undefined
      : (options.bfloat16Products ?? chooseBfloat16(await kernelTable(toolchain)));
  const defines = [
    ...(profiler === undefined ? [] : ['LUTHIER_PROFILE']),
    ...(products === 'float32 instructions' ? ['LT_BY_FLOATS'] : []),
  ];
  const compiling = { name, defines };
  const place =
    process.env.LUTHIER_DUMP || 'reason' in toolchain
      ? undefined
      : planPlace(toolchain, graphs, { ...options, ...compiling });
  const stored = place?.find();
  const plan = stored ?? planAnew(graphs, options);
  if ('missing' in plan) return { reason: `The native engine has no rule for ${plan.missing}.` };
  if ('reason' in toolchain) return toolchain;
  if (stored === undefined) await place?.keep(plan);
  const compile = () => compileC(toolchain, plan.source, { ...compiling, sections: PROGRAM_SECTIONS });
  const joined = graphs.reduce(joinGraphs);
  const backend = await openProgram(toolchain, compile, plan.constants, {
    name,
    threads: numThreads,
    profile: profiler?.open(name, 'native', productPrecision(graph), numThreads, plan.parts),
    inputs: joined.inputs,
    outputs: joined.outputs,
    storages: plan.storages,
    overwrites: plan.overwrites,
    groups: plan.groups,
    ranks,
  });
  return { backend };
}
