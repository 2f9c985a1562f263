/** @file The state that runs under faults save: every value follows from the step, so that a wrong one is seen. */
import { createTrainState, type TrainState } from '../../src/checkpoints/index.js';
import type { FlatArray } from '../../src/compiler/index.js';
import { slotsLike } from '../checkpoints/slotsLike.js';

export const SAVE_EVERY = 2;

const size = 3000;
const layout = { size, entries: [{ name: 'w', shape: [size], offset: 0, size }] };

export const stateOf = (): TrainState => createTrainState(layout, slotsLike(layout, ['m']));

export function stateAt(step: number): TrainState {
  const state = stateOf();
  state.step = step;
  state.params.forEach((_, at) => {
    state.params[at] = Math.sin(step + at);
    state.slots.m![at] = step * size + at;
  });
  return state;
}

/** Whether a state has the values of a step, bit for bit. */
export function isStateOf(step: number, { params, slots }: TrainState): boolean {
  const expected = stateAt(step);
  const isSame = (a: FlatArray, b: FlatArray) => Buffer.from(a.buffer).equals(Buffer.from(b.buffer));
  return isSame(params, expected.params) && isSame(slots.m!, expected.slots.m!);
}
