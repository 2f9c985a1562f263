/** @file Checkpointer: when it saves, what it keeps, how names are read, what is left over from interrupted runs. */

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  CheckpointError,
  Checkpointer,
  type CheckpointerOptions,
  createTrainState,
  SafetensorsFile,
  type SavedCheckpoint,
  type SaveMoment,
  stepOfName,
  type TrainState,
} from '../../src/checkpoints/index.js';
import { deleteOld, type WriteRequest } from '../../src/checkpoints/writeCheckpoint.js';
import type { FlatArray } from '../../src/compiler/index.js';
import { writersOf } from './severalWriters.js';
import { slotsLike } from './slotsLike.js';

let parent: string;
let directory: string;
const opened: Checkpointer[] = [];
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'luthier-checkpoints-'));
  directory = join(parent, 'checkpoints');
});
afterEach(async () => {
  for (const checkpointer of opened.splice(0)) await checkpointer.close().catch(() => {});
  rmSync(parent, { recursive: true });
});

function open(options: Partial<CheckpointerOptions> = {}): Checkpointer {
  const checkpointer = new Checkpointer({ directory, experiment: 'test.Small', ...options });
  opened.push(checkpointer);
  return checkpointer;
}

/** Two variables with a gap of padding between and after them. */
const layout = {
  size: 32,
  entries: [
    { name: 'lm/w', shape: [2, 3], offset: 0, size: 6 },
    { name: 'lm/b', shape: [3], offset: 16, size: 3 },
  ],
};

function stateAt(step: number, slots: string[] = ['m', 'v']): TrainState {
  const state = createTrainState(layout, slotsLike(layout, slots));
  state.step = step;
  [state.params, ...Object.values(state.slots)].forEach((buffer, which) => {
    for (const { offset, size } of layout.entries) {
      for (let index = 0; index < size; index++)
        buffer[offset + index] = Math.sin(step + which * 100 + offset + index);
    }
  });
  return state;
}

/** Pax's loop: save if it is due before each step. */
async function train(checkpointer: Checkpointer, lastStep: number): Promise<number[]> {
  for (let step = 0; step <= lastStep; step++) {
    if (checkpointer.shouldSave(step)) await checkpointer.save(stateAt(step));
  }
  await checkpointer.waitUntilFinished();
  return checkpointer.steps();
}

test('a state comes back bit for bit, NaN payloads and all, with its input state', async () => {
  const checkpointer = open();
  const state = stateAt(100);
  new Uint32Array(state.params.buffer).set([0x7fc0dead, 0x80000000, 0x00000001, 0xff800000]);
  expect(await checkpointer.save(state, { inputState: { file: 3, offset: [1, 2] } })).toBe(true);
  await checkpointer.waitUntilFinished();
  const restored = createTrainState(layout, slotsLike(layout, ['m', 'v']));
  const { step, path, inputState, metadata, passedOver } = await open().restore(restored, {});
  expect([step, restored.step, inputState, passedOver]).toEqual([100, 100, { file: 3, offset: [1, 2] }, []]);
  expect(path).toBe(join(directory, 'checkpoint_00000100'));
  expect(metadata.variables).toEqual({
    'lm/w': { shape: [2, 3], dtype: 'float32' },
    'lm/b': { shape: [3], dtype: 'float32' },
  });
  const bits = (buffer: FlatArray) => [...new Uint32Array(buffer.buffer)];
  expect(bits(restored.params)).toEqual(bits(state.params));
  expect(bits(restored.slots.v!)).toEqual(bits(state.slots.v!));
});

test('the state may change as soon as save returns', async () => {
  const checkpointer = open();
  const state = stateAt(1);
  await checkpointer.save(state);
  state.params.fill(7);
  state.step = 2;
  const restored = createTrainState(layout, slotsLike(layout, ['m', 'v']));
  await checkpointer.restore(restored);
  expect(restored.params).toEqual(stateAt(1).params);
});

