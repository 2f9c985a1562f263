/** @file What launchers tell in the environment: ranks of each, and processes that are alone. */
import { expect, test } from 'vitest';
import { launchOf } from '../../src/collectives/index.js';

test('ranks of Open MPI, of MPICH and of srun', () => {
  expect(launchOf({ OMPI_COMM_WORLD_RANK: '1', OMPI_COMM_WORLD_SIZE: '4' })).toEqual({
    ...{ rank: 1, count: 4 },
    launcher: 'mpirun of Open MPI',
  });
  expect(launchOf({ PMI_RANK: '0', PMI_SIZE: '2' })).toEqual({
    ...{ rank: 0, count: 2 },
    launcher: 'mpirun of MPICH',
  });
  const slurm = { SLURM_JOB_ID: '7', SLURM_NTASKS: '8' };
  expect(launchOf({ ...slurm, PMI_RANK: '3', PMI_SIZE: '8' })).toEqual({
    rank: 3,
    count: 8,
    launcher: 'srun',
  });
  expect(launchOf({ ...slurm, PMIX_RANK: '5', SLURM_STEP_NUM_TASKS: '8' })?.rank).toBe(5);
});

test('a process without a launcher, of one rank, or of a batch script is alone', () => {
  expect(launchOf({})).toBeNull();
  expect(launchOf({ OMPI_COMM_WORLD_RANK: '0', OMPI_COMM_WORLD_SIZE: '1' })).toBeNull();
  expect(launchOf({ SLURM_JOB_ID: '7', SLURM_NTASKS: '8', SLURM_PROCID: '0' })).toBeNull();
  expect(launchOf({ OMPI_COMM_WORLD_RANK: '', OMPI_COMM_WORLD_SIZE: 'many' })).toBeNull();
});
