/** @file Means of last checkpoints: exact, and refused where there are too few or others. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { AveragedVariables, Checkpointer, createTrainState } from '../../src/checkpoints/index.js';
import { temporaryDirectory } from '../command.js';

const layout = (rows: number) => ({
  size: 16,
  entries: [{ name: 'lm/w', shape: [rows, 2], offset: 0, size: 2 * rows }],
});

/** Checkpoints of steps 1 to 4, whose values are 1e8 and those of the step. */
async function saved(rowsOf = (_step: number) => 2): Promise<string> {
  const directory = join(temporaryDirectory(), 'checkpoints');
  const writer = new Checkpointer({ directory, experiment: 'test.Small', saveIntervalSteps: 1 });
  for (const step of [1, 2, 3, 4]) {
    const state = createTrainState(layout(rowsOf(step)));
    state.step = step;
    state.params.set([step, -step, step === 2 ? 1e8 : step === 3 ? -1e8 : step, 0.1]);
    await writer.save(state, { inputState: null });
  }
  await writer.close();
  return directory;
}

test('variables are the means of the last ones', async () => {
  const source = AveragedVariables.open(await saved(), 3);
  const w = new Float32Array(4);
  source.readInto('lm/w', w);
  // The sum of large ones leaves the small one: it is taken in float64.
  expect([...w]).toEqual([3, -3, Math.fround(4 / 3), Math.fround(0.1)]);
  expect([source.names, source.shapeOf('lm/w')]).toEqual([['lm/w'], [2, 2]]);
  expect(source.origin).toEqual({ experiment: 'test.Small', step: 4, checkpoints: 3 });
  source.close();
});

test('errors', async () => {
  const directory = await saved((step) => (step === 3 ? 3 : 2));
  expect(() => AveragedVariables.open(directory, 9)).toThrow(
    'expected 9 checkpoints to average; there are 4',
  );
  const one = join(directory, 'checkpoint_00000004');
  expect(() => AveragedVariables.open(one, 2)).toThrow('expected 2 checkpoints to average; it is one');
  expect(() => AveragedVariables.open(directory, 2)).toThrow(`its variable 'lm/w' is not that of ${one}`);
});
