/** @file Agreement of ranks with one process: their gathered results, for random shardings of arguments and results. */
import { type HostTensor, sizeOf, type Tensor, type Tree } from '../../../src/compiler/index.js';
import { optimize } from '../../../src/compiler/passes/index.js';
import type { Graph, Value } from '../../../src/compiler/program/ir.js';
import { asksRanks } from '../../../src/compiler/rules/collectiveRules.js';
import { type MeshShape, partition, type Sharding } from '../../../src/compiler/spmd/index.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { expectClose, type Tolerance } from '../support.js';
import { partOf, runRanks, wholeFrom } from './ranks.js';

export const MESHES: readonly MeshShape[] = [[2], [3], [2, 2], [4], [2, 3], [2, 2, 2]];

/** Numbers below a limit, the same ones for a seed. */
export function drawsOf(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** A random sharding, of axes that divide the dimensions. */
function drawSharding(shape: readonly number[], mesh: MeshShape, draw: (below: number) => number): Sharding {
  const left = [...mesh.keys()];
  return shape.map((size) => {
    const axes: number[] = [];
    let rest = size;
    while (left.length > 0 && draw(3) > 0) {
      const [axis] = left.splice(draw(left.length), 1);
      if (rest === 0 || rest % mesh[axis!]! > 0) continue;
      axes.push(axis!);
      rest /= mesh[axis!]!;
    }
    return axes;
  });
}

/** The operations of a program, those in bodies included. */
export const opsOf = ({ nodes }: Graph): string[] =>
  nodes.flatMap(({ op, bodies = [] }) => [op, ...bodies.flatMap(opsOf)]);

/**
 * Expects of all ranks together what one process computes.
 *
 * @returns the operations of a rank's program.
 */
export async function expectSharing(
  f: (inputs: any[]) => Tree<Tensor>,
  inputs: readonly HostTensor[],
  mesh: MeshShape,
  draw: (below: number) => number,
  what: string,
  tolerance: Tolerance = { relative: 1e-4, absolute: 1e-4 },
): Promise<string[]> {
  const graph = optimize(traceProgram(f as any, [...inputs]).graph);
  const draws = (values: readonly Value[]) => values.map(({ shape }) => drawSharding(shape, mesh, draw));
  const borders = { inputs: draws(graph.inputs), outputs: draws(graph.outputs) };
  const own = optimize(partition(graph, borders, mesh).own);
  const ranks = mesh.reduce((a, b) => a * b, 1);
  const parts = Array.from({ length: ranks }, (_, rank) =>
    inputs.map(({ data, shape }, i) => partOf(data, shape, borders.inputs[i]!, mesh, rank)),
  );
  const expected = await runRanks(graph, [inputs.map(({ data }) => data)]);
  const results = await runRanks(own, parts);
  for (const [i, { shape, dtype }] of graph.outputs.entries()) {
    if (sizeOf(shape) === 0) continue;
    const data = wholeFrom(results[i]!, shape, borders.outputs[i]!, mesh);
    const told =
      `${what} over ${mesh.join(' x ')}, inputs ${JSON.stringify(borders.inputs)}, ` +
      `output ${i} ${JSON.stringify(borders.outputs[i])}`;
    expectClose({ shape, dtype, data }, { shape, dtype, data: expected[i]![0]! }, tolerance, told);
  }
  return opsOf(own);
}

/** A program's parts by given shardings, and its collectives with the shapes of what is sent. */
export function collectivesOf(graph: Graph): string[] {
  return graph.nodes
    .filter(({ op }) => asksRanks(op))
    .map(({ op, inputs, attrs }) => `${op} [${inputs[0]!.shape}] over ${attrs.axes}`);
}
