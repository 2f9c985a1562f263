/** @file Random programs with gradients: each engine gives what tfjs's cpu backend gives. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Engine } from '../../src/compiler/index.js';
import { traceProgram } from '../../src/compiler/program.js';
import { runs } from '../faults/campaign.js';
import { type Campaign, campaign, smallest } from './campaign.js';
import { engines } from './engines.js';
import { differentiated, programInputs, stepsArbitrary } from './programs.js';

/**
 * `npm run fuzz:compiler` runs others than those of every test run, and more: a C compiler takes a tenth of a second for
 * each.
 */
const programsOf = (engine: Engine): number =>
  Number(process.env.PROGRAMS ?? runs(engine === 'native' ? 250 : 1000));
const seed = Number(process.env.SEED ?? 20260101);

/** Summation in another order, and functions that differ in their last bits. */
const FLOAT32 = 1e-5;
/** An operand whose last bit differs may be rounded to the neighbour in bfloat16, of 8 bits; what follows differs by that. */
const BFLOAT16 = 2 ** -5;

async function expectAgreement(plan: Campaign, tolerance: number) {
  const results = await campaign(plan);
  const failures = results.filter(({ difference }) => difference > tolerance);
  if (failures.length > 0) {
    const shortest = failures.reduce((a, b) => (b.steps.length < a.steps.length ? b : a));
    const { steps, difference, error } = await smallest(shortest, plan, tolerance);
    expect.fail(
      `${failures.length} of ${results.length} programs differ. The least, by ${difference} of its largest element: ` +
        `${JSON.stringify(steps)} (seed ${plan.seed})${error === undefined ? '' : `: ${error}`}`,
    );
  }
  return results;
}

describe.each(engines)('%s', (_, { engine, available }) => {
  const programs = programsOf(engine);
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
      const alike = results.filter(({ difference }) => difference <= FLOAT32).length;
      expect(alike / results.length).toBeGreaterThan(0.9);
    },
    3_600_000,
  );
});

test('the programs have most operations, and products of both kinds', () => {
  const used = new Set<string>();
  for (const steps of fc.sample(stepsArbitrary, { numRuns: 150, seed })) {
    const { graph } = traceProgram(differentiated(steps) as any, programInputs as any);
    for (const { op } of graph.nodes) used.add(op);
  }
  expect(used.size).toBeGreaterThan(80);
  expect([...used]).toEqual(expect.arrayContaining(['BatchMatMul', 'Attention', 'AttentionGrad']));
});
