/** @file Lowers a graph to C: prepares it, gives values places, fuses, pipelines, plans memory, and writes the text. */
import type { Graph, Value } from '../graph.js';
import { writeProgram } from './emit/program.js';
import { type Layout, layOut } from './layout.js';
import { placeArena, placeScratch } from './memory.js';
import { orderForFusion } from './order.js';
import { prepareForNative } from './prepare.js';
import { type Chain, type Schedule, schedule } from './stages.js';
import { type Plan, plan } from './steps.js';
import { contract, keepInRegisters, roundStorage } from './storage.js';
import { fuse, hasRule, type Unit } from './units.js';

/** A program as C, and what it needs beside its inputs. */
export interface NativeProgram {
  readonly source: string;
  /** The graph that was lowered: prepared, with plainer operations. */
  readonly graph: Graph;
  readonly plan: NativePlan;
}

/** Everything between the graph and the C text, for dumps and tests. */
export interface NativePlan {
  readonly units: readonly Unit[];
  readonly schedule: Schedule;
  readonly plan: Plan;
  readonly arenaBytes: number;
  readonly scratchBytes: number;
  readonly blockRows: ReadonlyMap<Chain, number>;
  /** Constants that are read from memory. */
  readonly constants: readonly Value[];
}

/** Rows of a chain that a thread takes through all of its units at once: enough for the products, few enough for the cache. */
const BLOCK_ROWS = 64;

/** Plans a prepared graph whose values have places. */
export function planNative({ ops, constants }: Layout): NativePlan {
  const units = fuse(orderForFusion(ops));
  keepInRegisters(units);
  const scheduled = schedule(units);
  contract(scheduled.stages);
  roundStorage(scheduled.stages);
  const planned = plan(scheduled.stages);
  const arenaBytes = placeArena(planned);
  const chains = scheduled.stages.filter((stage): stage is Chain => stage.kind === 'chain');
  const blockRows = new Map(chains.map((chain) => [chain, BLOCK_ROWS]));
  const scratchBytes = Math.max(0, ...chains.map((chain) => placeScratch(chain, blockRows.get(chain)!)));
  return { units, schedule: scheduled, plan: planned, arenaBytes, scratchBytes, blockRows, constants };
}

/**
 * Lowers an optimized graph.
 *
 * @returns the program, or the name of an operation that has no rule here.
 */
export function lowerToC(graph: Graph): NativeProgram | { readonly missing: string } {
  const prepared = prepareForNative(graph);
  const layout = layOut(prepared);
  const missing = layout.ops.find((op) => !hasRule(op))?.op;
  if (missing !== undefined) return { missing };
  const native = planNative(layout);
  return { source: writeProgram(native.schedule, native.plan, native), graph: prepared, plan: native };
}
