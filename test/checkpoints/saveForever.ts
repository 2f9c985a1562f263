/** @file A process that saves one step after the other until it is killed; its argument is the directory. */

import { Checkpointer, createTrainState } from '../../src/checkpoints/index.js';
import { slotsLike } from './slotsLike.js';

const size = 1 << 18;
const layout = { size, entries: [{ name: 'lm/w', shape: [size], offset: 0, size }] };
const state = createTrainState(layout, slotsLike(layout, ['m']));
const checkpointer = new Checkpointer({
  directory: process.argv[2]!,
  experiment: 'test.Kill',
  saveIntervalSteps: 1,
  saveMaxToKeep: 2,
  saveKeepIntervalDuration: null,
});

async function saveForever(): Promise<never> {
  for (state.step = (checkpointer.latestStep() ?? 0) + 1; ; state.step++) {
    state.params.fill(state.step);
    state.slots.m!.fill(-state.step);
    await checkpointer.save(state, { inputState: { batches: state.step } });
    // The save before this one has been waited for, so it is on the disk.
    process.stdout.write(`${state.step - 1}\n`);
  }
}

void saveForever();