test('one checkpointer saves states of other variables and slots, one after the other', async () => {
  const checkpointer = open();
  const renamed = {
    size: 32,
    entries: [
      { name: 'lm/b', shape: [3], offset: 0, size: 3 },
      { name: 'lm/w', shape: [3, 2], offset: 8, size: 6 },
    ],
  };
  const renamedAt = (step: number): TrainState => {
    const state = createTrainState(renamed, slotsLike(renamed, ['m', 'v']));
    state.step = step;
    [state.params, ...Object.values(state.slots)].forEach((buffer, which) => {
      for (const { offset, size } of renamed.entries)
        buffer.fill(step + which / 4 + size, offset, offset + size);
    });
    return state;
  };
  const states = [stateAt(1, ['m']), stateAt(2), renamedAt(3), stateAt(4), stateAt(5, ['m'])];
  for (const state of states) await checkpointer.save(state);
  await checkpointer.waitUntilFinished();
  for (const { step, layout, params, slots } of states) {
    const restored = createTrainState(layout, slotsLike(layout, Object.keys(slots)));
    await checkpointer.restore(restored, { step });
    const valuesOf = (buffer: FlatArray) =>
      layout.entries.map(({ offset, size }) => buffer.subarray(offset, offset + size));
    expect(valuesOf(restored.params)).toEqual(valuesOf(params));
    for (const [name, buffer] of Object.entries(slots))
      expect(valuesOf(restored.slots[name]!)).toEqual(valuesOf(buffer));
  }
});

test('the state file is plain safetensors with one tensor a variable and slot', async () => {
  const checkpointer = open();
  await checkpointer.save(stateAt(5, ['m']));
  await checkpointer.waitUntilFinished();
  expect(readdirSync(join(directory, 'checkpoint_00000005')).sort()).toEqual([
    'metadata.json',
    'state.safetensors',
  ]);
  const file = new SafetensorsFile(join(directory, 'checkpoint_00000005', 'state.safetensors'));
  expect(file.layout.tensors.map(({ name, dtype, shape }) => [name, dtype, shape])).toEqual([
    ['step', 'I64', []],
    ['params/lm/w', 'F32', [2, 3]],
    ['params/lm/b', 'F32', [3]],
    ['slots/m/lm/w', 'F32', [2, 3]],
    ['slots/m/lm/b', 'F32', [3]],
  ]);
  expect(file.read('step')).toEqual(BigInt64Array.of(5n));
  expect(file.read('params/lm/b')).toEqual(stateAt(5).params.subarray(16, 19));
  file.close();
});

test('every interval, and the first time', async () => {
  const checkpointer = open({ saveIntervalSteps: 10 });
  expect(checkpointer.shouldSave(3)).toBe(true);
  await checkpointer.save(stateAt(3));
  expect([3, 4, 10, 15, 20].map((step) => checkpointer.shouldSave(step))).toEqual([
    false,
    false,
    true,
    false,
    true,
  ]);
  await checkpointer.save(stateAt(20));
  expect(checkpointer.shouldSave(20)).toBe(false);
  await checkpointer.close();
  expect(open({ saveIntervalSteps: 10 }).shouldSave(30)).toBe(true);
});

test.each([
  [
    'keeps the newest',
    { saveIntervalSteps: 10, saveMaxToKeep: 2, saveKeepIntervalDuration: null },
    95,
    [80, 90],
  ],
  ['keeps all', { saveIntervalSteps: 10, saveMaxToKeep: null }, 45, [0, 10, 20, 30, 40]],
  [
    'keeps few',
    { saveIntervalSteps: 20, saveMaxToKeep: 4, saveKeepIntervalDuration: null },
    99,
    [20, 40, 60, 80],
  ],
] as const)('a run %s', async (_, options, lastStep, expected) => {
  expect(await train(open(options), lastStep)).toEqual(expected);
});

test('checkpoints far enough apart are kept, by the time in their metadata', async () => {
  let hours = 0;
  const options = {
    saveIntervalSteps: 1,
    saveMaxToKeep: 1,
    saveKeepIntervalDuration: '2h',
    now: () => new Date(hours++ * 3_600_000),
  };
  expect(await train(open(options), 3)).toEqual([0, 2, 3]);
  // A new process reads the times back.
  const resumed = open(options);
  for (const step of [4, 5]) await resumed.save(stateAt(step));
  await resumed.waitUntilFinished();
  expect(resumed.steps()).toEqual([0, 2, 4, 5]);
});

test('old checkpoints are moved to a folder that is named for them, under a free name', async () => {
  const options = { saveIntervalSteps: 1, saveMaxToKeep: 2, saveKeepIntervalDuration: null };
  const checkpointer = open({ ...options, toDeleteSubdir: 'archive' });
  mkdirSync(join(directory, 'archive', 'checkpoint_00000001'), { recursive: true });
  expect(await train(checkpointer, 3)).toEqual([2, 3]);
  const archived = readdirSync(join(directory, 'archive')).sort();
  expect(archived).toEqual(['checkpoint_00000000', 'checkpoint_00000001', 'checkpoint_00000001_2']);
  const archive = open({ directory: join(directory, 'archive'), readOnly: true });
  const restored = createTrainState(layout, slotsLike(layout, ['m', 'v']));
  expect((await archive.restore(restored, { step: 0 })).step).toBe(0);
});

