/** @file Collectives under mpirun, with Open MPI and with MPICH: their results on 1 to 4 ranks, and starts that fail. */
import { expect, test } from 'vitest';
import { mpirun, mpis } from './mpirun.js';

const program = ['--import', 'tsx', 'test/collectives/mpiProgram.ts'];

test.skipIf(mpis.length === 0)('sums, blocks and told data are right on every number of ranks', async () => {
  for (const mpi of mpis)
    for (const count of process.env.SHORT === '1' ? [2, 3] : [1, 2, 3, 4]) {
      const { code, output } = await mpirun(mpi, count, program).ended;
      expect(output).toMatch(/^(Open MPI v|MPICH )[\d.]+ with \d ranks\n$/);
      expect(output).toContain(`with ${count} ranks`);
      expect(code).toBe(0);
    }
});
