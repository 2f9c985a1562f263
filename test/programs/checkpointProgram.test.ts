/** @file The program that saves checkpoints: when it is due, what it waits for, what it does about errors. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Checkpointer, createTrainState } from '../../src/checkpoints/index.js';
import { flatLayout } from '../../src/compiler/index.js';
import { CheckpointProgram } from '../../src/programs/checkpointProgram.js';
import type { ProgramRun, WholeCheckpoint } from '../../src/tasks/index.js';
import { temporaryDirectory } from '../command.js';

/** The program of a run that saves every second step, and what it tells. */
function saving({ directory = temporaryDirectory(), isRestored = false, step = 0 } = {}) {
  const state = createTrainState(flatLayout([{ name: 'w', shape: [2] }] as never));
  state.step = step;
  const told: string[] = [];
  const whole: WholeCheckpoint[] = [];
  const checkpointer = new Checkpointer({
    directory,
    ...{ experiment: 'x', saveIntervalSteps: 2, notify: ({ message }) => told.push(message) },
  });
  let isWhole = true;
  const program = new CheckpointProgram({
    ...{ options: {}, numTrainSteps: 9, checkpointer, state, isRestored },
    isWhole: () => isWhole,
    saved: () => ({}),
    announce: (checkpoint) => whole.push(checkpoint),
  });
  const run = {
    get step() {
      return state.step;
    },
    tell: (line: string) => told.push(line),
    save: () => told.push('asks'),
  } as Partial<ProgramRun> as ProgramRun;
  const breakStep = () => {
    isWhole = false;
  };
  return { program, checkpointer, state, run, told, whole, directory, breakStep };
}

const checkpoint = (directory: string, step: number) => join(directory, `checkpoint_0000000${step}`);

test('due at the start of a run without a checkpoint, at intervals, and at its end; not where it is saved', async () => {
  const { program, run, state, told, checkpointer } = saving();
  expect([program.isDue(0, false), program.isDue(1, false)]).toEqual([true, true]);
  await program.start(run);
  expect(told).toEqual(['asks']);
  await program.run(run);
  await program.run(run);
  const due = [0, 1, 2, 3, 4].map((step) => program.isDue(step, false));
  expect(due).toEqual([false, false, true, false, true]);
  expect([program.isDue(0, true), program.isDue(3, true)]).toEqual([false, true]);
  state.step = 3;
  await program.end(run);
  expect(checkpointer.steps()).toEqual([0, 3]);
  await program.close();
});

test('a restored run is saved already, and one from another run is not', async () => {
  const before = saving({ step: 4 });
  await before.program.end(before.run);
  const { directory } = before;
  const restored = saving({ directory, isRestored: true, step: 4 });
  await restored.program.start(restored.run);
  expect([restored.told, restored.program.isDue(4, true), restored.program.isDue(5, true)]).toEqual([
    [],
    false,
    true,
  ]);
  const elsewhere = saving({ step: 4 });
  await elsewhere.program.start(elsewhere.run);
  expect(elsewhere.told).toEqual(['asks']);
  for (const { program } of [before, restored, elsewhere]) await program.close();
});

test('checkpoints are announced once they are on the disk', async () => {
  const { program, run, state, whole, directory } = saving();
  await program.run(run);
  state.step = 2;
  await program.end(run);
  expect(whole).toEqual([0, 2].map((step) => ({ step, path: checkpoint(directory, step) })));
  await program.close();
});

test('after an error a whole state is saved; that of a broken step is not', async () => {
  const failed = saving({ step: 3 });
  await failed.program.onError(failed.run);
  expect(failed.told).toEqual(['Saved at step 3 of 9; the same command goes on from there.']);
  expect(failed.checkpointer.steps()).toEqual([3]);
  failed.state.step = 4;
  failed.breakStep();
  await failed.program.onError(failed.run);
  expect(failed.told.slice(1)).toEqual([
    'Not saved at step 4: the step after 4 failed half-way, so the state is that of no step. ' +
      'The newest checkpoint is that of step 3.',
  ]);
  await failed.program.close();
});

test('a save that fails is told at once; the end fails with it', async () => {
  const { program, run, state, told, whole, directory, checkpointer } = saving();
  await program.run(run);
  await checkpointer.waitUntilFinished();
  rmSync(directory, { recursive: true });
  writeFileSync(directory, '');
  state.step = 2;
  await program.run(run);
  await expect(program.end(run)).rejects.toThrow('ENOTDIR');
  expect(told).toEqual([expect.stringContaining(checkpoint(directory, 2))]);
  await program.onError(run);
  expect(told.at(-1)).toMatch(/^Not saved at step 2: .*ENOTDIR.*\. There is no checkpoint\.$/);
  expect(whole.map(({ step }) => step)).toEqual([0]);
  await program.close().catch(() => {});
});