test('policies save and keep beside the settings', async () => {
  const everyThird = {
    isDue: ({ step }: SaveMoment) => step % 3 === 0,
    kept: (all: readonly SavedCheckpoint[]) =>
      all.filter(({ step }) => step % 3 === 0).map(({ step }) => step),
  };
  const settings = { saveIntervalSteps: 5, saveMaxToKeep: 1, saveKeepIntervalDuration: null };
  const checkpointer = open({ ...settings, policies: [everyThird] });
  expect(await train(checkpointer, 10)).toEqual([0, 3, 6, 9, 10]);
});

test('a policy sees whether a save is in progress or has failed, and the time since the last one began', async () => {
  const seen: SaveMoment[] = [];
  const watching = { isDue: (moment: SaveMoment) => seen.push(moment) < 0, kept: () => [] };
  const checkpointer = open({ policies: [watching], notify: () => {} });
  await checkpointer.save(stateAt(1));
  checkpointer.shouldSave(2);
  await checkpointer.waitUntilFinished();
  checkpointer.shouldSave(2);
  rmSync(directory, { recursive: true });
  writeFileSync(directory, 'a file in its place');
  await checkpointer.save(stateAt(2));
  await checkpointer.waitUntilFinished().catch(() => {});
  checkpointer.shouldSave(3);
  expect(seen.map(({ isSaving, hasFailed }) => [isSaving, hasFailed])).toEqual([
    [true, false],
    [false, false],
    [false, true],
  ]);
  expect(seen.every(({ seconds }) => seconds >= 0 && seconds < 60)).toBe(true);
  expect(seen[1]!.seconds).toBeGreaterThan(seen[0]!.seconds);
});

test('saves are counted, with the seconds that they stall and write, and their bytes', async () => {
  const checkpointer = open();
  for (const step of [1, 2, 2]) await checkpointer.save(stateAt(step));
  await checkpointer.waitUntilFinished();
  const { saves, bytes, stallSeconds, writeSeconds } = checkpointer.takeStatistics();
  const file = statSync(join(directory, 'checkpoint_00000002', 'state.safetensors'));
  expect([saves, bytes]).toEqual([2, 2 * file.size]);
  // The second save waits for the first one.
  expect(stallSeconds).toBeGreaterThan(0);
  expect(writeSeconds).toBeGreaterThan(0);
  const none = { saves: 0, stallSeconds: 0, writeSeconds: 0, bytes: 0 };
  expect(checkpointer.takeStatistics()).toEqual(none);
});

test('the newest good checkpoint is kept while bad ones follow it, also by a new process', async () => {
  const options = { saveIntervalSteps: 1, saveMaxToKeep: 1, saveKeepIntervalDuration: null };
  const checkpointer = open(options);
  const saveAll = async (by: Checkpointer, steps: readonly number[], isGood: boolean) => {
    for (const step of steps) await by.save(stateAt(step), { isGood });
    await by.waitUntilFinished();
  };
  await saveAll(checkpointer, [0, 1], true);
  await saveAll(checkpointer, [2, 3], false);
  expect([checkpointer.steps(), checkpointer.latestGoodStep()]).toEqual([[1, 3], 1]);
  const resumed = open(options);
  expect(resumed.latestGoodStep()).toBe(1);
  await saveAll(resumed, [4, 5], false);
  expect(resumed.steps()).toEqual([1, 5]);
  const { metadata } = await resumed.restore(createTrainState(layout, slotsLike(layout, ['m', 'v'])));
  expect(metadata.isGood).toBe(false);
  await saveAll(resumed, [6], true);
  expect([resumed.steps(), resumed.latestGoodStep()]).toEqual([[6], 6]);
});

test('a checkpoint whose metadata cannot be read for a while is told once, and kept', async () => {
  const options = { saveIntervalSteps: 1, saveMaxToKeep: 1, saveKeepIntervalDuration: null };
  expect(await train(open(options), 0)).toEqual([0]);
  const metadata = join(directory, 'checkpoint_00000000', 'metadata.json');
  renameSync(metadata, `${metadata}.hidden`);
  const told: string[] = [];
  const resumed = open({ ...options, notify: ({ message }) => told.push(message) });
  for (const step of [1, 2]) await resumed.save(stateAt(step), { isGood: false });
  await resumed.waitUntilFinished();
  expect(resumed.steps()).toEqual([0, 2]);
  expect(told).toEqual([
    `Checkpoint ${join(directory, 'checkpoint_00000000')} cannot be read, and is kept:\n  ${metadata}: the file is missing`,
  ]);
  renameSync(`${metadata}.hidden`, metadata);
  await resumed.save(stateAt(3), { isGood: false });
  await resumed.waitUntilFinished();
  expect([resumed.steps(), resumed.latestGoodStep()]).toEqual([[0, 3], 0]);
});

