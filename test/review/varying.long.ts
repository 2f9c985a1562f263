/** @file luthier diff on what differs by itself: chance and time, state that experiments leave in a process, git's revision. */
import { expect } from 'vitest';
import { withCommandEnvironment } from '../loader.js';
import { kinds } from './kinds.js';
import { experimentsFile, family } from './repository.js';
import { instead, ScratchReview } from './scratchReview.js';

const test = kinds();

withCommandEnvironment();

const parts = `import { Gaussian } from 'luthier/layers';
import { SyntheticLmInput, LanguageModel, tf } from 'luthier';

let seen = 0;
export const next = (): number => seen++;
export const share = (): number => Math.random() / 8;

export class Chancy extends Gaussian {
  protected override factor(): number {
    return Math.random();
  }
}
export class Shuffled extends SyntheticLmInput {
  protected override fillRow(row: number, batch: any, b: number): void {
    super.fillRow(row + Math.floor(1e6 * Math.random()), batch, b);
  }
}
export class Scaled extends LanguageModel {
  override computeLoss(predictions: any, batch: any): any {
    const [metrics, rest] = super.computeLoss(predictions, batch) as any;
    const [loss, weight] = metrics.total_loss;
    return [{ ...metrics, total_loss: [tf.mul(loss, 2), weight] }, rest];
  }
}
`;

/** An experiment whose task is edited. */
const edited = (name: string, edit: string): string => `export class ${name} extends Family {
  override task() {
    const task = super.task();
    ${edit}
    return task;
  }
}`;

const files = {
  'experiments/family.ts': family,
  'experiments/parts.ts': parts,
  'experiments/a.ts': experimentsFile(
    `import { execFileSync } from 'node:child_process';
import { Chancy, next, Scaled, share, Shuffled } from './parts.js';`,
    edited('Counted', 'task.train.randomSeed = 100 + next();'),
    edited('Dated', 'task.train.randomSeed = Date.now() % 1e9;'),
    edited('Dropping', '(task.model as any).lmTpl.stackedTransformerTpl.dropoutProb = share();'),
    edited(
      'Revised',
      "task.name = 'at-' + execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();",
    ),
    edited('Scales', 'task.model = Scaled.config({ lmTpl: (task.model as any).lmTpl });'),
    edited('Starts', '(task.model as any).lmTpl.paramsInit = Chancy.config();'),
    edited('Steady', 'task.train.randomSeed = 7;'),
    `export class Reads extends Family {
  override datasets() {
    return [Shuffled.config({ name: 'train', isTraining: true, vocabSize: 32, batchSize: 2, seqLen: 8 })] as any;
  }
}`,
  ),
};

const review = new ScratchReview(files);
const commit = (): void => {
  review.repository.git('commit', '--quiet', '--all', '--message=head');
};

test('nothing is told of what differs by itself but a note, where no code changed', async () => {
  const comment = { 'experiments/parts.ts': instead('let seen', '// Since the start.\nlet seen') };
  expect(await review.told(comment, {}, commit)).toMatchInlineSnapshot(`
    "8 the same

    Note: What differs by itself, as a second evaluation of both versions shows, is left out: task.train.randomSeed from one evaluation to the next (a.Dated); task.model.lmTpl.stackedTransformerTpl.dropoutProb from one evaluation to the next (a.Dropping); input from one evaluation to the next (a.Reads); task.name with git's revision (a.Revised); initial values from one evaluation to the next (a.Starts)."
  `);
});

test('a real change beside it is told alone', async () => {
  const edits = {
    'experiments/parts.ts': instead('tf.mul(loss, 2)', 'tf.mul(loss, 3)'),
    'experiments/a.ts': (text: string) =>
      instead('randomSeed = 7', 'randomSeed = 8')(text) +
      edited('Added', 'task.train.randomSeed = 100 + next();'),
  };
  expect(await review.told(edits, {}, commit)).toMatchInlineSnapshot(`
    "1 computes something else, 1 changes at the same cost, 1 added, 6 the same

    added: a.Added

    a.Added (added against Family of experiments/family.ts)
      Fields
        task.train.randomSeed : 1234 (default) → 100  (experiments/a.ts:61; was default of Train)

    a.Steady
      Fields
        task.train.randomSeed : 7 → 8  (experiments/a.ts:50)

    a.Scales
      config same, the training step computes different values (Multiply of the model or the loss), the evaluation computes different values (Multiply of the model or the loss): experiments/a.ts, experiments/parts.ts

    Consequences                           before, or base       after
    a.Added       Parameters                         6.86k       6.86k
                  Forward FLOPs per token       16.3 kFLOP  16.3 kFLOP
                  Tokens per step                       16          16
                  Tokens of training                    80          80
                  FLOPs of training             3.92 MFLOP  3.92 MFLOP
                  Peak memory of training           216 kB      216 kB

    Parameters, FLOPs, tokens and memory as before: a.Steady

    Runs go on changed: a.Scales
      loss or gradients

    Runs go on with the same bits: a.Steady

    Note: What differs by itself, as a second evaluation of both versions shows, is left out: task.train.randomSeed with what its process evaluated before (a.Counted); task.train.randomSeed from one evaluation to the next (a.Dated); task.model.lmTpl.stackedTransformerTpl.dropoutProb from one evaluation to the next (a.Dropping); input from one evaluation to the next (a.Reads); task.name with git's revision (a.Revised); initial values from one evaluation to the next (a.Starts)."
  `);
});

test('other code of a value by chance is not compared in full', async () => {
  const edits = { 'experiments/parts.ts': instead('Math.random() / 8', 'Math.random() / 4') };
  expect(await review.told(edits, {}, commit)).toMatchInlineSnapshot(`
    "1 not compared in full, 7 the same

    not compared: a.Dropping
      experiment: its code changed, and task.model.lmTpl.stackedTransformerTpl.dropoutProb differs by itself

    Note: What differs by itself, as a second evaluation of both versions shows, is left out: task.train.randomSeed from one evaluation to the next (a.Dated); task.model.lmTpl.stackedTransformerTpl.dropoutProb from one evaluation to the next (a.Dropping); input from one evaluation to the next (a.Reads); task.name with git's revision (a.Revised); initial values from one evaluation to the next (a.Starts)."
  `);
});

test('a value that differs by itself from now on is told, and that it does', async () => {
  const edits = { 'experiments/a.ts': instead('randomSeed = 7', 'randomSeed = Date.now() % 1e9') };
  const told = await review.told(edits, {}, commit);
  expect(told.replace(/7 → \d+/, '7 → N')).toMatchInlineSnapshot(`
    "1 changes at the same cost, 7 the same

    a.Steady
      Fields
        task.train.randomSeed : 7 → N  (experiments/a.ts:50)

    Parameters, FLOPs, tokens and memory as before: a.Steady

    Runs go on with the same bits: a.Steady

    Note: What differs by itself, as a second evaluation of both versions shows, is left out: task.train.randomSeed from one evaluation to the next (a.Dated); task.model.lmTpl.stackedTransformerTpl.dropoutProb from one evaluation to the next (a.Dropping); input from one evaluation to the next (a.Reads); task.name with git's revision (a.Revised); initial values from one evaluation to the next (a.Starts).

    Note: Another value at each evaluation now, and not before: task.train.randomSeed (a.Steady)."
  `);
});
