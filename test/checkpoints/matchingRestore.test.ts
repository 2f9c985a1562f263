/** @file Restoring what fits: by name and shape, through another precision, and nothing else. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Checkpointer, createTrainState, MatchingRestore } from '../../src/checkpoints/index.js';
import { heldView, narrow } from '../../src/compiler/index.js';
import { temporaryDirectory } from '../command.js';
import { slotsLike } from './slotsLike.js';

/** A layout of variables one behind the other. */
function layoutOf(variables: Readonly<Record<string, readonly number[]>>, storage?: 'bfloat16') {
  let offset = 0;
  const entries = Object.entries(variables).map(([name, shape]) => {
    const size = shape.reduce((a, b) => a * b, 1);
    const entry = { name, shape, offset, size, ...(storage !== undefined && { storage }) };
    offset += size;
    return entry;
  });
  return { entries, size: offset };
}

const before = layoutOf({ 'lm/w': [2, 3], 'lm/b': [3], 'lm/old': [1] });

async function saved(): Promise<string> {
  const directory = temporaryDirectory();
  const state = createTrainState(before, slotsLike(before, ['m', 'v']));
  state.step = 7;
  for (const [which, buffer] of [state.params, ...Object.values(state.slots)].entries())
    buffer.forEach((_, i) => {
      buffer[i] = 1 + which * 10 + i / 3;
    });
  const checkpointer = new Checkpointer({ directory, experiment: 'x' });
  await checkpointer.save(state, { progress: { of: 7 } });
  await checkpointer.close();
  return join(directory, 'checkpoint_00000007');
}

test('variables and slots of the same name and shape; the others stay as they are', async () => {
  const path = await saved();
  const layout = layoutOf({ 'lm/b': [4], 'lm/new': [2], 'lm/w': [2, 3] });
  const state = createTrainState(layout, slotsLike(layout, ['m', 'u']));
  for (const buffer of [state.params, ...Object.values(state.slots)]) buffer.fill(-1);
  const restore = MatchingRestore.open(path, 'x', state);
  const found = restore.matches.map(({ name, saved, model, outcome }) => [name, [saved, model, outcome]]);
  expect(Object.fromEntries(found)).toEqual({
    'params/lm/b': ['F32 [3]', 'F32 [4]', 'initial'],
    'params/lm/new': [undefined, 'F32 [2]', 'initial'],
    'params/lm/w': ['F32 [2, 3]', 'F32 [2, 3]', 'restored'],
    'slots/m/lm/b': ['F32 [3]', 'F32 [4]', 'initial'],
    'slots/m/lm/new': [undefined, 'F32 [2]', 'initial'],
    'slots/m/lm/w': ['F32 [2, 3]', 'F32 [2, 3]', 'restored'],
    'slots/u/lm/b': [undefined, 'F32 [4]', 'initial'],
    'slots/u/lm/new': [undefined, 'F32 [2]', 'initial'],
    'slots/u/lm/w': [undefined, 'F32 [2, 3]', 'initial'],
    'params/lm/old': ['F32 [1]', undefined, 'dropped'],
    'slots/m/lm/old': ['F32 [1]', undefined, 'dropped'],
    'slots/v/lm/w': ['F32 [2, 3]', undefined, 'dropped'],
    'slots/v/lm/b': ['F32 [3]', undefined, 'dropped'],
    'slots/v/lm/old': ['F32 [1]', undefined, 'dropped'],
  });
  restore.load();
  expect(state.slots.m!.every((value) => value === -1)).toBe(true);
  restore.loadSlots();
  const thirds = (first: number) => Array.from({ length: 6 }, (_, i) => Math.fround(first + i / 3));
  expect([...state.params]).toEqual([-1, -1, -1, -1, -1, -1, ...thirds(1)]);
  expect([...state.slots.m!]).toEqual([-1, -1, -1, -1, -1, -1, ...thirds(11)]);
  expect(state.slots.u!.every((value) => value === -1)).toBe(true);
  expect([restore.metadata.step, restore.beside()]).toEqual([7, { inputState: null, progress: { of: 7 } }]);
  restore.close();
});

test('floats of another precision are converted', async () => {
  const path = await saved();
  const layout = layoutOf({ 'lm/w': [2, 3] }, 'bfloat16');
  const state = createTrainState({ ...layout, size: 8 });
  const restore = MatchingRestore.open(path, undefined, state);
  expect(restore.matches[0]).toEqual({
    ...{ name: 'params/lm/w', saved: 'F32 [2, 3]', model: 'BF16 [2, 3]', outcome: 'converted' },
  });
  restore.load();
  const floats = Float32Array.from({ length: 6 }, (_, i) => 1 + i / 3);
  expect(heldView(state.params, layout.entries[0]!)).toEqual(narrow(floats, 'bfloat16'));
  restore.close();
});

test('a checkpoint of another experiment is refused', async () => {
  const path = await saved();
  const state = createTrainState(before);
  expect(() => MatchingRestore.open(path, 'y', state)).toThrow("written by experiment 'x', not by 'y'");
});
