/** @file All ranks of a mesh in one process: each runs the same pieces, and arrays are exchanged between these. */
import { compileGraph, type Engine } from '../../../src/compiler/engines/engine.js';
import type { Graph, Node, Value } from '../../../src/compiler/program/ir.js';
import { type HostArray, newHostArray, type Shape, sizeOf } from '../../../src/compiler/program/tensors.js';
import { groupOf, memberOf, ranksOf } from '../../../src/compiler/rules/collectiveRules.js';
import { localShape, type MeshShape, piecesOf, type Sharding } from '../../../src/compiler/spmd/index.js';

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

const REDUCERS: Record<string, (a: number, b: number) => number> = {
  sum: (a, b) => a + b,
  // As ONNX's reductions, which pass over NaN.
  max: (a, b) => (a > b || Number.isNaN(b) ? a : b),
  min: (a, b) => (a < b || Number.isNaN(b) ? a : b),
};

/** What a collective gives to a rank. */
function collect(
  { op, attrs, inputs, outputs }: Node,
  operands: readonly (HostArray | undefined)[],
  rank: number,
): HostArray {
  const group = groupOf(attrs);
  const member = memberOf(group, rank);
  if (op === 'MemberIndex') return Int32Array.of(member);
  const ranks = ranksOf(group, rank);
  const { shape } = inputs[0]!;
  const { shape: given } = outputs[0]!;
  const own = operands[rank]!;
  const parts = ranks.map((each) => operands[each]!);
  const dim = attrs.dim as number;
  const at = (axis: number, offset: number) => shape.map((_, i) => (i === axis ? offset : 0));
  if (op === 'OwnPart') return block(own, shape, at(dim, member * given[dim]!), given);
  if (op === 'AllGather') {
    const out = newHostArray(outputs[0]!.dtype, sizeOf(given));
    for (const [i, part] of parts.entries()) place(out, given, at(dim, i * shape[dim]!), part, shape);
    return out;
  }
  if (op === 'AllToAll') {
    const [from, to] = [attrs.from as number, attrs.to as number];
    const piece = shape.map((size, i) => (i === from ? given[from]! : size));
    const out = newHostArray(outputs[0]!.dtype, sizeOf(given));
    parts.forEach((part, i) => {
      const sent = block(part, shape, at(from, member * given[from]!), piece);
      place(out, given, at(to, i * shape[to]!), sent, piece);
    });
    return out;
  }
  const reduce = REDUCERS[op === 'ReduceScatter' ? 'sum' : (attrs.reduction as string)]!;
  const sums = own.map((_, i) => parts.map((part) => part[i]!).reduce(reduce)) as HostArray;
  return op === 'AllReduce' ? sums : block(sums, shape, at(dim, member * given[dim]!), given);
}

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
      const operands = held.map((_, rank) => node.inputs[0] && of(rank, node.inputs[0]));
      for (const [rank, values] of held.entries())
        values.set(node.outputs[0]!, collect(node, operands, rank));
    }
  }
  return graph.outputs.map((output) => held.map((_, rank) => of(rank, output)));
}
