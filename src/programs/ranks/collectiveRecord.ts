/** @file Records of ranks in a job that hangs: their last collectives, and which of them told nothing. */
import { statSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { collectiveNotes } from '../../collectives/index.js';
import type { JobRanks } from '../../runs/index.js';
import { warn } from '../../system/index.js';

/** A rank with its machine. */
export const nameOfRank = ({ rank }: Pick<JobRanks, 'rank'>): string => `Rank ${rank} on ${hostname()}`;

/**
 * A function that writes collectives_rank_<number>.txt: a line for each of the rank's last 1,000 collectives, the last of which may be
 * under way.
 */
export async function collectiveRecord(
  jobLogDir: string,
  { rank, library }: Pick<JobRanks, 'rank' | 'library'>,
): Promise<() => void> {
  if (library === undefined) return () => {};
  const notes = await collectiveNotes(library);
  return () => {
    const lines = notes().map(({ name, members, bytes, begin, end }) => {
      const took = end === undefined ? 'under way' : `${(end - begin).toFixed(3)} ms`;
      return `${new Date(begin).toISOString()} ${name} of ${members} ranks, ${bytes} bytes: ${took}\n`;
    });
    try {
      writeFileSync(join(jobLogDir, `collectives_rank_${rank}.txt`), lines.join(''));
    } catch (error) {
      // As on a machine that has not the run's directory.
      warn((error as Error).message);
    }
  };
}

/** File of the stacks of a rank that hangs. */
export const hangLog = (jobLogDir: string, rank: number): string =>
  join(jobLogDir, rank === 0 ? 'hang.txt' : `hang_rank_${rank}.txt`);

/** Sentences about the ranks that wrote no {@link hangLog} while the others did, for the first of those to tell. */
export function silentRanks(jobLogDir: string, { rank, count, hosts }: JobRanks): string {
  const hasTold = (other: number): boolean => {
    const { mtimeMs = 0 } = statSync(hangLog(jobLogDir, other), { throwIfNoEntry: false }) ?? {};
    // A file of an earlier start is older.
    return other === rank || mtimeMs > performance.timeOrigin;
  };
  const all = Array.from({ length: count }, (_, i) => i);
  if (all.find(hasTold) !== rank) return '';
  return all
    .filter((other) => !hasTold(other))
    .map(
      (other) =>
        ` Rank ${other} on ${hosts?.[other]} tells nothing in ${hangLog(jobLogDir, other)}: its process is stopped, its machine ` +
        'does not answer, or it has another file system.',
    )
    .join('');
}
