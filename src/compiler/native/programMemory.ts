/** @file Memory that a program takes beside its inputs and outputs, from its plan: no C compiler is needed. */
import type { Graph } from '../ir.js';
import { byteSize, CompilerError } from '../tensors.js';
import { planGraphs } from './lowerToC.js';
import { edgeOf, operandKey, type ProductUnit } from './products.js';
import type { Stage } from './stages.js';
import { localCpuinfo } from './toolchain/cpuFeatures.js';

/** Bytes of a program's memory. */
export interface ProgramMemory {
  /** Intermediate values; they overlap where their lifetimes don't. */
  readonly arena: number;
  /** Packed operands of products. */
  readonly packed: number;
  /** Working memory of one thread. */
  readonly scratch: number;
  /** Constants that are read from memory. */
  readonly constants: number;
}

/** Panel widths of AVX-512's kernels. Those of other kernels change a model's total by less than one percent. */
const LANES = 16;

let wordBytes: number | undefined;

/** Bytes of a packed bfloat16: CPUs that multiply bfloat16 pack it as such, others as float32. */
function bfloat16Bytes(): number {
  wordBytes ??= /\bavx512_bf16\b/.test(localCpuinfo()) ? 2 : 4;
  return wordBytes;
}

/** Bytes of a packed matrix. */
function packedBytes({ precision, k }: ProductUnit, edge: number): number {
  return k * Math.ceil(edge / LANES) * LANES * (precision === 'bfloat16' ? bfloat16Bytes() : 4);
}

/** Bytes of the packed operands of concurrent products; shared ones count once. */
function workspaceOf(products: readonly ProductUnit[]): number {
  const operands = new Map<string, number>();
  for (const unit of products) {
    for (const side of ['a', 'b'] as const)
      operands.set(operandKey(side, unit), packedBytes(unit, edgeOf(side, unit)));
  }
  return [...operands.values()].reduce((sum, bytes) => sum + bytes, 0);
}

const isProducts = (stage: Stage): stage is Stage & { kind: 'products' } => stage.kind === 'products';

/**
 * Memory of optimized graphs, the second to follow the first in the same run, as the native engine plans it.
 *
 * @throws CompilerError for an operation that it has no rule for.
 */
export function programMemory(graph: Graph, following: Graph | null = null): ProgramMemory {
  const planned = planGraphs(graph, {}, following);
  if ('missing' in planned)
    throw new CompilerError(`The native engine has no rule for the operation '${planned.missing}'.`);
  const { schedule, plan, arenaBytes, scratchBytes, constants } = planned.plan;
  const packings = schedule.packings.reduce((sum, { unit }) => sum + packedBytes(unit, unit.n), 0);
  const workspace = Math.max(0, ...schedule.stages.filter(isProducts).map(({ units }) => workspaceOf(units)));
  return {
    arena: arenaBytes,
    packed: packings + workspace,
    scratch: scratchBytes + plan.accumulatorBytes,
    constants: constants.reduce((sum, constant) => sum + byteSize(constant), 0),
  };
}
