/** @file All ranks of a mesh in one process: each runs the same pieces, and arrays are exchanged between these. */
import { compileGraph, type Engine } from '../../../src/compiler/engines/engine.js';
import type { Graph, Value } from '../../../src/compiler/program/ir.js';
import { type HostArray, newHostArray, type Shape, sizeOf } from '../../../src/compiler/program/tensors.js';
import { memberOf } from '../../../src/compiler/rules/collectiveRules.js';
import { localShape, type MeshShape, piecesOf, type Sharding } from '../../../src/compiler/spmd/index.js';
import { meaningOf } from '../native/ranks/rankCases.js';

/** A copy of the block that begins at `begin` and has this size. */
function block(data: HostArray, shape: Shape, begin: readonly number[], size: Shape): HostArray {
  const out = new (data.constructor as new (length: number) => HostArray)(sizeOf(size));
  let at = 0;
  const walk = (dim: number, offset: number): void => {
    if (dim === shape.length) out[at++] = data[offset]!;
    else for (let i = 0; i < size[dim]!; i++) walk(dim + 1, offset * shape[dim]! + begin[dim]! + i);
  };
  walk(0, 0);
  return out;
}

/** Writes a block to its place. */
function place(into: HostArray, shape: Shape, begin: readonly number[], part: HostArray, size: Shape): void {
  let at = 0;
  const walk = (dim: number, offset: number): void => {
    if (dim === shape.length) into[offset] = part[at++]!;
    else for (let i = 0; i < size[dim]!; i++) walk(dim + 1, offset * shape[dim]! + begin[dim]! + i);
  };
  walk(0, 0);
}

const beginOf = (shape: Shape, sharding: Sharding, mesh: MeshShape, rank: number): number[] =>
  localShape(shape, sharding, mesh).map((size, dim) => size * memberOf({ mesh, axes: sharding[dim]! }, rank));

/** A rank's part of a whole tensor. */
export const partOf = (data: HostArray, shape: Shape, sharding: Sharding, mesh: MeshShape, rank: number) =>
  block(data, shape, beginOf(shape, sharding, mesh, rank), localShape(shape, sharding, mesh));

/** The whole tensor from the parts of all ranks. */
export function wholeFrom(
  parts: readonly HostArray[],
  shape: Shape,
  sharding: Sharding,
  mesh: MeshShape,
): HostArray {
  const whole = new (parts[0]!.constructor as new (length: number) => HostArray)(sizeOf(shape));
  parts.forEach((part, rank) => {
    place(whole, shape, beginOf(shape, sharding, mesh, rank), part, localShape(shape, sharding, mesh));
  });
  return whole;
}

/** As ONNX's reductions, which pass over NaN. */
const PAIRS = {
  sum: (a: number, b: number) => a + b,
  max: (a: number, b: number) => (a > b || Number.isNaN(b) ? a : b),
  min: (a: number, b: number) => (a < b || Number.isNaN(b) ? a : b),
};

/** The results of all ranks, by output. @param inputs of each rank */
export async function runRanks(
  graph: Graph,
  inputs: readonly (readonly HostArray[])[],
  engine: Exclude<Engine, 'eager'> = 'onnx',
): Promise<HostArray[][]> {
  const held = inputs.map(
    (arrays) => new Map<Value, HostArray>(arrays.map((array, i) => [graph.inputs[i]!, array])),
  );
  const of = (rank: number, value: Value) => held[rank]!.get(value) ?? value.data!;
  for (const { graph: piece, collectives } of piecesOf(graph)) {
    if (piece.outputs.length > 0) {
      const backend = await compileGraph(piece, { engine, numThreads: 1 });
      for (const [rank, values] of held.entries()) {
        const outputs = piece.outputs.map(({ dtype, shape }) => newHostArray(dtype, sizeOf(shape)));
        await backend.bind({ inputs: piece.inputs.map((input) => of(rank, input)), outputs })();
        for (const [i, output] of piece.outputs.entries()) values.set(output, outputs[i]!);
      }
      await backend.dispose();
    }
    for (const node of collectives) {
      const [x] = node.inputs;
      const operands = held.map((_, rank) => (x ? of(rank, x) : new Int32Array(0)));
      const results = meaningOf({ op: node.op, attrs: node.attrs, shape: x?.shape ?? [] }, operands, PAIRS);
      for (const [rank, values] of held.entries()) values.set(node.outputs[0]!, results[rank]!);
    }
  }
  return graph.outputs.map((output) => held.map((_, rank) => of(rank, output)));
}
