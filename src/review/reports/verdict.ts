/** @file Verdict of a review: outcomes of the experiments, each counted once, and failed gates. */

import { areBothKnown, costChange } from '../changes/effects.js';
import type { DiffReport, ExperimentReport } from './diffReport.js';
import { gatePhrases, gatesOf, type Label } from './gates.js';
import { type Outcome, outcomePhrases } from './outcomes.js';
import type { Phrase } from './reportLines.js';

/** Summary for readers. */
export interface Verdict {
  /** Whether the change violates a gate, or lacks a label that would allow it. */
  readonly fails: boolean;
  /** `Fails: 3 break, 10 can't go on from their checkpoints, 4 cost more, 51 the same` */
  readonly line: string;
  /** Gates that need labels, and gates that labels have opened. */
  readonly conditions: readonly Phrase[];
}

/** The verdict on a report; `labels` are those of the pull request. */
export function verdictOf(report: DiffReport, labels: readonly Label[] = []): Verdict {
  const gates = gatesOf(report, labels);
  const fails = gates.some(({ allowedBy }) => allowedBy === undefined);
  return {
    fails,
    line: `${fails ? 'Fails: ' : ''}${countsOf(report)}`,
    conditions: gates.flatMap(gatePhrases),
  };
}

function countsOf({ experiments, unchanged, untouched }: DiffReport): string {
  const counts = new Map<Outcome, number>([['unchanged', unchanged]]);
  for (const each of experiments) {
    const outcome = outcomeOf(each);
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  }
  const parts = (Object.keys(outcomePhrases) as Outcome[]).flatMap((outcome) => {
    const count = counts.get(outcome) ?? 0;
    if (count === 0) return [];
    const phrase = `${count} ${outcomePhrases[outcome][Number(count > 1)]}`;
    return [`${phrase}${aboveCost.has(outcome) ? costlierToo(outcome, experiments) : ''}`];
  });
  if (untouched > 0) parts.push(`${untouched} that the change does not reach`);
  return parts.length === 0 ? 'No experiments' : parts.join(', ');
}

/** Outcomes of changes that may cost more as well. */
const aboveCost: ReadonlySet<Outcome> = new Set(['incompatible', 'different']);

/** Of the experiments with an outcome, how many would otherwise be counted among the costlier. */
function costlierToo(outcome: Outcome, experiments: readonly ExperimentReport[]): string {
  const own = experiments.filter((each) => outcomeOf(each) === outcome);
  const count = own.filter(({ effects }) => effects && costChange(effects) > 0).length;
  if (count === 0) return '';
  if (count === own.length) return count === 1 ? ' (and costs more)' : ' (and all cost more)';
  return ` (${count} of them ${count === 1 ? 'costs' : 'cost'} more)`;
}

function outcomeOf({ status, effects, checkpoints, computed, newError }: ExperimentReport): Outcome {
  if (status !== 'changed') return status;
  if (checkpoints?.goesOn === 'never') return 'incompatible';
  if (computed !== undefined && computed.differs.length > 0) return 'different';
  // Programs that do the same operations as before cost the same, and are not analysed.
  if (effects === undefined) return computed === undefined || newError !== undefined ? 'unknown' : 'changed';
  if (!areBothKnown(effects)) return 'unknown';
  const cost = costChange(effects);
  return cost > 0 ? 'costlier' : cost < 0 ? 'cheaper' : 'changed';
}