test('a step that is saved already is left as it is', async () => {
  const checkpointer = open();
  await checkpointer.save(stateAt(1));
  await checkpointer.waitUntilFinished();
  const file = join(directory, 'checkpoint_00000001', 'state.safetensors');
  const before = readFileSync(file);
  const other = stateAt(1);
  other.params[0] = 42;
  expect(await checkpointer.save(other)).toBe(false);
  expect(readFileSync(file).equals(before)).toBe(true);
  expect(readdirSync(directory)).toEqual(['checkpoint_00000001']);
});

test('names are recognised as Pax does', () => {
  const names = [
    'checkpoint_1234',
    '1234',
    'checkpoint_00000100',
    'checkpoint1234',
    'tmp_1010101.checkpoint_100',
    'x_1',
  ];
  expect(names.map(stepOfName)).toEqual([1234, 1234, 100, undefined, undefined, undefined]);
});

test('leftovers of an interrupted run are ignored, then removed at the next start; other files are not touched', async () => {
  const checkpointer = open();
  await checkpointer.save(stateAt(7));
  await checkpointer.close();
  mkdirSync(join(directory, 'tmp_1x2.checkpoint_00000009'));
  mkdirSync(join(directory, 'notes'));
  writeFileSync(join(directory, '12'), 'a file, not a checkpoint');
  expect(open({ readOnly: true }).latestStep()).toBe(7);
  expect(existsSync(join(directory, 'tmp_1x2.checkpoint_00000009'))).toBe(true);
  expect(open().latestStep()).toBe(7);
  expect(readdirSync(directory).sort()).toEqual(['12', 'checkpoint_00000007', 'notes']);
});

test('a checkpointer that only reads creates nothing and refuses to save', async () => {
  const reader = open({ readOnly: true });
  expect(reader.latestStep()).toBeUndefined();
  expect(existsSync(directory)).toBe(false);
  await expect(reader.save(stateAt(0))).rejects.toThrow(`${directory}: this checkpointer is read-only`);
});

test('a directory that cannot be written is named with the cause', () => {
  writeFileSync(directory, 'a file where the directory should be');
  expect(() => open()).toThrow(CheckpointError);
  expect(() => open()).toThrow(
    `${directory}: checkpoints cannot be written here: ${directory} is not a directory`,
  );
  const link = `${directory}_link`;
  symlinkSync('/disk/that/is/away', link);
  expect(() => open({ directory: link })).toThrow(
    `${link}: checkpoints cannot be written here: ${link} is not a directory but a link to /disk/that/is/away, which is none or not there`,
  );
  expect(() => open({ directory: '/proc/luthier' })).toThrow(
    /^\/proc\/luthier: checkpoints cannot be written here: E/,
  );
});

test('a failed save is reported by what waits next, leaves older checkpoints, and the next save works', async () => {
  const checkpointer = open({ saveIntervalSteps: 1 });
  await checkpointer.save(stateAt(1));
  await checkpointer.waitUntilFinished();
  renameSync(directory, `${directory}_away`);
  writeFileSync(directory, 'a file in its place');
  await checkpointer.save(stateAt(2));
  await expect(checkpointer.save(stateAt(3))).rejects.toMatchObject({
    kind: 'io',
    path: join(directory, 'checkpoint_00000002'),
    message: expect.stringMatching(/checkpoint_00000002: cannot be written: .*: cannot be listed: ENOTDIR/),
  });
  rmSync(directory);
  renameSync(`${directory}_away`, directory);
  expect(checkpointer.shouldSave(2)).toBe(true);
  await checkpointer.save(stateAt(2));
  await checkpointer.waitUntilFinished();
  expect(checkpointer.steps()).toEqual([1, 2]);
});

