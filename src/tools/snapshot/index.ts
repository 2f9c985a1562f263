/** @file `luthier snapshot`: what experiments are, as committed text, so that a plain diff shows what a change does to them. */
import { didYouMean } from '../../hparams/errors.js';
import { resolveExperiment } from '../../registry/index.js';
import { UsageError } from '../../registry/usageError.js';
import type { Command, Report } from '../command.js';
import { checkSnapshots, refreshSnapshots, removeSnapshots } from './entries.js';
import { snapshotNames } from './files.js';
import { snapshotReport } from './report.js';

/** The snapshot that is called `name`, as experiments are: by its full name, or its last parts where they are unique. */
function existing(name: string, names: readonly string[]): string {
  const matches = names.includes(name) ? [name] : names.filter((each) => each.endsWith(`.${name}`));
  if (matches.length === 1) return matches[0]!;
  const list = names.length === 0 ? 'There are none.' : `Snapshots: ${names.join(', ')}.`;
  const why = matches.length > 1 ? `is the end of ${matches.join(' and ')}.` : 'has no snapshot.';
  throw new UsageError(`'${name}' ${why}${didYouMean(name, names)} ${list}`);
}

/** The full names of experiments; one that is gone has at least its snapshot. */
async function fullNames(given: readonly string[], names: readonly string[]): Promise<string[]> {
  const full: string[] = [];
  for (const name of given) {
    full.push(names.includes(name) ? name : (await resolveExperiment(name)).name);
  }
  return [...new Set(full)];
}

export const snapshot: Command = {
  usage: '[EXP…]',
  positionals: [0, Number.POSITIVE_INFINITY],
  flags: {
    check: {
      key: 'check',
      about:
        'Writes nothing; tells which snapshots are stale, what changed, and the command that mends them.',
      parse: () => true,
    },
    remove: {
      key: 'remove',
      about: 'Removes the snapshots of the experiments: they are out again.',
      parse: () => true,
    },
  },
  changes: false,
  details: [
    'An experiment opts in by its first snapshot: luthier snapshot EXP writes experiments/__snapshots__/EXP.txt,',
    'to be committed. Without names, all snapshots that there are are refreshed, or checked.',
    '',
    '  npx luthier snapshot lm.Small',
    '  npx luthier snapshot --check',
    '',
    'Exit codes: 0; 1 where a snapshot is stale or missing, or its experiment is gone or cannot be evaluated;',
    '2 for a wrong command line.',
  ].join('\n'),
  async run({ positionals, values }): Promise<Report> {
    const names = snapshotNames();
    if (values.remove === true) {
      if (values.check === true) throw new UsageError('--remove and --check: use one of them.');
      if (positionals.length === 0) throw new UsageError('--remove: expected the names of experiments.');
      return snapshotReport(removeSnapshots([...new Set(positionals.map((name) => existing(name, names)))]));
    }
    const wanted = positionals.length === 0 ? names : await fullNames(positionals, names);
    return snapshotReport(await (values.check === true ? checkSnapshots : refreshSnapshots)(wanted));
  },
};
