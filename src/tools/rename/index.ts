/** @file `luthier rename` and `luthier rename-class`: a new name for a field or class, the old one kept readable. */
import { writeTogether } from '../../files/index.js';
import { UsageError } from '../../registry/usageError.js';
import type { Arguments, Command, Report } from '../command.js';
import type { Plan } from './plan.js';
import { renameReport } from './report.js';

const flags: Command['flags'] = {
  dry_run: { key: 'dryRun', about: 'Shows what would change, and writes nothing.', parse: () => true },
  force: { key: 'force', about: 'Writes also where the compiler would find new errors.', parse: () => true },
  no_alias: {
    key: 'noAlias',
    about: 'Leaves the old name out of the source: what was saved under it cannot be read any more.',
    parse: () => true,
  },
};

type Planner = (root: string, text: string, newName: string, options: { alias: boolean }) => Plan;

async function rename(plan: Planner, { positionals, values }: Arguments): Promise<Report> {
  const [text, newName] = positionals;
  const planned = plan(process.cwd(), text!, newName!, { alias: values.noAlias !== true });
  const isRefused = planned.errors.length > 0 && values.force !== true;
  if (isRefused || values.dryRun === true) return renameReport(planned, isRefused ? 'refused' : 'dry run');
  try {
    writeTogether(planned.files);
  } catch (error) {
    throw new UsageError(`Nothing was written: ${(error as Error).message}`, { cause: error });
  }
  return renameReport(planned, 'written');
}

const shared = [
  'Strings, comments, scripts, pages and config files that say the old name are listed for a look by hand: which of',
  'them mean it, only a person knows.',
];

export const renameField: Command = {
  usage: 'CLASS.field NEW_NAME',
  positionals: [2, 2],
  flags,
  changes: false,
  details: [
    'Changes the declaration of a hyperparameter, or of the constant of an experiment, and every use that its type leads',
    'to. renamed(…) in the declaration keeps the old name: documents, flags and config files that say it are read with a',
    'notice. Of several classes with one name say which: src/layers/linears.ts:Linear.inputDims, or lm.Small.numPrompts.',
    ...shared,
    '',
    '  npx luthier rename LmExperiment.numHeads heads --dry_run',
    '',
    'Exit codes: 0; 1 where the compiler would find new errors; 2 for a wrong command line.',
  ].join('\n'),
  run: async (args) => rename((await import('./plan.js')).planFieldRename, args),
};

export const renameClass: Command = {
  usage: 'OLD NEW',
  positionals: [2, 2],
  flags,
  changes: false,
  details: [
    'Changes the name of a configurable class, or of an experiment, in the TypeScript of the project. registerAlias(…)',
    'behind a configurable class keeps the old name: documents that say it are read with a notice.',
    ...shared,
    '',
    '  npx luthier rename-class lm.Small Tiny --dry_run',
    '',
    'Exit codes: 0; 1 where the compiler would find new errors; 2 for a wrong command line.',
  ].join('\n'),
  run: async (args) => rename((await import('./plan.js')).planClassRename, args),
};
