/** @file Plan of a graph: preparation, layout, fusion, scheduling and memory, in no language. */
import type { PortStorages } from '../../program/backend.js';
import { type Graph, joinGraphs, type Value } from '../../program/ir.js';
import type { NarrowType } from '../../program/tensors.js';
import { blocksOf } from './blocks.js';
import { formOf } from './forms.js';
import { type Layout, layOut } from './layout.js';
import { placeArena, placeScratch } from './memory.js';
import { CALL_STORAGES } from './operandForms.js';
import { packedPlaces } from './packedPlaces.js';
import { prepareForNative } from './prepare.js';
import { fuseSegments, scheduleSegments, unitsOfSegments } from './scheduleLoops.js';
import { type Chain, inTurn, type Schedule } from './stages.js';
import { contract, keepInRegisters, roundStorage, storagesOf } from './storage.js';
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
  /** Of the schedule's packings: the number of the place that each lies in. */
  readonly packedPlaces: readonly number[];
  /** Constants that are read from memory. */
  readonly constants: readonly Value[];
}

/** Planned graphs. */
export interface PlannedGraphs {
  /** The graph after preparation, with composites expanded. */
  readonly graph: Graph;
  readonly plan: NativePlan;
  /** Storage chosen for inputs and outputs. */
  readonly storages: PortStorages;
}

/** Inputs that persist between runs, by path or path prefix. */
export interface KeptInputs {
  /** Inputs whose contents stay the same until the caller reports a change. */
  readonly frozen?: readonly string[] | undefined;
  /** Storage in which memory may hold inputs. */
  readonly storages?: Readonly<Record<string, NarrowType>> | undefined;
}

/** Whether an input is at a path or below. */
const isAt = ({ name }: Value, path: string): boolean => name === path || name!.startsWith(`${path}.`);

/** The inputs at these paths and below. */
const inputsAt = ({ inputs }: Graph, paths: readonly string[] = []): Set<Value> =>
  new Set(inputs.filter((input) => paths.some((path) => isAt(input, path))));

/** Of the inputs that memory may hold in a storage, those that calls change in place there. */
const storedInputs = ({ inputs }: Graph, storages: KeptInputs['storages'] = {}): Map<Value, NarrowType> =>
  new Map(
    Object.entries(storages)
      .filter(([, storage]) => CALL_STORAGES.includes(storage))
      .flatMap(([path, storage]) =>
        inputs.filter((input) => isAt(input, path)).map((input) => [input, storage]),
      ),
  );

/** Those of some values that have a chosen storage, by number. */
const chosenOf = (
  values: readonly Value[],
  storages: ReadonlyMap<Value, NarrowType>,
): Record<number, NarrowType> =>
  Object.fromEntries(
    values.flatMap((value, i) => {
      const storage = storages.get(value);
      return storage === undefined ? [] : [[i, storage]];
    }),
  );

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
  const scratchBytes = Math.max(0, ...chains.map((chain) => placeScratch(chain, blocksOf(chain).size)));
  return {
    ...{ units, schedule: scheduled, plan: planned, arenaBytes, scratchBytes, constants },
    packedPlaces: packedPlaces(scheduled.packings, planned),
  };
}

/**
 * Plans an optimized graph.
 *
 * @param kept which inputs are frozen, or may be stored in fewer bytes.
 * @param then an optimized graph that follows in the same run. Its inputs may be in memory that the first one writes.
 * @returns the plan, or an operation without a rule.
 */
export function planGraphs(
  graph: Graph,
  kept: KeptInputs = {},
  then: Graph | null = null,
): PlannedGraphs | { readonly missing: string } {
  const [first, second] = [prepareForNative(graph), then && prepareForNative(then)];
  const prepared = second === null ? first : joinGraphs(first, second);
  const stored = storedInputs(prepared, kept.storages);
  const layout = layOut(first, stored, second);
  const missing = [...layout.ops, ...layout.later].find(({ op }) => formOf(op) === undefined)?.op;
  if (missing !== undefined) return { missing: `the operation '${missing}'` };
  const frozen = new Set([...inputsAt(prepared, kept.frozen)].map((input) => prepared.inputs.indexOf(input)));
  const storages = storagesOf(prepared, stored);
  return {
    graph: prepared,
    plan: planNative(layout, frozen),
    storages: {
      inputs: chosenOf(prepared.inputs, storages),
      outputs: chosenOf(prepared.outputs, storages),
    },
  };
}
