/** @file Outcomes of experiments, in the words that all reports share. */
import type { ErrorGroup } from './changeGroups.js';
import type { Status } from './diffReport.js';

/** A status, or of a change: what follows from it that matters most. */
export type Outcome = Status | 'incompatible' | 'costlier' | 'cheaper' | 'unknown';

/** What became of one experiment and of several, the gravest first: in that order they are counted and told. */
export const outcomePhrases: Readonly<Record<Outcome, readonly [one: string, several: string]>> = {
  broken: ['breaks', 'break'],
  removed: ['removed', 'removed'],
  incompatible: ["can't load its checkpoints", "can't load their checkpoints"],
  costlier: ['costs more', 'cost more'],
  unknown: ['changes, its cost not compared', 'change, their cost not compared'],
  cheaper: ['costs less', 'cost less'],
  changed: ['changes at the same cost', 'change at the same cost'],
  added: ['added', 'added'],
  mended: ['mended', 'mended'],
  uncompared: ['not compared in full', 'not compared in full'],
  failing: ['still fails', 'still fail'],
  moved: ['under another name', 'under another name'],
  renamed: ['with new names only', 'with new names only'],
  redeclared: [
    'with fields more or less and the same values',
    'with fields more or less and the same values',
  ],
  unchanged: ['the same', 'the same'],
};

/** What became of experiments whose errors are told. */
export function errorStatusText({ status, oldError }: ErrorGroup): string {
  if (status === 'changed') return 'changed, but not analysed';
  if (status === 'failing')
    return oldError === undefined ? 'failing as before' : 'failing, otherwise than before';
  return status === 'broken' ? status : outcomePhrases[status][0];
}
