/** @file Every operation, and random programs with gradients, shared by the ranks of random meshes. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { withLoopsUnrolled } from '../../../src/compiler/control/scan.js';
import { sizeOf } from '../../../src/compiler/index.js';
import { oneIn, runs, seed, title } from '../../faults/campaign.js';
import { program } from '../cases/case.js';
import { caseTable } from '../cases/index.js';
import { differentiated, programInputs, stepsArbitrary } from '../programs.js';
import { leavesOf } from '../support.js';
import { drawsOf, expectSharing, MESHES } from './partitionAgreement.js';

test(title('every operation'), async () => {
  const draw = drawsOf(seed);
  const cases = Object.entries(caseTable).flatMap(([op, all]) =>
    all.map((c, i) => ({ c, what: `${op}, case ${i}` })),
  );
  for (const { c, what } of oneIn(8, cases)) {
    if (c.inputs.some(({ shape }) => sizeOf(shape) === 0)) continue;
    await expectSharing(program(c, c.f), c.inputs, MESHES[draw(MESHES.length)]!, draw, what);
  }
});

test(title('random programs with gradients'), async () => {
  const draw = drawsOf(seed ^ 0x5d);
  let asked = 0;
  for (const [i, steps] of fc.sample(stepsArbitrary, { numRuns: runs(500, 20), seed }).entries()) {
    const f = (inputs: any) => withLoopsUnrolled(() => (differentiated(steps) as any)(inputs));
    const flat = leavesOf(programInputs as any);
    await expectSharing(
      ((given: any[]) =>
        f({ floats: given.slice(0, 5), special: given[5], ids: given[6], key: given[7] })) as any,
      flat,
      MESHES[draw(MESHES.length)]!,
      draw,
      `program ${i}`,
    ).then((ops) => {
      if (ops.some((op) => op === 'AllReduce' || op === 'AllGather' || op === 'AllToAll')) asked++;
    });
  }
  expect(asked).toBeGreaterThan(10);
});
