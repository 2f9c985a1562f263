/** @file Ranks of this job: MPI as a launcher has started it, checked before anything is read. */
import { availableParallelism, cpus, hostname } from 'node:os';
import { type Launch, MpiRanks, mpiSource, RanksError } from '../../collectives/index.js';
import { mpiLibrary } from '../../compiler/index.js';
import { UsageError } from '../../system/text/index.js';

/**
 * Starts MPI.
 *
 * @throws UsageError where there is no mpicc, or MPI cannot be started, or is another one than the launcher's.
 */
export async function openRanks(launch: Launch): Promise<MpiRanks> {
  const { rank, count, launcher } = launch;
  const where = `Rank ${rank} of ${count}, which ${launcher} started on ${hostname()}`;
  const found = await mpiLibrary(mpiSource);
  if ('reason' in found) throw new UsageError(`${where}: ${found.reason}`);
  const differs = (found: string) =>
    new UsageError(
      `${where}: ${found}, so mpicc and the launcher are of different MPIs. Put the folder of one of them first on PATH, or ` +
        'set MPICC.',
    );
  try {
    const ranks = await MpiRanks.open(found.library, (version) => {
      const isOpenMpi = version.startsWith('Open MPI');
      if (launcher !== 'srun' && isOpenMpi !== (launcher === 'mpirun of Open MPI'))
        throw differs(`its mpicc is that of ${version}`);
    });
    if (ranks.count === count && ranks.rank === rank) return ranks;
    throw differs(`to ${ranks.version} it is rank ${ranks.rank} of ${ranks.count}`);
  } catch (error) {
    if (!(error instanceof RanksError)) throw error;
    throw new UsageError(`${where}: ${error.message}`, { cause: error });
  }
}

/** Ranks on this machine, as launchers tell. */
function localRanks(env: NodeJS.ProcessEnv): number {
  const names = ['OMPI_COMM_WORLD_LOCAL_SIZE', 'MPI_LOCALNRANKS', 'SLURM_NTASKS_PER_NODE'];
  const told = names.map((name) => Number(env[name])).find((number) => number >= 1);
  return told ?? 1;
}

/** Threads of a rank: the cores that it is bound to, or else its share of the machine's. */
export function threadsOfRank(env: NodeJS.ProcessEnv = process.env): number {
  const own = availableParallelism();
  return own < cpus().length ? own : Math.max(1, Math.floor(own / localRanks(env)));
}
