/** @file Random programs with gradients: each engine gives what tfjs's cpu backend gives. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { allDecompositions, COMPLEX_KERNELS } from '../../src/compiler/decompositions/decomposition.js';
import { opNames } from '../../src/compiler/rules/index.js';
import { traceProgram } from '../../src/compiler/trace/tracedProgram.js';
import { runs } from '../faults/campaign.js';
import { expectAgreement } from './agreement.js';
import { BFLOAT16, FLOAT32 } from './campaign.js';
import { engines } from './engines.js';
import { kernelSteps } from './kernelOperations.js';
import { differentiated, programInputs, stepsArbitrary } from './programs.js';

/** The same in every run: test/faults/programs.long.ts tries others, and more. */
const seed = 20260101;

describe.each(engines)('%s', (_, { engine, available }) => {
  const programs = engine === 'native' ? runs(50, 12) : runs(200, 20);
  test.skipIf(!available)(
    'agrees with the oracle',
    async () => {
      await expectAgreement({ engine, programs, seed }, FLOAT32);
    },
    3_600_000,
  );

  test.skipIf(!available)(
    'agrees with the oracle in bfloat16',
    async () => {
      const plan = { engine, precision: 'bfloat16', programs: Math.ceil(programs / 4), seed } as const;
      const results = await expectAgreement(plan, BFLOAT16);
      // One in ten may round an operand to the other neighbour, and one of fewer.
      const apart = results.filter(({ difference }) => difference > FLOAT32).length;
      expect(apart).toBeLessThanOrEqual(Math.ceil(results.length / 10));
    },
    3_600_000,
  );
});

test.each(engines)(
  'programs of exact numbers agree to the bit, %s',
  async (_, { engine, available }) => {
    if (available)
      await expectAgreement(
        { engine, programs: engine === 'native' ? runs(50, 6) : runs(200, 10), seed, exact: true },
        0,
      );
  },
  3_600_000,
);

test('the programs draw from all operations', () => {
  const all = [...opNames(), ...allDecompositions().keys(), ...COMPLEX_KERNELS].map((op) => `kernel ${op}`);
  expect([...kernelSteps].sort()).toEqual(all.sort());
});

test('the programs have most operations, products of both kinds, loops and checkpoints', () => {
  const used = new Set<string>();
  for (const steps of fc.sample(stepsArbitrary, { numRuns: 60, seed })) {
    const { graph } = traceProgram(differentiated(steps) as any, programInputs as any);
    for (const { op } of graph.nodes) used.add(op);
  }
  expect(used.size).toBeGreaterThan(80);
  expect([...used]).toEqual(
    expect.arrayContaining(['BatchMatMul', 'Attention', 'AttentionGrad', 'Barrier', 'Scan', 'Cond']),
  );
});
