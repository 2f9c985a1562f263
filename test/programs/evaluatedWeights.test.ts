/** @file Weights that programs may ask for: of a state in training, and of a checkpoint that was read for one of the two. */
import { expect, test } from 'vitest';
import { flatLayout, flatViews } from '../../src/compiler/index.js';
import { restoredWeights, trainedWeights } from '../../src/programs/evaluatedWeights.js';
import type { FlatTrainState } from '../../src/programs/taskState.js';

const layout = flatLayout([{ name: 'w', shape: [2] }] as never);

function stateOf(slots: Record<string, Float32Array>): FlatTrainState {
  const params = new Float32Array(layout.size).fill(1);
  return {
    step: 3,
    params,
    slots,
    layout,
    changing: layout,
    views: flatViews(layout, params),
  } as FlatTrainState;
}

test('in training both, in the memory of the state', () => {
  const ema = new Float32Array(layout.size).fill(2);
  const state = stateOf({ ema });
  const weights = trainedWeights(state);
  const [present, average] = [weights(false), weights(true)];
  expect([present.views.w, average.views.w]).toEqual([
    new Float32Array(2).fill(1),
    new Float32Array(2).fill(2),
  ]);
  ema.fill(5);
  state.params.fill(4);
  expect([present.views.w, average.views.w]).toEqual([
    new Float32Array(2).fill(4),
    new Float32Array(2).fill(5),
  ]);
  expect(weights(true)).toBe(average);
  expect(() => trainedWeights(stateOf({}))(true)).toThrow(
    'useEmaStates needs an average of the parameters: set task.train.learner.optimizer.emaDecay, to 0.999 say.',
  );
});

test('of a checkpoint the one that was read', () => {
  const state = stateOf({});
  expect(restoredWeights({ mode: 'eval' }, state, true)(true)).toBe(state);
  expect(restoredWeights({ mode: 'decode' }, state, false)(false)).toBe(state);
  expect(() => restoredWeights({ mode: 'eval' }, state, true)(false)).toThrow(
    '--mode=eval has read the average alone, and a program asks for the parameters (useEmaStates false). ' +
      'Set task.train.evalUseEmaStates=false for this job.',
  );
  expect(() => restoredWeights({ mode: 'decode_once' }, state, false)(true)).toThrow(
    '--mode=decode_once has read the parameters alone, and a program asks for the average (useEmaStates true). ' +
      'Set task.train.decodeUseEmaStates=true for this job.',
  );
});
