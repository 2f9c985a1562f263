/** @file Locates a computed index out of range, by recomputing the program's indices. */

import { eliminateDeadCode } from '../passes/index.js';
import { computedIndices, findBad, placeIn, problemOf } from '../program/indexChecks.js';
import type { Graph } from '../program/ir.js';
import type { HostArray } from '../program/tensors.js';
import { runOnnx } from './onnxSession.js';

/** The first computed index out of range; undefined if there is none. */
export async function findComputed(
  graph: Graph,
  inputs: readonly HostArray[],
): Promise<{ readonly at: readonly number[]; readonly problem: string } | undefined> {
  const indices = computedIndices(graph);
  const outputs = indices.map(({ value }) => value);
  const results = await runOnnx(eliminateDeadCode({ ...graph, outputs }), inputs);
  for (const [i, { value, ...addressed }] of indices.entries()) {
    const position = findBad({ ...addressed, positions: null }, results[i]!);
    if (position < 0) continue;
    return { at: placeIn(value.shape, position), problem: problemOf(results[i]![position]!, addressed) };
  }
  return undefined;
}
