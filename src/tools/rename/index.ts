/** @file `luthier rename` and `luthier rename-class`: a new name for a field or class, the old one kept readable. */

import { relative, sep } from 'node:path';
import { writeTogether } from '../../files/index.js';
import { counted, titled } from '../../review/text/index.js';
import { type Paint, plain, UsageError } from '../../system/text/index.js';
import type { Arguments, Command, Report } from '../command.js';
import { diffText, lineDiff } from '../lineDiff.js';
import type { ChangedFile, Plan } from './renamePlan.js';

const flags: Command['flags'] = {
  dry_run: { key: 'dryRun', about: 'Shows the changes without writing them.', parse: () => true },
  force: { key: 'force', about: 'Writes the changes even if they cause compiler errors.', parse: () => true },
  no_alias: {
    key: 'noAlias',
    about: 'Adds no alias for the old name: files saved under the old name will not load.',
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
  'Files that biome or prettier had formatted are formatted again, with the formatter installed in the project.',
  'Other mentions of the old name (strings, comments, scripts, pages, config files) are listed, to be checked by hand.',
];

export const renameField: Command = {
  usage: 'CLASS.field NEW_NAME',
  positionals: [2, 2],
  flags,
  changes: false,
  details: [
    'Renames a hyperparameter, or a constant of an experiment, in its declaration and wherever TypeScript finds a use.',
    'renamed(…) in the declaration keeps the old name: documents, flags and config files that use it load with a notice.',
    'If several classes have the name, add the file or module: src/layers/linears.ts:Linear.inputDims, lm.Small.numPrompts.',
    ...shared,
    '',
    '  npx luthier rename LmExperiment.numHeads heads --dry_run',
    '',
    'Exit codes: 0; 1 if the renaming would cause compiler errors; 2 for a wrong command line.',
  ].join('\n'),
  run: async (args) => rename((await import('./renamePlan.js')).planFieldRename, args),
};

export const renameClass: Command = {
  usage: 'OLD NEW',
  positionals: [2, 2],
  flags,
  changes: false,
  details: [
    'Renames a configurable class or an experiment in the TypeScript of the project. registerAlias(…) behind a configurable',
    'class keeps the old name: documents that use it load with a notice.',
    ...shared,
    '',
    '  npx luthier rename-class lm.Small Tiny --dry_run',
    '',
    'Exit codes: 0; 1 if the renaming would cause compiler errors; 2 for a wrong command line.',
  ].join('\n'),
  run: async (args) => rename((await import('./renamePlan.js')).planClassRename, args),
};

/** How it ended: files were written, or only shown, or the compiler was against it. */
export type Outcome = 'written' | 'dry run' | 'refused';

export function renameReport(plan: Plan, outcome: Outcome): Report {
  const show = ({ path }: ChangedFile) => relative(plan.root, path).split(sep).join('/');
  const diffOf = (file: ChangedFile, paint: Paint) => diffText(lineDiff(file.before, file.text), paint);
  const diff = (paint: Paint) =>
    plan.files.map((file) => `${paint('bold', show(file))}\n${diffOf(file, paint)}`).join('\n\n');
  return {
    text: (paint) => {
      const list = (title: string, lines: readonly string[]): string[] =>
        lines.length === 0 ? [] : [titled(paint('bold', title), ...lines)];
      const mentions = plan.mentions.map(({ file, line, text }) => `${file}:${line}: ${text}`);
      const errors = plan.errors.map(({ place, message }) => `${place}: ${message}`);
      const lists = [...list('To check by hand:', mentions), ...list('New compiler errors:', errors)];
      return [diff(paint), ...lists, ...plan.notes, summaryOf(plan, outcome)].join('\n\n');
    },
    json: () => ({
      old: plan.old,
      present: plan.present,
      outcome,
      files: plan.files.map((file) => ({ file: show(file), diff: diffOf(file, plain) })),
      lookAt: plan.mentions,
      errors: plan.errors,
      notes: plan.notes,
    }),
    exitCode: outcome === 'refused' ? 1 : 0,
  };
}

function summaryOf({ old, present, files, errors }: Plan, outcome: Outcome): string {
  const what = `${old} → ${present}: ${counted(files.length, 'file')}`;
  switch (outcome) {
    case 'written':
      return `${what} changed.`;
    case 'dry run':
      return `${what} would change; nothing was written.`;
    case 'refused':
      return `${what} would change, and cause ${counted(errors.length, 'new compiler error')}; nothing was written. --force writes it anyway.`;
  }
}
