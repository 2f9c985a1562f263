/** @file Plan of a graph: preparation, layout, fusion, scheduling and memory, in no language. */
import { type Graph, joinGraphs, type Value } from '../../program/ir.js';
import { blockRowsOf } from './blocks.js';
import { formOf } from './forms.js';
import { type Layout, layOut } from './layout.js';
import { placeArena, placeScratch } from './memory.js';
import { prepareForNative } from './prepare.js';
import { fuseSegments, scheduleSegments, unitsOfSegments } from './scheduleLoops.js';
import { type Chain, inTurn, type Schedule } from './stages.js';
import { contract, halvesOf, keepInRegisters, roundStorage } from './storage.js';
import { type Plan, plan } from './threadSteps.js';
import type { Unit } from './units.js';
import { verifyPlan } from './verifyPlan.js';

/** Intermediate results between the graph and the C text, for dumps and tests. */
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

/** Planned graphs. */
export interface PlannedGraphs {
  /** The graph after preparation, with composites expanded. */
  readonly graph: Graph;
  readonly plan: NativePlan;
  /** Inputs and outputs stored in bfloat16. */
  readonly halves: { readonly inputs: readonly boolean[]; readonly outputs: readonly boolean[] };
}

/** Inputs that persist between runs, by path or path prefix. */
export interface KeptInputs {
  /** Inputs whose contents stay the same until the caller reports a change. */
  readonly frozen?: readonly string[] | undefined;
  /** float32 inputs stored in bfloat16. */
  readonly halves?: readonly string[] | undefined;
}

/** The inputs at these paths and below. */
const inputsAt = ({ inputs }: Graph, paths: readonly string[] = []): Set<Value> =>
  new Set(inputs.filter(({ name }) => paths.some((path) => name === path || name!.startsWith(`${path}.`))));

/** Plans a placed graph; `frozen` inputs, by number, keep their contents between runs. */
export function planNative(
  { ops, later, constants }: Layout,
  frozen: ReadonlySet<number> = new Set(),
): NativePlan {
  const turns = [ops, later].map((turn) => fuseSegments(turn, frozen));
  const units = turns.flatMap(unitsOfSegments);
  keepInRegisters(units);
  const scheduled = turns.map(scheduleSegments).reduce(inTurn);
  contract(scheduled.stages);
  roundStorage(scheduled.stages);
  const planned = plan(scheduled);
  verifyPlan(planned, frozen);
  const arenaBytes = placeArena(planned);
  const chains = scheduled.stages.filter((stage): stage is Chain => stage.kind === 'chain');
  const blockRows = new Map(chains.map((chain) => [chain, blockRowsOf(chain)]));
  const scratchBytes = Math.max(0, ...chains.map((chain) => placeScratch(chain, blockRows.get(chain)!)));
  return { units, schedule: scheduled, plan: planned, arenaBytes, scratchBytes, blockRows, constants };
}

/**
 * Plans an optimized graph.
 *
 * @param kept which inputs are frozen, or stored in bfloat16.
 * @param then an optimized graph that follows in the same run. Its inputs may be in memory that the first one writes.
 * @returns the plan, or the name of an operation without a rule.
 */
export function planGraphs(
  graph: Graph,
  kept: KeptInputs = {},
  then: Graph | null = null,
): PlannedGraphs | { readonly missing: string } {
  const [first, second] = [prepareForNative(graph), then && prepareForNative(then)];
  const prepared = second === null ? first : joinGraphs(first, second);
  const rounded = inputsAt(prepared, kept.halves);
  const layout = layOut(first, rounded, second);
  const missing = [...layout.ops, ...layout.later].find(({ op }) => formOf(op) === undefined)?.op;
  if (missing !== undefined) return { missing };
  const frozen = new Set([...inputsAt(prepared, kept.frozen)].map((input) => prepared.inputs.indexOf(input)));
  const halves = halvesOf(prepared, rounded);
  return {
    graph: prepared,
    plan: planNative(layout, frozen),
    halves: {
      inputs: prepared.inputs.map((input) => halves.has(input)),
      outputs: prepared.outputs.map((output) => halves.has(output)),
    },
  };
}
