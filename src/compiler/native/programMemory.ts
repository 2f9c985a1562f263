/** @file Memory that a program takes beside its inputs and outputs, from its plan: no C compiler is needed. */
import type { Graph } from '../program/ir.js';
import { byteSize, CompilerError } from '../program/tensors.js';
import { packedBytesOf } from './c/productKernels.js';
import { blockBytes } from './plan/collectives.js';
import { placeArena } from './plan/memory.js';
import { bytesOfPlaces } from './plan/packedPlaces.js';
import { planGraphs } from './plan/planGraphs.js';
import { edgeOf, operandKey, type ProductUnit, sumPartsOf } from './plan/products.js';
import type { Stage } from './plan/stages.js';
import { keptPackings } from './plan/threadSteps.js';
import { type Unit, writesOf } from './plan/units.js';
import { type Buffer, holdersOf, isNarrow, rootOf } from './plan/views.js';
import type { Bfloat16Products } from './toolchain/kernelTable.js';

/** Bytes of a program's memory. */
export interface ProgramMemory {
  /** Intermediate values; they overlap where their lifetimes don't. */
  readonly arena: number;
  /** Packed operands of products, and blocks of collectives. */
  readonly packed: number;
  /** Working memory of one thread. */
  readonly scratch: number;
  /** Constants that are read from memory. */
  readonly constants: number;
}

/** Numbers of parts into which devices split a program's values. */
export interface Parts {
  /** An input, by its path. */
  readonly ofInput: (path: string) => number;
  /** Computed values, by the scope that computes them. */
  readonly ofScope: (scope: string) => number;
}

const whole: Parts = { ofInput: () => 1, ofScope: () => 1 };

/** Panel widths of AVX-512's kernels. Those of other kernels change a model's total by less than one percent. */
const LANES = 16;

/** Elements of a packed matrix. */
const packedSize = (k: number, edge: number): number => k * Math.ceil(edge / LANES) * LANES;

/** As in gemmProducts.c: kernels read packed operands by words. */
const SLAB_WORDS = 512;
const WORD_BYTES = 4;

/** Of k, what is packed at a time: two slabs, of which threads pack one while they multiply the other. */
function packedDepth({ k, c }: ProductUnit, bytes: number): number {
  const elements = WORD_BYTES / bytes;
  const words = Math.ceil(k / elements);
  const slabs = Math.ceil(words / SLAB_WORDS);
  return isNarrow(c.buffer.storage) || slabs <= 1 ? k : 2 * elements * Math.ceil(words / slabs);
}

/** Bytes of the packed operands of concurrent products; shared ones count once. Those in parts have the parts' sums. */
function workspaceOf(
  products: readonly ProductUnit[],
  splitOf: (buffer: Buffer) => number,
  instructions: Bfloat16Products | undefined,
): number {
  const operands = new Map<string, number>();
  let sums = 0;
  for (const unit of products) {
    const parts = sumPartsOf(unit);
    sums += parts * unit.m * Math.ceil(unit.n / LANES) * LANES * 4;
    if (parts > 0) continue;
    const bytes = packedBytesOf(unit.precision, instructions);
    for (const side of ['a', 'b'] as const) {
      const size = packedSize(packedDepth(unit, bytes), edgeOf(side, unit));
      operands.set(operandKey(side, unit), (bytes * size) / splitOf(unit[side].buffer));
    }
  }
  return [...operands.values()].reduce((sum, bytes) => sum + bytes, sums);
}

/** Into how many parts buffers are split: inputs by their paths, others by the scope that writes first, be it a slice. */
function partsByBuffer({ inputs }: Graph, units: readonly Unit[], parts: Parts): (buffer: Buffer) => number {
  const written = new Map<Buffer, number>();
  for (const { buffer, scope } of units.flatMap(scopedWrites))
    for (const holder of holdersOf(buffer))
      if (!written.has(holder)) written.set(holder, parts.ofScope(scope));
  return (buffer) => {
    const { home } = rootOf(buffer);
    return home.kind === 'input' ? parts.ofInput(inputs[home.index]!.name!) : (written.get(buffer) ?? 1);
  };
}

/** The buffers that a unit writes, with the scope of each. */
function scopedWrites(unit: Unit): { readonly buffer: Buffer; readonly scope: string }[] {
  if (unit.kind === 'loop') return unit.nodes.map(({ write: { buffer }, scope }) => ({ buffer, scope }));
  return writesOf(unit).map((buffer) => ({ buffer, scope: unit.scope }));
}

const isProducts = (stage: Stage): stage is Stage & { kind: 'products' } => stage.kind === 'products';

/**
 * Memory of optimized graphs, the second to follow the first in the same run, as the native engine plans it. What devices
 * split counts for one of them; constants and a thread's working memory are whole.
 *
 * @param instructions by which products of bfloat16 are made, where that is known.
 * @throws CompilerError for an operation that it has no rule for.
 */
export function programMemory(
  graph: Graph,
  following: Graph | null = null,
  parts: Parts = whole,
  instructions?: Bfloat16Products,
): ProgramMemory {
  const planned = planGraphs(graph, {}, following);
  if ('missing' in planned) throw new CompilerError(`The native engine has no rule for ${planned.missing}.`);
  const { units, schedule, plan, scratchBytes, constants, packedPlaces } = planned.plan;
  const splitOf = partsByBuffer(planned.graph, units, parts);
  const kept = keptPackings(plan);
  const packings = schedule.packings.map((packing) => {
    const { precision, k, n, b } = packing.unit;
    const bytes = packedBytesOf(precision, instructions, kept.has(packing));
    return (bytes * packedSize(k, n)) / splitOf(b.buffer);
  });
  const products = schedule.stages.filter(isProducts);
  const workspaces = [
    ...products.map((stage) => workspaceOf(stage.units, splitOf, instructions)),
    ...units.map((unit) => (unit.kind === 'call' ? blockBytes(unit) : 0)),
  ];
  return {
    arena: placeArena(plan, (buffer) => buffer.size / splitOf(buffer)),
    packed: bytesOfPlaces(packedPlaces, packings) + Math.max(0, ...workspaces),
    scratch: scratchBytes,
    constants: constants.reduce((sum, constant) => sum + byteSize(constant), 0),
  };
}
