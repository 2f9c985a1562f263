/** @file Choice of how ranks share an operation: the cheapest of the ways that its inputs and outputs suggest. */
import type { Node } from '../program/ir.js';
import type { TensorSpec } from '../program/tensors.js';
import type { Factors } from '../rules/factors.js';
import { ruleOf } from '../rules/index.js';
import { assignmentBy } from './propagate.js';
import { summedFactors } from './relations.js';
import { localBytes, reshardBytes } from './reshard.js';
import { type Assignment, type MeshShape, type Sharding, shardingBy, waysOf } from './sharding.js';

/** FLOPs that take as long as a byte takes to arrive, about. */
const FLOPS_PER_BYTE = 32;

/** Shardings of a node's inputs, as they are, and of its outputs, as they are wanted. */
export interface Around {
  readonly inputs: readonly Sharding[];
  readonly outputs: readonly Sharding[];
}

/** Axes over which results of parts are added up, by the factor. */
export const summedAxes = (factors: Factors, assignment: Assignment): Map<number, readonly number[]> =>
  new Map(
    [...summedFactors(factors)]
      .filter((factor) => assignment[factor]!.length > 0 && factors.reductions?.[factor] !== 'none')
      .map((factor) => [factor, assignment[factor]!]),
  );

/** Bytes that a rank receives, and the FLOPs that it takes, as bytes. */
function costOf(
  node: Node,
  factors: Factors,
  assignment: Assignment,
  around: Around,
  mesh: MeshShape,
): number {
  const moved = (spec: TensorSpec, from: Sharding, to: Sharding) =>
    reshardBytes(localBytes(spec, from, mesh), from, to, mesh);
  let bytes = 0;
  node.inputs.forEach((input, i) => {
    bytes += moved(input, around.inputs[i]!, shardingBy(factors.inputs[i]!, assignment, factors, mesh));
  });
  const summed = waysOf([...summedAxes(factors, assignment).values()].flat(), mesh);
  node.outputs.forEach((output, i) => {
    const made = shardingBy(factors.outputs[i]!, assignment, factors, mesh);
    const local = localBytes(output, made, mesh);
    const isScattered = summed > 1 && localBytes(output, around.outputs[i]!, mesh) < local;
    if (summed > 1) bytes += ((isScattered ? 1 : 2) * local * (summed - 1)) / summed;
    else bytes += moved(output, made, around.outputs[i]!);
  });
  const flops = ruleOf(node.op).flops?.(node.inputs, node.outputs, node.attrs) ?? 0;
  return bytes + flops / waysOf(assignment.flat(), mesh) / FLOPS_PER_BYTE;
}

/** The assignment that costs least: each tensor's own, with those that others add to it. */
export function cheapest(node: Node, factors: Factors, around: Around, mesh: MeshShape): Assignment {
  const shardings = [...around.outputs, ...around.inputs];
  const dims = [...factors.outputs, ...factors.inputs];
  const seen = new Map<string, Assignment>();
  shardings.forEach((sharding, first) => {
    if (sharding.every((axes) => axes.length === 0)) return;
    const order = [first, ...shardings.keys()].filter((i, at, all) => all.indexOf(i) === at);
    const relation = { dims: order.map((i) => dims[i]!), sizes: factors.sizes };
    const assignment = assignmentBy(
      order.map((i) => shardings[i]!),
      relation,
      mesh,
    );
    seen.set(JSON.stringify(assignment), assignment);
  });
  const whole = factors.sizes.map(() => []);
  const candidates = [...seen.values(), whole];
  if (candidates.length === 1) return whole;
  const costs = candidates.map((each) => costOf(node, factors, each, around, mesh));
  return candidates[costs.indexOf(Math.min(...costs))]!;
}
