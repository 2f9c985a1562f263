/** @file Lowering of a graph to C: its plan as text. */
import type { Graph } from '../../program/ir.js';
import { type Precision, precisionOf } from '../../program/precision.js';
import { type Overwrite, overwritesOf } from '../plan/overwrites.js';
import { type KeptInputs, type PlannedGraphs, planGraphs } from '../plan/planGraphs.js';
import type { Unit } from '../plan/units.js';
import { type ProgramText, writeProgram } from './emitProgram.js';
import { hasCode } from './hasCode.js';
import { hasKernels } from './productKernels.js';

/** A program in C, with its plan and interface. */
export interface NativeProgram extends PlannedGraphs, ProgramText {
  /** Outputs that may share memory with inputs. */
  readonly overwrites: readonly Overwrite[];
}

const opsOf = (unit: Unit): string[] => {
  if (unit.kind === 'loop') return unit.nodes.map(({ op }) => op);
  return unit.kind === 'call' ? [unit.op] : [];
};

/** The precision that a unit multiplies in. */
const precisionsOf = (unit: Unit): Precision[] => {
  if (unit.kind === 'product') return [unit.precision];
  return unit.kind === 'call' ? [precisionOf(unit.attrs)] : [];
};

/** Lowers an optimized graph and one that follows; parameters as in `planGraphs`. */
export function lowerToC(
  graph: Graph,
  kept: KeptInputs = {},
  then: Graph | null = null,
): NativeProgram | { readonly missing: string } {
  const planned = planGraphs(graph, kept, then);
  if ('missing' in planned) return planned;
  const { plan: native } = planned;
  const missing = native.units.flatMap(opsOf).find((op) => !hasCode(op));
  if (missing !== undefined) return { missing: `the operation '${missing}'` };
  const lacking = native.units.flatMap(precisionsOf).find((precision) => !hasKernels(precision));
  if (lacking !== undefined) return { missing: `products in ${lacking}` };
  return {
    ...planned,
    ...writeProgram(native.schedule, native.plan, native),
    overwrites: overwritesOf(native.plan),
  };
}
