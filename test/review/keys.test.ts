/** @file Keys of reviews: what is told as one is alike in all that is told. */
import { expect, it } from 'vitest';
import { z } from 'zod';
import { isEqual } from '../../src/hparams/index.js';
import { SyntheticLmInput } from '../../src/inputs/index.js';
import { Learner, Sgd } from '../../src/learners/index.js';
import { LanguageModel } from '../../src/models/index.js';
import { variableGroups } from '../../src/review/changes/checkpointEffect.js';
import { DeclarationChanges } from '../../src/review/changes/declarations.js';
import { groupChanges, groupErrors } from '../../src/review/reports/changeGroups.js';
import { collapse } from '../../src/review/reports/collapse.js';
import { analysisParts } from '../../src/review/versions/evaluate.js';
import { Mesh, SingleTask, Train } from '../../src/tasks/index.js';
import { expectComparison } from '../keys.js';
import { experimentOf } from './reports/sampleReport.js';

/** A task with a field of its own. */
class ScaledTask extends SingleTask.with({ scale: z.number().default(1) }) {}

it('analyses', () => {
  const train = (learningRate: number) =>
    Train.config({ learner: Learner.config({ optimizer: Sgd.config({ learningRate }) }), numTrainSteps: 7 });
  const input = (seqLen: number) =>
    SyntheticLmInput.config({ seqLen, vocabSize: 8, isTraining: true, batchSize: 1 });
  const base = { task: ScaledTask, scale: 1, model: 8, learner: 1, mesh: 1, training: 4 };
  const others = {
    task: SingleTask as typeof ScaledTask,
    scale: 2,
    model: 9,
    learner: 2,
    mesh: 2,
    training: 5,
  };
  expectComparison('analyses of a review', base, others, (x, y) => {
    const [a, b] = [x, y].map(({ task, scale, model, learner, mesh, training }) =>
      analysisParts({
        task: task.config({
          ...{ model: LanguageModel.config({ name: `lm${model}` }), train: train(learner) },
          ...{ mesh: Mesh.config({ iciMeshShape: [mesh, 1, 1] }), ...(task === ScaledTask && { scale }) },
        }),
        datasets: [input(training)],
      }),
    );
    return isEqual(a, b);
  });
});

const change = { what: 'changed', path: 'task.a', old: { text: '1' }, new: { text: '2' } } as const;

it('changes of experiments', () => {
  expectComparison(
    'groups of changes',
    { change, isAdded: false, against: 'lm.Base' },
    { change: { ...change, new: { text: '3' } }, isAdded: true, against: 'lm.Other' },
    (x, y) => {
      const reports = [x, y].map(({ change, isAdded, against }, i) =>
        experimentOf(isAdded ? 'added' : 'changed', { name: `lm.${'AB'[i]}`, fields: [change], against }),
      );
      return groupChanges(reports).length === 1;
    },
  );
});

it('errors: the name of the experiment makes no difference', () => {
  const base = { status: 'fails', error: 'x is too large', before: undefined };
  expectComparison(
    'groups of errors',
    base,
    { status: 'added', error: 'x is too small', before: 'y is missing' },
    (x, y) => {
      const reports = [x, y].map(({ status, error, before }, i) => {
        const name = `lm.${['Small', 'Tiny'][i]}`;
        const oldError = before === undefined ? {} : { oldError: { message: before } };
        return experimentOf(status, {
          name,
          newError: { message: `${name.slice(3)}: ${error}` },
          ...oldError,
        });
      });
      return groupErrors(reports).length === 1;
    },
  );
});

it('variables that are alike but for numbers in their names', () => {
  const formsOf = (side: 'old' | 'new', variables: readonly any[]) =>
    Object.fromEntries(
      variables.map((each, i) => [each.name.replace('#', i), { shape: [each[side]], dtype: 'float32' }]),
    );
  expectComparison(
    'groups of variables',
    { name: 'x_#/w', old: 2, new: 3 },
    { name: 'y_#/w', old: 4, new: 5 },
    (x, y) => {
      return variableGroups(formsOf('old', [x, y]), formsOf('new', [x, y])).reshaped.length === 1;
    },
  );
});

it('declarations', () => {
  const base = { what: 'field', old: 'a', new: undefined };
  expectComparison('changes of declarations', base, { what: 'constant', old: 'b', new: 'c' }, (x, y) => {
    const changes = new DeclarationChanges();
    for (const each of [x, y]) changes.note(each as never, 'Model', 'lm.Small');
    return changes.all.length === 1;
  });
});

it('items of lists', () => {
  const base = { path: 'task.a[#].b', old: '1', new: '2' };
  expectComparison('ranges of changes', base, { path: 'task.a[#].c', old: '3', new: '4' }, (x, y) => {
    const changes = [x, y].map((each, i) => ({
      ...{ ...change, path: each.path.replace('#', i), old: { text: each.old }, new: { text: each.new } },
    }));
    return collapse(changes).length === 1;
  });
  expect(collapse([0, 1, 3].map((i) => ({ ...change, path: `a[${i}]` })))).toEqual([
    { ...change, path: 'a[0…1,3]', count: 3 },
  ]);
});
