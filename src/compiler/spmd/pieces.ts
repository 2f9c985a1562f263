/** @file Pieces of a rank's program between its collectives, for engines that cannot call other ranks within a run. */
import type { Graph, Node, Value } from '../program/ir.js';
import { CompilerError } from '../program/tensors.js';
import { isCollective } from '../rules/collectiveRules.js';

/** A graph that runs by itself, and the operations between ranks that follow it. */
export interface Piece {
  readonly graph: Graph;
  readonly collectives: readonly Node[];
}

/** @throws CompilerError for a loop whose turns ask other ranks */
function refuseInside(node: Node): void {
  const inner = (node.bodies ?? []).flatMap(({ nodes }) => nodes);
  for (const each of inner) {
    if (isCollective(each.op))
      throw new CompilerError(
        `${node.op} of '${node.scope}' asks other ranks in each of its turns, which engine native alone can.`,
      );
    refuseInside(each);
  }
}

/** The fewest pieces: a collective runs behind the piece that its operand is of. */
export function piecesOf(graph: Graph): Piece[] {
  const levels = new Map<Value, number>();
  const pieces: { nodes: Node[]; collectives: Node[] }[] = [];
  const piece = (level: number) => (pieces[level] ??= { nodes: [], collectives: [] });
  const isWithin = new Map<Value, number>();
  piece(0);
  for (const node of graph.nodes) {
    refuseInside(node);
    const level = node.inputs.reduce((last, input) => Math.max(last, levels.get(input) ?? 0), 0);
    const isBetween = isCollective(node.op);
    const { nodes, collectives } = piece(level);
    (isBetween ? collectives : nodes).push(node);
    if (isBetween) piece(level + 1);
    for (const output of node.outputs) {
      levels.set(output, isBetween ? level + 1 : level);
      if (!isBetween) isWithin.set(output, level);
    }
  }
  const needed = pieces.map(() => new Set<Value>());
  const given = pieces.map(() => new Set<Value>());
  const read = (value: Value, by: number | null): void => {
    if (value.data !== undefined) return;
    const made = isWithin.get(value);
    if (made !== undefined && made !== by) given[made]!.add(value);
    if (by !== null && made !== by) needed[by]!.add(value);
  };
  pieces.forEach(({ nodes, collectives }, level) => {
    for (const { inputs } of nodes) for (const input of inputs) read(input, level);
    for (const { inputs } of collectives) for (const input of inputs) read(input, null);
  });
  for (const output of graph.outputs) read(output, null);
  return pieces.map(({ nodes, collectives }, level) => ({
    graph: { inputs: [...needed[level]!], nodes, outputs: [...given[level]!] },
    collectives,
  }));
}
