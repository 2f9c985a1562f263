/** @file The collectives of a program of one rank. */
import type { Graph } from '../program/ir.js';
import { byteSize } from '../program/tensors.js';
import { asksRanks, type Group, groupOf } from '../rules/collectiveRules.js';

/** A collective of a program, with how often a run executes it. */
export interface Collective {
  readonly op: string;
  /** That a rank gives to it. */
  readonly bytes: number;
  readonly group: Group;
  readonly times: number;
}

/** Collectives of a graph and of its bodies, in program order. */
export function collectivesOf({ nodes }: Graph, times = 1): Collective[] {
  return nodes.flatMap(({ op, inputs: [x], attrs, bodies = [] }) => {
    const turns = op === 'Scan' ? (attrs.length as number) : 1;
    const inner = bodies.flatMap((body) => collectivesOf(body, times * turns));
    return asksRanks(op) ? [{ op, bytes: byteSize(x!), group: groupOf(attrs), times }] : inner;
  });
}
