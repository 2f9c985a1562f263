/** @file Flags of a search: Pax's tuning flags. */
import { UsageError } from '../../system/text/index.js';
import { type FlagTable, nonEmpty, positive } from '../commandLine/flagTable.js';

/** Values of these flags. */
export interface StudyFlags {
  readonly study?: string;
  readonly numTrials?: number;
}

/** --study and --num_trials. */
export const studyFlags = {
  study: {
    key: 'study',
    value: 'NAME',
    about:
      "Searches, as the experiment's search() says, in the directory NAME of --job_log_dir, where it goes on if it is there: " +
      'with a process and a directory for each trial, beside other processes with the same command.',
    parse: nonEmpty,
  },
  num_trials: {
    key: 'numTrials',
    value: 'N',
    about: 'Number of trials of a study. Default: maxNumTrials of the search.',
    parse: positive(true),
  },
} satisfies FlagTable;

/** @throws UsageError for flags that do not go together */
export function checkStudyFlags(
  { study, numTrials }: StudyFlags,
  mode: string,
  sweep: string | undefined,
): void {
  if (study === undefined) {
    if (numTrials !== undefined)
      throw new UsageError(`--num_trials=${numTrials}: it is for --study=NAME, which is not given.`);
    return;
  }
  if (sweep !== undefined)
    throw new UsageError(`--study=${study} and ${sweep} do not go together: the search proposes the values.`);
  if (!mode.startsWith('train'))
    throw new UsageError(`--study=${study} and --mode=${mode} do not go together: trials train.`);
}
