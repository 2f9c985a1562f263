/** @file What becomes of runs, by what one version saves and the other answers. */
import { describe, expect, test } from 'vitest';
import { resumptionOf, variableGroups } from '../../../src/review/changes/checkpointEffect.js';
import {
  type PartDigest,
  type TrainingFingerprint,
  trainingParts,
} from '../../../src/review/fingerprints/fingerprintedParts.js';
import type { FieldChange } from '../../../src/review/reports/diffReport.js';
import type {
  Resumed,
  ResumedDocument,
  Saved,
  SavedDocument,
} from '../../../src/review/versions/protocol.js';

const form = (...shape: number[]) => ({ shape, dtype: 'float32' });
const training = (parts: Partial<Record<keyof TrainingFingerprint, PartDigest>> = {}) =>
  ({
    ...Object.fromEntries(trainingParts.map((part) => [part, { hash: part }])),
    ...parts,
  }) as TrainingFingerprint;
const variables = { 'lm/w': form(2, 3) };

const saves = (noData?: string): SavedDocument => ({
  name: 'a.A',
  saved: {
    run: { description: { variables }, ...(noData !== undefined && { noData }) },
    training: training(),
  } as unknown as Saved,
});
const resumes = (answer: Partial<Resumed>): ResumedDocument => ({
  name: 'a.A',
  resumed: { variables, dataset: 'datasets[0]', differences: [], training: training(), ...answer } as Resumed,
});
const field = (path: string, more: Partial<FieldChange> = {}): FieldChange => ({
  what: 'changed',
  path,
  old: { text: '1' },
  new: { text: '2' },
  ...more,
});

const none = { forcedBy: [], appeared: [], vanished: [], reshaped: [] };

describe('a run that goes on', () => {
  const goesOn = (answer: Partial<Resumed>, fields: FieldChange[] = []) =>
    resumptionOf(saves(), resumes(answer), fields);

  test('has the same bits where nothing differs', () => {
    expect(goesOn({})).toEqual({ goesOn: 'same', changes: [], ...none });
  });

  test('is changed by what the job says, by what it computes, and the loss stands for its metrics', () => {
    const differences = [{ what: 'the moving average', text: 'It begins now.' }] as never;
    const other = training({ 'loss or gradients': { hash: 'x' }, 'metrics or summaries': { hash: 'x' } });
    expect(goesOn({ differences, training: other })).toEqual({
      goesOn: 'changed',
      changes: [{ what: 'the moving average', text: 'It begins now.' }, { what: 'loss or gradients' }],
      ...none,
    });
    const metrics = training({ 'metrics or summaries': { hash: 'x' } });
    expect(goesOn({ training: metrics })?.changes).toEqual([{ what: 'metrics or summaries' }]);
  });

  test('is changed by fields whose effect no fingerprint sees, of its own dataset', () => {
    const fields = [
      'datasets[0].phases',
      'datasets[1].split',
      'datasets[0…1].split',
      'datasets[0].prefetchBatches',
      'task.train.learner.skipStepGradientNormSigma',
      'task.train.evalIntervalSteps',
    ].map((path) => field(path));
    expect(goesOn({}, fields)?.changes.map(({ what }) => what)).toEqual([
      'datasets[0].phases',
      'datasets[0…1].split',
      'task.train.learner.skipStepGradientNormSigma',
    ]);
    // Rows that differ tell of all fields of the data.
    const rows = training({ 'rows of the data': { hash: 'x' } });
    expect(goesOn({ training: rows }, [field('datasets[0].phases')])?.changes).toEqual([
      { what: 'rows of the data' },
    ]);
  });

  test('is not known where the data is missing, or a part cannot be compared', () => {
    expect(resumptionOf(saves('no corpus'), resumes({}), [])).toEqual({
      goesOn: 'unknown',
      changes: [{ what: 'data', text: 'no corpus' }],
      ...none,
    });
    const open = training({ 'random draws': { notCompared: 'no step' } });
    expect(goesOn({ training: open })).toMatchObject({
      goesOn: 'unknown',
      changes: [{ what: 'random draws', text: 'no step' }],
    });
    // What differs for certain comes before what is not known.
    const both = training({ 'random draws': { notCompared: 'no step' }, 'rows of the data': { hash: 'x' } });
    expect(goesOn({ training: both })).toMatchObject({
      goesOn: 'changed',
      changes: [{ what: 'rows of the data' }],
    });
  });
});

test('a run that cannot go on has the error, the fields with their values, and its variables', () => {
  const refused = 'The optimizer has other slots.';
  const answer = {
    refused,
    loads: { count: 1, keeps: ['lm/b'] },
    forcedBy: ['task.train.learner.optimizer', 'task.other'],
    variables: { 'lm/w': form(2, 4), 'lm/b': form(4) },
  };
  const fields = [
    field('task.train.learner.optimizer', { what: 'class', old: { text: 'AdamW' }, new: { text: 'Lion' } }),
    field('task.before', { newPath: 'task.other', old: undefined as never }),
  ];
  expect(resumptionOf(saves(), resumes(answer as never), fields)).toEqual({
    ...{ goesOn: 'never', changes: [], error: refused, loads: answer.loads },
    forcedBy: ['task.train.learner.optimizer: AdamW → Lion', 'task.other: absent → 2'],
    appeared: [{ name: 'lm/b', count: 1, new: '[4] float32' }],
    vanished: [],
    reshaped: [{ name: 'lm/w', count: 1, old: '[2, 3] float32', new: '[2, 4] float32' }],
  });
});

test('a version that does not answer leaves it open', () => {
  const notSaved: SavedDocument = { name: 'a.A', notSaved: 'too old' };
  const notResumed: ResumedDocument = { name: 'a.A', notResumed: 'no task' };
  const open = (text: string) => ({ goesOn: 'unknown', changes: [{ what: 'checkpoints', text }], ...none });
  expect(resumptionOf(notSaved, undefined, [])).toEqual(open('too old'));
  expect(resumptionOf(saves(), notResumed, [])).toEqual(open('no task'));
  expect(resumptionOf(saves(), undefined, [])).toBeUndefined();
  expect(resumptionOf(undefined, resumes({}), [])).toBeUndefined();
});

test('variables with the same change are one group', () => {
  const old = { 'x_0/w': form(2), 'x_1/w': form(2), 'x_2/w': form(3), gone: form(1) };
  const now = { 'x_0/w': form(4), 'x_1/w': form(4), 'x_2/w': form(4), 'y_0/b': form(1), 'y_1/b': form(1) };
  expect(variableGroups(old, now)).toEqual({
    appeared: [{ name: 'y_*/b', count: 2, new: '[1] float32' }],
    vanished: [{ name: 'gone', count: 1, old: '[1] float32' }],
    reshaped: [
      { name: 'x_*/w', count: 2, old: '[2] float32', new: '[4] float32' },
      { name: 'x_2/w', count: 1, old: '[3] float32', new: '[4] float32' },
    ],
  });
});
