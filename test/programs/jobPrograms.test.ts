/** @file The list of a job's programs by its mode, and what earlier processes leave to it. */
import { expect, test } from 'vitest';
import { build } from '../../src/hparams/index.js';
import { namesDueAt } from '../../src/programs/duePrograms.js';
import { pendingAt, programsOf, restoreStates } from '../../src/programs/jobPrograms.js';
import type { JobMode } from '../../src/runs/options.js';
import { BaseProgram, TrackMetric } from '../../src/tasks/index.js';
import { tinyOptions, tokens } from './tinyJob.js';

/** Keeps a number. */
class Counting extends BaseProgram.with({}) {
  count = 0;

  override async run() {
    return undefined;
  }

  override getState() {
    return this.count;
  }

  override setState(count: number) {
    this.count = count;
  }
}

const own = (name: string) => Counting.config({ name, intervalSteps: 3 });

/** The programs of a job with an evaluation, a decode and a program of a user's own. */
function listOf(mode: JobMode, train: Parameters<typeof tinyOptions>[0] = {}, name = 'mine') {
  const options = tinyOptions(
    { evalSkipTrain: false, programs: [own(name)], ...train },
    { mode, jobLogDir: 'out' },
  );
  const [evaluated, decoded] = [tokens('held_out', { numBatches: 1 }), tokens('prompts', { numBatches: 1 })];
  const job = {
    ...options,
    datasets: [...options.datasets, evaluated as never],
    decodeDatasets: [decoded as never],
    evalDuringDecode: mode === 'decode_once',
  };
  return programsOf(job, build(options.task));
}

const names = (...args: Parameters<typeof listOf>) => listOf(...args).map((program) => program.name);

test('the same list in each mode, as far as the mode goes', () => {
  expect(names('train')).toEqual(['eval_train', 'mine']);
  expect(names('train_and_eval')).toEqual(['eval_train', 'eval_test_held_out', 'mine']);
  expect(names('train_and_decode')).toEqual([
    ...['eval_train', 'eval_test_held_out', 'decode_test_prompts', 'mine'],
  ]);
  expect(names('eval')).toEqual(['eval_test_held_out', 'mine']);
  expect(names('decode')).toEqual(['decode_test_prompts', 'mine']);
  // With --eval_during_decode.
  expect(names('decode_once')).toEqual(['eval_test_held_out', 'decode_test_prompts', 'mine']);
  expect(names('train', { evalSkipTrain: true })).toEqual(['mine']);
});

test('tracking comes last, in training alone, of any program that the mode runs', () => {
  const tracking = (evaluation: string) => ({ trackMetric: TrackMetric.config({ evaluation }) });
  expect(names('train', tracking('mine'))).toEqual(['eval_train', 'mine', 'track_metric']);
  expect(names('train', tracking('eval_test_held_out'))).toEqual(['eval_train', 'mine']);
  expect(names('train_and_eval', tracking('eval_test_held_out')).at(-1)).toBe('track_metric');
  expect(names('eval', tracking('eval_test_held_out'))).toEqual(['eval_test_held_out', 'mine']);
  expect(() => names('train_and_eval', tracking('mime'))).toThrow(
    "task.train.trackMetric.evaluation: this run has no 'mime'. Did you mean 'mine'? Its programs: eval_train, eval_test_held_out, mine.",
  );
});

test.each(['train', 'checkpoints', 'eval_train'])('a program of its own is not called %s', (name) => {
  expect(() => listOf('train', {}, name)).toThrow(
    `Two programs are called '${name}': give each dataset and program its own name.`,
  );
});

test('pending programs are those left over, in order; at the end all that are due then', () => {
  const list = listOf('train_and_eval');
  const left = { pending: ['mine', 'gone', 'eval_train'], positions: {} };
  expect(pendingAt(list, { step: 2, isLast: false })).toEqual([]);
  expect(pendingAt(list, { step: 2, isLast: false }, left)).toEqual(['eval_train', 'mine']);
  expect(pendingAt(list, { step: 4, isLast: true }, left)).toEqual([
    'eval_train',
    'eval_test_held_out',
    'mine',
  ]);
  expect([2, 3, 6].map((step) => namesDueAt(list, step, false))).toEqual([
    ['eval_train', 'eval_test_held_out'],
    ['mine'],
    ['eval_train', 'eval_test_held_out', 'mine'],
  ]);
});

test('states go to the programs of their names', () => {
  const list = listOf('train');
  restoreStates(list, { positions: { mine: 7, gone: 8 } });
  expect((list.at(-1) as Counting).count).toBe(7);
  restoreStates(list, { positions: {} });
  expect((list.at(-1) as Counting).count).toBe(7);
});
