/** @file Record of a rank's last collectives, for who looks for the reason of a job's end. */
import { hostname } from 'node:os';
import { join } from 'node:path';
import { type JobRanks, writeJobFile } from '../../runs/index.js';
import { warn } from '../../system/index.js';

/** A rank with its machine. */
export const nameOfRank = ({ rank }: Pick<JobRanks, 'rank'>): string => `Rank ${rank} on ${hostname()}`;

/** Writes collectives_rank_<number>.txt: a line for each of the rank's last 1,000 collectives, the last of which may be under way. */
export function recordCollectives(jobLogDir: string, { rank, notes = [] }: JobRanks): void {
  if (notes.length === 0) return;
  const lines = notes.map(({ name, members, bytes, begin, end }) => {
    const took = end === undefined ? 'under way' : `${(end - begin).toFixed(3)} ms`;
    return `${new Date(begin).toISOString()} ${name} of ${members} ranks, ${bytes} bytes: ${took}`;
  });
  try {
    writeJobFile(join(jobLogDir, `collectives_rank_${rank}.txt`), `${lines.join('\n')}\n`);
  } catch (error) {
    warn((error as Error).message);
  }
}
