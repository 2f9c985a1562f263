/** @file Verdicts of reviews: every experiment counted once, and thresholds with their labels. */
import { describe, expect, test } from 'vitest';
import type {
  CheckpointEffect,
  Effects,
  ExperimentReport,
  Figure,
} from '../../../src/review/reports/diffReport.js';
import { phraseText } from '../../../src/review/reports/reportLines.js';
import { verdictOf } from '../../../src/review/reports/verdict.js';
import type { Threshold } from '../../../src/review/settings.js';
import { experimentOf, reportWith } from './sampleReport.js';

const same: Figure = { old: 100, new: 100 };
const more: Figure = { old: 100, new: 130 };
const less: Figure = { old: 100, new: 60 };

function effectsWith(figures: Partial<Effects>): Effects {
  return {
    parameters: same,
    flopsPerToken: same,
    tokensPerStep: same,
    trainingTokens: {},
    trainingFlops: {},
    precision: {},
    deviceHours: {},
    price: {},
    peakMemory: same,
    ...figures,
  };
}

const group = { name: 'lm/w', count: 2, old: '[2] float32', new: '[3] float32' };

const changed = (figures: Partial<Effects>, goesOn: CheckpointEffect['goesOn'] = 'same') =>
  experimentOf('changed', {
    effects: effectsWith(figures),
    checkpoints: {
      ...{ goesOn, changes: [], forcedBy: [], appeared: [], vanished: [] },
      reshaped: goesOn === 'never' ? [group] : [],
    },
  });
const costlier = changed({ parameters: more, flopsPerToken: more });
const incompatible = changed({}, 'never');
const both = changed({ flopsPerToken: more }, 'never');

function lineOf(
  experiments: readonly ExperimentReport[],
  counts: { unchanged?: number; untouched?: number } = {},
) {
  return verdictOf(reportWith(experiments, counts)).line;
}

describe('the line', () => {
  test('counts each experiment once, under the gravest that is true of it', () => {
    const experiments = [
      ...Array(3).fill(experimentOf('broken')),
      ...Array(6).fill(both),
      ...Array(4).fill(incompatible),
      ...Array(4).fill(costlier),
    ];
    expect(lineOf(experiments, { unchanged: 51 })).toBe(
      "Fails: 3 break, 10 can't go on from their checkpoints (6 of them cost more), 4 cost more, 51 the same",
    );
    expect(lineOf([both])).toBe("1 can't go on from its checkpoints (and costs more)");
    expect(lineOf([both, both])).toBe("2 can't go on from their checkpoints (and all cost more)");
  });

  test('says what one experiment does', () => {
    const uncompared = { part: 'input', reason: 'no data' } as const;
    const computed = { differs: ['training step'], uncompared: [], files: ['src/a.ts'] } as const;
    const lines: [ExperimentReport, string][] = [
      [experimentOf('broken'), 'Fails: 1 breaks'],
      [experimentOf('removed'), '1 removed'],
      [incompatible, "1 can't go on from its checkpoints"],
      [costlier, '1 costs more'],
      [changed({ flopsPerToken: less, trainingFlops: more }), '1 costs more'],
      [changed({ parameters: more, peakMemory: more }), '1 changes at the same cost'],
      [changed({ flopsPerToken: less }), '1 costs less'],
      [changed({ tokensPerStep: more }), '1 changes at the same cost'],
      [changed({ peakMemory: { old: 1e6, new: 1e6 + 1 } }), '1 changes at the same cost'],
      [experimentOf('changed', { computed }), '1 computes something else'],
      [{ ...costlier, computed }, '1 computes something else (and costs more)'],
      [{ ...incompatible, computed }, "1 can't go on from its checkpoints"],
      [
        experimentOf('changed', { computed: { ...computed, differs: [], data: ['rows.json'] } }),
        '1 changes at the same cost',
      ],
      [
        experimentOf('changed', { effects: effectsWith({ parameters: { new: 7 } }) }),
        '1 changes, its cost not compared',
      ],
      [experimentOf('changed', { computed, newError: { message: 'No data.' } }), '1 computes something else'],
      [
        experimentOf('changed', {
          ...{ computed: { ...computed, differs: [] }, newError: { message: 'No data.' } },
        }),
        '1 changes, its cost not compared',
      ],
      [experimentOf('changed'), '1 changes, its cost not compared'],
      [experimentOf('added', { effects: effectsWith({ parameters: { new: 7 } }) }), '1 added'],
      [experimentOf('mended'), '1 mended'],
      [experimentOf('moved'), '1 under another name'],
      [experimentOf('renamed'), '1 with new names only'],
      [experimentOf('redeclared'), '1 with added or removed fields and the same values'],
      [
        experimentOf('uncompared', { computed: { differs: [], uncompared: [uncompared], files: [] } }),
        '1 not compared in full',
      ],
      [experimentOf('failing'), '1 still fails'],
    ];
    for (const [experiment, line] of lines) expect(lineOf([experiment])).toBe(line);
    expect(lineOf([], { unchanged: 1 })).toBe('1 the same');
    expect(lineOf([], { unchanged: 2, untouched: 3 })).toBe('2 the same, 3 that the change does not reach');
    expect(lineOf([])).toBe('No experiments');
  });
});

