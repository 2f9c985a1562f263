/** @file A partition as text: the whole program with its shardings, and the program of a rank with the bytes that are sent. */
import { graphText } from '../program/graphText.js';
import type { Graph, Value } from '../program/ir.js';
import { formatSpec } from '../program/tensors.js';
import { membersOf } from '../rules/collectiveRules.js';
import { collectivesOf } from './collectivesOf.js';
import type { MeshShape, Sharding, Shardings } from './sharding.js';

/** A partition as `partition` gives it. */
export interface Partitioned {
  /** The whole program. */
  readonly whole: Graph;
  readonly shardings: Shardings;
  /** That of a rank. */
  readonly own: Graph;
}

/** `float32[8,12 over mdl]`: the axes of split dimensions stand behind their sizes. */
function splitSpec(value: Value, sharding: Sharding, axisNames: readonly string[]): string {
  const dims = value.shape.map((size, i) => {
    const axes = sharding[i]!.map((axis) => axisNames[axis]);
    return axes.length === 0 ? `${size}` : `${size} over ${axes.join(' and ')}`;
  });
  return formatSpec(value).replace(/\[.*\]$/, `[${dims.join(', ')}]`);
}

/** Collectives by kind and number of ranks, with the bytes that a rank gives to them in a run. */
function summary(graph: Graph): string {
  const sums = new Map<string, { times: number; bytes: number }>();
  for (const { op, bytes, group, times } of collectivesOf(graph)) {
    const key = `${op} of ${membersOf(group)} ranks`;
    const sum = sums.get(key) ?? { times: 0, bytes: 0 };
    sums.set(key, { times: sum.times + times, bytes: sum.bytes + times * bytes });
  }
  const lines = [...sums].map(([key, { times, bytes }]) => `${times} ${key}: ${bytes} bytes\n`);
  return lines.length === 0 ? 'No collectives.\n' : lines.join('');
}

/** Texts of a partition, by file name. @param axisNames of the mesh; `axis 0` and so on by default */
export function partitionTexts(
  { whole, shardings, own }: Partitioned,
  mesh: MeshShape,
  axisNames: readonly string[] = mesh.map((_, axis) => `axis ${axis}`),
): Record<string, string> {
  const sharding = (value: Value): Sharding => shardings.get(value) ?? value.shape.map(() => []);
  return {
    'shardings.txt': graphText(whole, (value) => splitSpec(value, sharding(value), axisNames)),
    'rank.txt': graphText(own),
    'collectives.txt': summary(own),
  };
}
