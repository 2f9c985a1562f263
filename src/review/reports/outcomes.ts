/** @file Outcomes of experiments, in the words that all reports share. */
import type { ErrorGroup } from './changeGroups.js';
import type { Status } from './diffReport.js';

/** A status; for a change, its most important consequence. */
export type Outcome = Status | 'incompatible' | 'different' | 'costlier' | 'cheaper' | 'unknown';

/** Phrases for one experiment and for several, gravest first, in the order of reports. */
export const outcomePhrases: Readonly<Record<Outcome, readonly [one: string, several: string]>> = {
  broken: ['breaks', 'break'],
  removed: ['removed', 'removed'],
  incompatible: ["can't go on from its checkpoints", "can't go on from their checkpoints"],
  different: ['computes something else', 'compute something else'],
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
    'with added or removed fields and the same values',
    'with added or removed fields and the same values',
  ],
  unchanged: ['the same', 'the same'],
};

/** Status of experiments with errors. */
export function errorStatusText({ status, oldError }: ErrorGroup): string {
  if (status === 'changed') return 'changed, but not analysed';
  if (status === 'failing')
    return oldError === undefined ? 'failing as before' : 'failing with another error';
  return status === 'broken' ? status : outcomePhrases[status][0];
}
