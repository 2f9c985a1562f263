/** @file Each pass keeps the results of random programs and their gradients, and the order of nodes. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { HostTensor } from '../../../src/compiler/index.js';
import {
  dropEmpties,
  eliminateCommonSubexpressions,
  eliminateDeadCode,
  expandComposites,
  foldConstants,
  optimize,
  simplify,
} from '../../../src/compiler/passes/index.js';
import type { Graph } from '../../../src/compiler/program/ir.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { runs } from '../../faults/campaign.js';
import { differentiated, programInputs, type Step, stepsArbitrary } from '../programs.js';
import { expectCloseToLargest, leavesOf } from '../support.js';
import { runGraph } from './support.js';

const passes: Record<string, (graph: Graph) => Graph> = {
  fold: foldConstants,
  simplify,
  cse: eliminateCommonSubexpressions,
  dce: eliminateDeadCode,
  expand: (graph) => expandComposites(graph, () => false),
  optimize,
  'optimize twice': (graph) => optimize(optimize(graph)),
};

const inputs = leavesOf(programInputs as any);

interface Unoptimised {
  readonly graph: Graph;
  readonly results: HostTensor[];
}

/** By their steps: all passes are tried on the same programs. */
const known = new Map<string, Promise<Unoptimised>>();

async function unoptimised(steps: readonly Step[]): Promise<Unoptimised> {
  // A lowering takes no tensors without elements.
  const graph = dropEmpties(traceProgram(differentiated(steps) as any, programInputs as any).graph);
  return { graph, results: await runGraph(graph, inputs) };
}

test.each(Object.entries(passes))('%s', async (_, pass) => {
  await fc.assert(
    fc.asyncProperty(stepsArbitrary, async (steps) => {
      const key = JSON.stringify(steps);
      if (!known.has(key)) known.set(key, unoptimised(steps));
      const { graph, results } = await known.get(key)!;
      const after = await runGraph(pass(graph), inputs);
      after.forEach((tensor, i) => {
        expectCloseToLargest(tensor, results[i]!, `output ${i}`);
      });
    }),
    { numRuns: Number(process.env.PROGRAMS ?? runs(25, 6)), seed: Number(process.env.SEED ?? 7) },
  );
});

test('no pass but expansion adds nodes', () => {
  fc.assert(
    fc.property(stepsArbitrary, (steps) => {
      const { graph } = traceProgram(differentiated(steps) as any, programInputs as any);
      for (const pass of [foldConstants, simplify, eliminateCommonSubexpressions, eliminateDeadCode]) {
        expect(pass(graph).nodes.length).toBeLessThanOrEqual(graph.nodes.length);
      }
      expect(optimize(graph).nodes.length).toBeLessThanOrEqual(graph.nodes.length);
    }),
    { numRuns: runs(50, 10), seed: 8 },
  );
});
