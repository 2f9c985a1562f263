/** @file Rank of this process and their number, as MPI's launchers tell them in the environment. */

/** A process among those that a launcher started together. */
export interface Launch {
  /** From 0. */
  readonly rank: number;
  readonly count: number;
  /** The launcher, for messages. */
  readonly launcher: 'mpirun of Open MPI' | 'mpirun of MPICH' | 'srun';
}

/** Variables of each launcher: of srun those that it sets for programs of MPI, since a batch script has the others too. */
const LAUNCHERS: readonly (readonly [rank: string, count: string, launcher: Launch['launcher']])[] = [
  ['OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE', 'mpirun of Open MPI'],
  ['PMI_RANK', 'PMI_SIZE', 'mpirun of MPICH'],
  ['PMIX_RANK', 'SLURM_STEP_NUM_TASKS', 'srun'],
];

/** The launch of this process; null where it was started alone, or is the only one. */
export function launchOf(env: NodeJS.ProcessEnv = process.env): Launch | null {
  for (const [rankName, countName, launcher] of LAUNCHERS) {
    const [rank, count] = [Number(env[rankName] ?? Number.NaN), Number(env[countName] ?? Number.NaN)];
    if (!Number.isInteger(rank) || !Number.isInteger(count)) continue;
    return count > 1
      ? { rank, count, launcher: 'SLURM_JOB_ID' in env && launcher === 'mpirun of MPICH' ? 'srun' : launcher }
      : null;
  }
  return null;
}
