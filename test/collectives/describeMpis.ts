/** @file Suites that run on each MPI of this machine. */
import { describe, test } from 'vitest';
import { isShort } from '../faults/campaign.js';
import { type Mpi, mpis } from './mpirun.js';

/** Tests on each MPI, or a skipped one that says why there are none. @param short on how many a short run has them */
export function describeMpis(tests: (mpi: Mpi) => void, short = 1): void {
  const tried = isShort ? mpis.slice(0, short) : mpis;
  for (const mpi of tried) describe(mpi.name, () => tests(mpi));
  if (tried.length === 0)
    test.skip(
      mpis.length === 0 ? 'there is no MPI: scripts/setup-mpi.sh sets one up' : 'left to the whole run',
    );
}