test('with somebody to tell, a failed save is told at once, the next goes on, and waiting throws for the last', async () => {
  const told: string[] = [];
  const checkpointer = open({ saveIntervalSteps: 1, notify: ({ message }) => told.push(message) });
  await checkpointer.save(stateAt(1));
  await checkpointer.waitUntilFinished();
  renameSync(directory, `${directory}_away`);
  writeFileSync(directory, 'a file in its place');
  for (const step of [2, 3]) {
    expect(checkpointer.shouldSave(step)).toBe(true);
    await checkpointer.save(stateAt(step));
  }
  await expect(checkpointer.waitUntilFinished()).rejects.toThrow(
    `${join(directory, 'checkpoint_00000003')}: cannot be written: ${directory}: cannot be listed: ENOTDIR`,
  );
  expect(told.map((message) => /checkpoint_\d+: cannot be written/.exec(message)?.[0])).toEqual([
    'checkpoint_00000002: cannot be written',
    'checkpoint_00000003: cannot be written',
  ]);
  rmSync(directory);
  await checkpointer.save(stateAt(3));
  await checkpointer.waitUntilFinished();
  // A directory that was removed is made again.
  expect(checkpointer.steps()).toEqual([3]);
});

test('old checkpoints that cannot be deleted are named with the cause, and the others go', () => {
  mkdirSync(join(directory, 'checkpoint_00000002'), { recursive: true });
  const deleted = (from: string, ...toDelete: string[]) =>
    deleteOld({ directory: from, toDelete, toDeleteDirectory: null } as unknown as WriteRequest);
  expect(deleted(directory, 'checkpoint_00000001', 'checkpoint_00000002')).toEqual([]);
  expect(readdirSync(directory)).toEqual([]);
  // A process is no file that could be renamed.
  expect(deleted('/proc', '1')).toEqual([
    { name: '1', error: expect.objectContaining({ syscall: 'rename' }) },
  ]);
});

test('a duration that does not parse is refused before anything is created', () => {
  expect(() => open({ saveKeepIntervalDuration: '12 hours' })).toThrow(
    'Unable to parse string duration `12 hours`.',
  );
  expect(existsSync(directory)).toBe(false);
});

describe('a state that several processes write', () => {
  /** More than the chunks of one process. */
  const large = { size: 4000, entries: [{ name: 'lm/w', shape: [40, 100], offset: 0, size: 4000 }] };
  const largeState = (step: number): TrainState => {
    const state = createTrainState(large, slotsLike(large, ['m']));
    state.step = step;
    for (const [i, buffer] of [state.params, state.slots.m!].entries())
      for (let j = 0; j < buffer.length; j++) buffer[j] = i + j + step;
    return state;
  };
  const fileAt = (step: number) =>
    join(directory, `checkpoint_${String(step).padStart(8, '0')}`, 'state.safetensors');

  test('is the file of one process, which restores it and tells damage', async () => {
    const [state, restored] = [largeState(3), largeState(0)];
    const checkpointer = open();
    await checkpointer.save(state, { writers: writersOf(state, 3) });
    await checkpointer.waitUntilFinished();
    const together = readFileSync(fileAt(3));
    const { metadata } = await checkpointer.restore(restored);
    expect(metadata.version).toBe('1.4');
    expect(restored).toEqual(state);
    rmSync(join(directory, 'checkpoint_00000003'), { recursive: true });
    await checkpointer.save(largeState(3));
    await checkpointer.waitUntilFinished();
    expect(Buffer.compare(readFileSync(fileAt(3)), together)).toBe(0);
    rmSync(join(directory, 'checkpoint_00000003'), { recursive: true });
    await checkpointer.save(state, { writers: writersOf(state, 3) });
    await checkpointer.waitUntilFinished();
    together[2 * 4096] = together[2 * 4096]! ^ 1;
    writeFileSync(fileAt(3), together);
    await expect(checkpointer.restore(restored)).rejects.toThrow(
      `${fileAt(3)}: damaged in the 4096 bytes from 8192 on`,
    );
  });

  test('is not there where a process could not write its part, and nothing is left of it', async () => {
    const told: string[] = [];
    const checkpointer = open({ notify: ({ message }) => told.push(message) });
    const state = largeState(4);
    const failing = writersOf(state, 3, (part) => (part.index === 2 ? { ...part, data: -1 as never } : part));
    await checkpointer.save(state, { writers: failing });
    await checkpointer.waitUntilFinished().catch(() => {});
    expect(told).toHaveLength(1);
    expect(told[0]).toMatch(/cannot be written: the part of rank 2: Invalid typed array length: -1/);
    expect(readdirSync(directory)).toEqual([]);
    await checkpointer.save(state, { writers: writersOf(state, 3) });
    await checkpointer.waitUntilFinished();
    expect(readdirSync(directory)).toEqual(['checkpoint_00000004']);
  });
});