describe('thresholds', () => {
  const checkpoints: Threshold = {
    figure: 'checkpoints',
    when: 'incompatible',
    needsLabel: 'breaks-checkpoints',
  };
  const parameters: Threshold = { figure: 'parameters', moreThan: '10%', needsLabel: 'costs-more' };
  const broken: Threshold = { figure: 'experiments', when: 'broken', needsLabel: 'breaks' };
  const removed: Threshold = { figure: 'experiments', when: 'removed', needsLabel: 'removes' };

  function verdict(
    experiments: readonly ExperimentReport[],
    thresholds: readonly Threshold[],
    ...labels: { name: string; by?: string }[]
  ) {
    const { fails, conditions } = verdictOf(reportWith(experiments, { thresholds }), labels);
    return [fails, ...conditions.map(phraseText)];
  }

  test('need their labels, which say who allowed what', () => {
    const experiments = [
      incompatible,
      incompatible,
      costlier,
      changed({ parameters: { old: 100, new: 120 } }),
    ];
    const tooMany = 'Parameters of 2 experiments grow by up to 30%, more than 10%.';
    const unloadable = "2 experiments can't go on from their checkpoints.";
    expect(verdict(experiments, [checkpoints, parameters])).toEqual([
      true,
      `Fails without the label breaks-checkpoints: ${unloadable}`,
      `Fails without the label costs-more: ${tooMany}`,
    ]);
    expect(verdict(experiments, [checkpoints, parameters], { name: 'costs-more', by: 'ada' })).toEqual([
      true,
      `Fails without the label breaks-checkpoints: ${unloadable}`,
      `Allowed by the label costs-more, which ada set: ${tooMany}`,
    ]);
    const alike = (when: 'changed' | 'uncompared') => ({ ...checkpoints, when });
    const goingOn = [changed({}, 'changed'), changed({}, 'unknown'), changed({}, 'unknown')];
    expect(verdict(goingOn, [checkpoints, alike('changed'), alike('uncompared')])).toEqual([
      true,
      'Fails without the label breaks-checkpoints: 1 experiment goes on changed from its checkpoints.',
      'Fails without the label breaks-checkpoints: 2 experiments have checkpoints that were not compared.',
    ]);
    const labels = [{ name: 'costs-more' }, { name: 'breaks-checkpoints' }, { name: 'other' }];
    expect(verdict(experiments, [checkpoints, parameters], ...labels)).toEqual([
      false,
      `Allowed by the label breaks-checkpoints: ${unloadable}`,
      `Allowed by the label costs-more: ${tooMany}`,
    ]);
  });

  test('hold for what grows by more than the share, and not for what is new', () => {
    expect(verdict([changed({ parameters: { old: 100, new: 110 } })], [parameters])).toEqual([false]);
    expect(verdict([changed({ parameters: less })], [parameters])).toEqual([false]);
    expect(verdict([changed({ peakMemory: more })], [parameters])).toEqual([false]);
    expect(verdict([changed({ parameters: { new: 7 } })], [parameters])).toEqual([false]);
    expect(verdict([changed({ parameters: { old: 0, new: 7 } })], [parameters])).toEqual([
      true,
      'Fails without the label costs-more: Parameters of 1 experiment grow from nothing, more than 10%.',
    ]);
    const added = experimentOf('added', { effects: effectsWith({ parameters: more }) });
    expect(verdict([added], [parameters, checkpoints])).toEqual([false]);
  });

  test('of experiments: without one, nothing allows that one breaks', () => {
    expect(verdict([experimentOf('broken')], [])).toEqual([true]);
    expect(verdict([experimentOf('broken')], [], { name: 'breaks' })).toEqual([true]);
    expect(verdict([experimentOf('broken')], [broken])).toEqual([
      true,
      'Fails without the label breaks: 1 experiment breaks.',
    ]);
    expect(verdict([experimentOf('broken')], [broken], { name: 'breaks' })).toEqual([
      false,
      'Allowed by the label breaks: 1 experiment breaks.',
    ]);
    expect(verdict([experimentOf('removed')], [])).toEqual([false]);
    expect(verdict([experimentOf('removed'), experimentOf('removed')], [removed])).toEqual([
      true,
      'Fails without the label removes: 2 experiments are removed.',
    ]);
  });
});
