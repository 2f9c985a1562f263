/** @file A program of one rank from a program of whole tensors, by the shardings of its inputs and outputs. */

import { type Graph, type Node, useCounts, type Value } from '../program/ir.js';
import { CompilerError } from '../program/tensors.js';
import { CONSTRAINT, constrainedSharding } from '../rules/collectiveRules.js';
import { expandSplit } from './expandSplit.js';
import { mergeReductions } from './mergeReductions.js';
import type { Partitioned } from './partitionText.js';
import { PartWriter } from './partWriter.js';
import { propagate } from './propagate.js';
import { relationsOf } from './relations.js';
import { emitTo, reshard } from './reshard.js';
import { endsInRows, scatterRows, withMasksEarly, without } from './rows.js';
import { localShape, type MeshShape, type Sharding, type Shardings, wholeOf } from './sharding.js';

/** Shardings of inputs and outputs, by number; absent ones are whole. */
export interface Borders {
  readonly inputs: readonly (Sharding | undefined)[];
  readonly outputs: readonly (Sharding | undefined)[];
  /** Names of inputs and outputs, for messages. */
  readonly names?: { readonly inputs: readonly string[]; readonly outputs: readonly string[] };
  /**
   * Axes along which ranks have other rows, as the program says nothing of: its batch is that of the ranks along the other axes.
   * An input that is split over these is gathered where it is read, in a loop by each turn, and once more for a gradient. Such an
   * output is the sum over the ranks along them, of which each has its part.
   */
  readonly rowAxes?: readonly number[];
}

/** @throws CompilerError for a sharding that a tensor cannot have. */
function check(what: string, { shape }: Value, sharding: Sharding | undefined, mesh: MeshShape): void {
  if (sharding === undefined) return;
  const axes = sharding.flat();
  const fits =
    sharding.length === shape.length &&
    new Set(axes).size === axes.length &&
    axes.every((axis) => mesh[axis] !== undefined) &&
    localShape(shape, sharding, mesh).every(Number.isInteger);
  if (fits) return;
  throw new CompilerError(
    `${what} [${shape}], can't be split as ${JSON.stringify(sharding)} over a mesh of ${mesh.join(' x ')}: expected, for each ` +
      'dimension, axes that divide it, each of them once.',
  );
}

/** Axes of one device, over which nothing is split. */
const singleAxes = (mesh: MeshShape): number[] => mesh.flatMap((size, axis) => (size === 1 ? [axis] : []));

function checkBorders(graph: Graph, { inputs, outputs, names }: Borders, mesh: MeshShape): void {
  graph.inputs.forEach((input, i) => {
    check(`The input ${names?.inputs[i] ?? i},`, input, inputs[i], mesh);
  });
  graph.outputs.forEach((output, i) => {
    check(`The output ${names?.outputs[i] ?? i},`, output, outputs[i], mesh);
  });
}

const allNodes = ({ nodes }: Graph): Node[] =>
  nodes.flatMap((node) => [node, ...(node.bodies ?? []).flatMap(allNodes)]);

/** Shardings of all tensors of a graph, from those of its borders and constraints. */
function shardingsOf(graph: Graph, { inputs, outputs, rowAxes = [] }: Borders, mesh: MeshShape): Shardings {
  const shardings: Shardings = new Map();
  const fixed = new Set<Value>(graph.inputs);
  graph.inputs.forEach((input, i) => {
    shardings.set(input, without(inputs[i] ?? wholeOf(input.shape), rowAxes));
  });
  for (const node of allNodes(graph)) {
    if (node.op !== CONSTRAINT) continue;
    const [output] = node.outputs as [Value];
    const said = constrainedSharding(node.attrs);
    check(`A tensor of '${node.scope}',`, output, said, mesh);
    const sharding = without(said, [...rowAxes, ...singleAxes(mesh)]);
    shardings.set(output, sharding);
    fixed.add(output);
  }
  graph.outputs.forEach((output, i) => {
    const sharding = outputs[i];
    if (sharding !== undefined && !shardings.has(output) && output.data === undefined)
      shardings.set(output, without(sharding, rowAxes));
  });
  propagate(relationsOf(graph), shardings, (value) => fixed.has(value), mesh);
  return shardings;
}

/**
 * The program of one rank. All ranks run it, each on its parts; which rank it is, collectives know.
 *
 * @throws CompilerError for a sharding that a tensor cannot have.
 */
export function partition(graph: Graph, given: Borders, mesh: MeshShape): Partitioned {
  checkBorders(graph, given, mesh);
  const split = (sharding: Sharding | undefined) => sharding && without(sharding, singleAxes(mesh));
  const borders = { ...given, inputs: given.inputs.map(split), outputs: given.outputs.map(split) };
  const { rowAxes = [] } = borders;
  const isOfRows = (sharding: Sharding | undefined): sharding is Sharding =>
    sharding?.flat().some((axis) => rowAxes.includes(axis)) === true;
  let current = withMasksEarly(
    graph,
    graph.outputs.filter((_, i) => isOfRows(borders.outputs[i])),
  );
  let shardings = shardingsOf(current, borders, mesh);
  for (
    let plainer = expandSplit(current, shardings);
    plainer !== current;
    plainer = expandSplit(current, shardings)
  ) {
    current = plainer;
    shardings = shardingsOf(current, borders, mesh);
  }
  const reads = useCounts(current);
  const scattered = new Map<Value, Sharding>();
  current.outputs.forEach((output, i) => {
    const wanted = borders.outputs[i];
    if (isOfRows(wanted) && endsInRows(wanted, rowAxes) && reads.get(output) === 1)
      scattered.set(output, wanted);
  });
  const writer = new PartWriter(shardings, mesh, { axes: rowAxes, scattered });
  const inputs = writer.open(
    current.inputs,
    current.inputs.map((input, i) => borders.inputs[i] ?? wholeOf(input.shape)),
  );
  for (const node of current.nodes) writer.write(node);
  const emit = emitTo(writer.nodes, '');
  const outputs = current.outputs.map((output, i) => {
    const wanted = borders.outputs[i] ?? wholeOf(output.shape);
    if (scattered.has(output)) return writer.part(output, wanted, '');
    // Minor to axes of rows, others would number other parts.
    const made = wanted.map((axes) => {
      const first = axes.findIndex((axis) => rowAxes.includes(axis));
      return first < 0 ? axes : axes.slice(0, first);
    });
    const summed = wanted.map((axes, dim) => [
      ...made[dim]!,
      ...axes.slice(made[dim]!.length).filter((axis) => rowAxes.includes(axis)),
    ]);
    const value = scatterRows(writer.part(output, made, ''), made, summed, rowAxes, mesh, emit);
    return reshard(value, summed, wanted, mesh, emit);
  });
  return { whole: current, shardings, own: mergeReductions({ inputs, nodes: writer.nodes, outputs }) };
}
