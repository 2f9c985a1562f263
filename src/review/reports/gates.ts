/** @file Gates of a review: changes that need a label on the pull request. */

import type { Threshold } from '../settings.js';
import { counted } from '../text/reportFormat.js';
import type { CheckpointEffect, DiffReport, ExperimentReport } from './diffReport.js';
import { outcomePhrases } from './outcomes.js';
import { figureKinds, inUnit, type Phrase, percent, unitOf } from './reportLines.js';

/** A label of the pull request, and who set it where that is known. */
export interface Label {
  readonly name: string;
  readonly by?: string;
}

/** Something that the change does and that needs a label. */
export interface Gate {
  /** `10 experiments can't go on from their checkpoints` */
  readonly what: string;
  /** Absent if no label lifts the gate. */
  readonly needsLabel?: string;
  /** The label, if the pull request has it. */
  readonly allowedBy?: Label;
}

/** The gates that a change comes to. It fails at those that nothing allows. */
export function gatesOf(report: DiffReport, labels: readonly Label[]): Gate[] {
  const { thresholds } = report;
  const isAboutBroken = thresholds.some((each) => each.figure === 'experiments' && each.when === 'broken');
  const always = isAboutBroken ? [] : [{ figure: 'experiments', when: 'broken' } as const];
  return [...always, ...thresholds].flatMap((threshold): Gate[] => {
    const what = crossed(threshold, report.experiments);
    if (what === undefined) return [];
    if (!('needsLabel' in threshold)) return [{ what }];
    const { needsLabel } = threshold;
    const allowedBy = labels.find(({ name }) => name === needsLabel);
    return [{ what, needsLabel, ...(allowedBy && { allowedBy }) }];
  });
}

/** Text of a gate that a label opens; empty for others, which the verdict reports. */
export function gatePhrases({ what, needsLabel, allowedBy }: Gate): Phrase[] {
  if (needsLabel === undefined) return [];
  if (allowedBy === undefined) return [['Fails without the label ', { name: needsLabel }, `: ${what}.`]];
  const by = allowedBy.by === undefined ? [] : [', which ', { name: allowedBy.by }, ' set'];
  return [['Allowed by the label ', { name: needsLabel }, ...by, `: ${what}.`]];
}

type CheckpointEvent = Extract<Threshold, { figure: 'checkpoints' }>['when'];

/** Events of checkpoints by the names of thresholds. */
const goingOn: Readonly<
  Record<CheckpointEvent, { goesOn: CheckpointEffect['goesOn']; verbs: readonly [string, string] }>
> = {
  incompatible: { goesOn: 'never', verbs: outcomePhrases.incompatible },
  changed: {
    goesOn: 'changed',
    verbs: ['goes on changed from its checkpoints', 'go on changed from their checkpoints'],
  },
  uncompared: {
    goesOn: 'unknown',
    verbs: ['has checkpoints that were not compared', 'have checkpoints that were not compared'],
  },
};

type Crossable = Threshold | { readonly figure: 'experiments'; readonly when: 'broken' };

/** How the experiments cross the threshold; undefined if they do not. */
function crossed(threshold: Crossable, experiments: readonly ExperimentReport[]): string | undefined {
  if (threshold.figure === 'experiments') {
    const count = experiments.filter(({ status }) => status === threshold.when).length;
    const verb = threshold.when === 'broken' ? ['breaks', 'break'] : ['is removed', 'are removed'];
    return count === 0 ? undefined : `${counted(count, 'experiment')} ${verb[Number(count > 1)]}`;
  }
  // Additions had neither checkpoints nor costs: their review is about the addition itself.
  const before = experiments.filter(({ status }) => status !== 'added');
  if (threshold.figure === 'checkpoints') {
    const { goesOn, verbs } = goingOn[threshold.when];
    const count = before.filter(({ checkpoints }) => checkpoints?.goesOn === goesOn).length;
    return count === 0 ? undefined : `${counted(count, 'experiment')} ${verbs[Number(count > 1)]}`;
  }
  const { figure, moreThan } = threshold;
  const most = 1 + Number.parseFloat(moreThan) / 100;
  const grown = before.flatMap(({ effects }) => {
    const { old, new: now } = effects?.[figure] ?? {};
    return old !== undefined && now !== undefined && now > old * most ? [{ old, now }] : [];
  });
  if (grown.length === 0) return undefined;
  const { label } = figureKinds.find(({ key }) => key === figure)!;
  const { old, now } = grown.reduce((a, b) => (b.now / b.old > a.now / a.old ? b : a));
  const worst = old === 0 ? 'from nothing' : `by up to ${percent(old, now).slice(1)}`;
  return `${inUnit(label, unitOf(before))} of ${counted(grown.length, 'experiment')} grow ${worst}, more than ${moreThan}`;
}
