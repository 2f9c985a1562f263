/**
 * @file Axes of rows, along which a program says nothing: what lies over them is whole to it, gathered where it is read, and sums of
 * gradients are scattered over them as soon as they are there.
 */
import { type Graph, type Node, newValue, producers, useCounts, type Value } from '../program/ir.js';
import { sizeOf } from '../program/tensors.js';
import { loopCounts } from './relations.js';
import type { Emit } from './reshard.js';
import type { MeshShape, Sharding } from './sharding.js';

/** The sharding without some axes. */
export const without = (sharding: Sharding, axes: readonly number[]): Sharding =>
  sharding.map((own) => own.filter((axis) => !axes.includes(axis)));

/** Whether axes of rows are the minor ones of each dimension. */
export const endsInRows = (sharding: Sharding, rowAxes: readonly number[]): boolean =>
  sharding.every((axes) => {
    const first = axes.findIndex((axis) => rowAxes.includes(axis));
    return first < 0 || axes.slice(first).every((axis) => rowAxes.includes(axis));
  });

/**
 * The parts of a sum over ranks with other rows.
 *
 * @param made the sharding so far, of which axes of rows are the minor ones of `wanted`.
 * @param rowAxes in the order in which sub-batches are numbered.
 */
export function scatterRows(
  value: Value,
  made: Sharding,
  wanted: Sharding,
  rowAxes: readonly number[],
  mesh: MeshShape,
  emit: Emit,
): Value {
  const places = wanted.map((axes, dim) => ({ dim, axes: axes.slice(made[dim]!.length) }));
  const lastOf = (axes: readonly number[]): number => rowAxes.indexOf(axes.at(-1)!);
  // Minor axes first: neighbors in the tree of sub-batches.
  const order = places.filter(({ axes }) => axes.length > 0).sort((a, b) => lastOf(b.axes) - lastOf(a.axes));
  return order.reduce(
    (whole, { dim, axes }) =>
      ascendingRuns(axes, rowAxes).reduce(
        (sum, run) => emit('ReduceScatter', [sum], { mesh, axes: run, dim }),
        whole,
      ),
    value,
  );
}

/** Axes in parts whose members are numbered as sub-batches are. */
function ascendingRuns(axes: readonly number[], rowAxes: readonly number[]): number[][] {
  const runs: number[][] = [];
  for (const axis of axes) {
    const last = runs.at(-1);
    if (last !== undefined && rowAxes.indexOf(axis) > rowAxes.indexOf(last.at(-1)!)) last.push(axis);
    else runs.push([axis]);
  }
  return runs;
}

/** A choice between a value and zeros that makes an output, and nothing else. */
interface Mask {
  readonly output: Value;
  readonly condition: Value;
  readonly value: Value;
  readonly nodes: readonly [zeros: Node, select: Node];
}

/** The mask that makes an output. */
function maskOf(
  output: Value,
  made: ReadonlyMap<Value, Node>,
  reads: ReadonlyMap<Value, number>,
): Mask | undefined {
  const select = made.get(output);
  if (select?.op !== 'Select' || reads.get(output) !== 1) return undefined;
  const [condition, value, other] = select.inputs as [Value, Value, Value];
  const zeros = made.get(other);
  const isMask =
    zeros?.op === 'ZerosLike' &&
    zeros.inputs[0] === value &&
    sizeOf(condition.shape) === 1 &&
    reads.get(value) === 2 &&
    reads.get(other) === 1;
  return isMask ? { output, condition, value, nodes: [zeros, select] } : undefined;
}

/** A loop that masks in each turn what it stacks. */
function maskedLoop(loop: Node, masks: readonly Mask[]): Node {
  const [body] = loop.bodies as [Graph];
  const conditions = [...new Set(masks.map(({ condition }) => condition))];
  const given = conditions.map((condition) => newValue(condition));
  const nodes = [...body.nodes];
  const outputs = [...body.outputs];
  for (const { condition, value, nodes: own } of masks) {
    const at = loop.outputs.indexOf(value);
    const turn = outputs[at]!;
    const [zeros, masked] = [newValue(turn), newValue(turn)];
    const inner = given[conditions.indexOf(condition)]!;
    nodes.push({ ...own[0], inputs: [turn], outputs: [zeros] });
    nodes.push({ ...own[1], inputs: [inner, turn, zeros], outputs: [masked] });
    outputs[at] = masked;
  }
  return {
    ...loop,
    inputs: [...loop.inputs, ...conditions],
    outputs: loop.outputs.map((output) => masks.find(({ value }) => value === output)?.output ?? output),
    bodies: [{ inputs: [...body.inputs, ...given], nodes, outputs }],
  };
}

/**
 * The graph with masks of some outputs right behind what they mask, within the loop that stacks it if there is one: a training
 * step masks gradients at its end.
 */
export function withMasksEarly(graph: Graph, outputs: readonly Value[]): Graph {
  const [made, reads] = [producers(graph), useCounts(graph)];
  const places = new Map(graph.nodes.map((node, i) => [node, i]));
  const placeOf = (value: Value): number => places.get(made.get(value)!) ?? -1;
  const moved = new Set<Node>();
  const behind = new Map<number, Node[]>();
  const inLoops = new Map<Node, Mask[]>();
  for (const output of outputs) {
    const mask = maskOf(output, made, reads);
    if (mask === undefined) continue;
    const { value, condition, nodes } = mask;
    const maker = made.get(value);
    const isStacked = maker?.op === 'Scan' && maker.outputs.indexOf(value) >= loopCounts(maker).carries;
    if (isStacked && placeOf(condition) < placeOf(value))
      inLoops.set(maker, [...(inLoops.get(maker) ?? []), mask]);
    else {
      const place = Math.max(placeOf(value), placeOf(condition));
      behind.set(place, [...(behind.get(place) ?? []), ...nodes]);
    }
    for (const node of nodes) moved.add(node);
  }
  if (moved.size === 0) return graph;
  const placed = graph.nodes.flatMap((node, i) => {
    const masks = inLoops.get(node);
    const own = moved.has(node) ? [] : [masks === undefined ? node : maskedLoop(node, masks)];
    return [...own, ...(behind.get(i) ?? [])];
  });
  return { ...graph, nodes: [...(behind.get(-1) ?? []), ...placed] };
}
