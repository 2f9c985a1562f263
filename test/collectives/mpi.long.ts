/** @file Collectives under mpirun, with Open MPI and with MPICH: their results on 1 to 4 ranks, and starts that fail. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../command.js';
import { isShort, seed } from '../faults/campaign.js';
import { mpirun, mpis } from './mpirun.js';

const program = ['--import', 'tsx', 'test/collectives/mpiProgram.ts'];

test.skipIf(mpis.length === 0)('sums, blocks and told data are right on every number of ranks', async () => {
  for (const [i, mpi] of mpis.entries())
    for (const count of isShort ? [3 + ((seed + i) % 2)] : [1, 2, 3, 4]) {
      const told = { TOLD_BY_RANK_1: join(temporaryDirectory(), 'told') };
      const { code, output } = await mpirun(mpi, count, program, told).ended;
      expect(output).toMatch(/^(Open MPI v|MPICH )[\d.]+ with \d ranks\n$/);
      expect(output).toContain(`with ${count} ranks`);
      expect(code).toBe(0);
    }
});
