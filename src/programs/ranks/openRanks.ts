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
  let ranks: MpiRanks;
  try {
    ranks = await MpiRanks.open(found.library);
  } catch (error) {
    if (!(error instanceof RanksError)) throw error;
    throw new UsageError(`${where}: ${error.message}`, { cause: error });
  }
  if (ranks.count === count && ranks.rank === rank) return ranks;
  throw new UsageError(
    `${where}, is rank ${ranks.rank} of ${ranks.count} to ${ranks.version}: mpicc and the launcher are of different MPIs. ` +
      'Put one of them first on PATH, or set MPICC.',
  );
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
