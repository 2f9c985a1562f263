/** @file Restoring: every damage is seen and named, nothing changes on error, older checkpoints only when asked. */

import { execFileSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  CheckpointError,
  Checkpointer,
  createTrainState,
  type RestoreOptions,
  SavedVariables,
  type TrainState,
} from '../../src/checkpoints/index.js';
import { digestOfBytes, digestOfJson } from '../../src/checkpoints/metadata.js';
import { heldView } from '../../src/compiler/index.js';
import { loadMapFile } from '../../src/files/index.js';
import { runs } from '../faults/campaign.js';
import { slotsLike } from './slotsLike.js';

const layout = {
  size: 16,
  entries: [
    { name: 'lm/w', shape: [2, 3], offset: 0, size: 6 },
    { name: 'lm/b', shape: [3], offset: 6, size: 3 },
  ],
};

let parent: string;
let directory: string;
beforeEach(async () => {
  parent = mkdtempSync(join(tmpdir(), 'luthier-restore-'));
  directory = join(parent, 'checkpoints');
  const writer = open();
  for (const step of [10, 20]) {
    const state = createTrainState(layout, slotsLike(layout, ['m']));
    state.step = step;
    state.params.fill(step, 0, 9);
    await writer.save(state, { inputState: { at: step } });
  }
  await writer.close();
});
afterEach(() => rmSync(parent, { recursive: true }));

const open = (experiment = 'test.Small') => new Checkpointer({ directory, experiment, saveIntervalSteps: 5 });
const pathOf = (step: number, file = '') => join(directory, `checkpoint_000000${step}`, file);

/** Every file below the directory with its bytes. */
function listing(): Map<string, string> {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  return new Map(
    files.map(({ parentPath, name }) => [
      join(parentPath, name),
      readFileSync(join(parentPath, name), 'base64'),
    ]),
  );
}

/** The error of restoring, which must leave the state and every file as they were. */
async function failure(options: RestoreOptions = {}, target = layout, slots = ['m'], experiment?: string) {
  const state = createTrainState(target, slotsLike(target, slots));
  state.step = 5;
  state.params.fill(0.5);
  const before = listing();
  const error = await open(experiment)
    .restore(state, options)
    .then(
      () => undefined,
      (thrown) => thrown,
    );
  expect(error).toBeInstanceOf(CheckpointError);
  expect(listing()).toEqual(before);
  expect(state.step).toBe(5);
  expect(state.params.every((value) => value === 0.5)).toBe(true);
  return error as CheckpointError;
}

test('the newest is restored, or the one that is asked for', async () => {
  const state = createTrainState(layout, slotsLike(layout, ['m']));
  expect((await open().restore(state)).step).toBe(20);
  const { step, inputState } = await open().restore(state, { step: 10 });
  expect([step, state.step, state.params[0], inputState]).toEqual([10, 10, 10, { at: 10 }]);
  const { message, kind } = await failure({ step: 15 });
  expect(kind).toBe('missing');
  expect(message).toBe(`${directory}: no checkpoint for step 15; there are checkpoints for steps 10, 20`);
});

test('no checkpoints and no directory are told apart', async () => {
  const empty = join(parent, 'empty');
  mkdirSync(empty);
  const restoreFrom = (from: string) =>
    new Checkpointer({ directory: from, experiment: 'x', readOnly: true }).restore(createTrainState(layout));
  await expect(restoreFrom(empty)).rejects.toMatchObject({
    message: `No checkpoints were found in directory checkpoint_dir=${empty}`,
  });
  const missing = join(parent, 'missing');
  await expect(restoreFrom(missing)).rejects.toMatchObject({
    message: `Checkpoint directory checkpoint_dir=${missing} does not exist`,
  });
});

test('another experiment is named', async () => {
  const { kind, message } = await failure({}, layout, ['m'], 'test.Large');
  expect(kind).toBe('mismatch');
  expect(message).toBe(
    `${pathOf(20)}: written by experiment 'test.Small', not by 'test.Large'; use another --job_log_dir for this one, ` +
      'or, if it was renamed, keep the old name: export { Large as Small } where it was, and --exp=test.Small',
  );
});

test('all differences of variables and slots are listed at once', async () => {
  const other = {
    size: 16,
    entries: [
      { name: 'lm/w', shape: [3, 2], offset: 0, size: 6 },
      { name: 'lm/scale', shape: [], offset: 6, size: 1 },
    ],
  };
  const { kind, message } = await failure({ allowPrevious: true }, other, ['v']);
  expect(kind).toBe('mismatch');
  expect(message).toBe(
    [
      `${pathOf(20)}: not compatible with this model, 5 differences:`,
      "  variable 'lm/w' is [2, 3] in the checkpoint, [3, 2] in the model",
      "  variable 'lm/scale' [] is only in the model",
      "  variable 'lm/b' [3] is only in the checkpoint",
      "  optimizer slot 'v' is only in the model",
      "  optimizer slot 'm' is only in the checkpoint",
      'Use another --job_log_dir, or the settings that the checkpoint was trained with. ' +
        'Training restores what fits with --restore_changed; --restore_changed=dry_run shows what that is.',
    ].join('\n'),
  );
});

test('parameters alone are restored whatever the slots are', async () => {
  const state = createTrainState(layout, slotsLike(layout, ['v']));
  state.slots.v!.fill(3);
  await open().restore(state, { paramsOnly: true });
  expect(state.params[8]).toBe(20);
  expect(state.slots.v!.every((value) => value === 3)).toBe(true);
});

describe('frozen variables, which have no slots', () => {
  const changing = { size: 6, entries: layout.entries.slice(0, 1) };
  /** Saves a state at step 30, in which lm/b is frozen, as a run of its own. */
  async function save(slots: readonly string[]): Promise<void> {
    const state = createTrainState(layout, slotsLike(changing, slots), changing);
    state.step = 30;
    state.params.set([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    for (const slot of Object.values(state.slots)) slot.set([10, 20, 30, 40, 50, 60]);
    const writer = open();
    await writer.save(state);
    await writer.close();
  }
  const metadataOf = (step: number) => JSON.parse(readFileSync(pathOf(step, 'metadata.json'), 'utf8'));

  test('are saved without slots, in a version of its own, and restored', async () => {
    await save(['m']);
    expect(metadataOf(30)).toMatchObject({
      version: '1.1',
      variables: { 'lm/b': { shape: [3], dtype: 'float32', isFrozen: true } },
    });
    expect(metadataOf(20).version).toBe('1.0');
    const state = createTrainState(layout, slotsLike(changing, ['m']), changing);
    expect((await open().restore(state)).withoutSlots).toEqual([]);
    expect([...state.params.subarray(0, 9)]).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect([...state.slots.m!]).toEqual([10, 20, 30, 40, 50, 60]);
  });

  test('are restored from a checkpoint that has slots of theirs', async () => {
    const state = createTrainState(layout, slotsLike(changing, ['m']), changing);
    state.slots.m!.fill(7);
    expect((await open().restore(state)).withoutSlots).toEqual([]);
    expect([...state.slots.m!]).toEqual([0, 0, 0, 0, 0, 0]);
  });

  test('that are frozen no longer are named, and their slots stay as they are', async () => {
    await save(['m']);
    const state = createTrainState(layout, slotsLike(layout, ['m']));
    state.slots.m!.fill(-1);
    expect((await open().restore(state)).withoutSlots).toEqual(['lm/b']);
    expect([...state.params.subarray(0, 9)]).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect([...state.slots.m!.subarray(0, 9)]).toEqual([10, 20, 30, 40, 50, 60, -1, -1, -1]);
  });

  test('are their own average', async () => {
    await save(['m', 'ema']);
    const state = createTrainState(layout);
    await open().restore(state, { paramsOnly: 'ema' });
    expect([...state.params.subarray(0, 9)]).toEqual([10, 20, 30, 40, 50, 60, 7, 8, 9]);
  });
});

test('a truncated newest checkpoint is named and left in place, with the flag that goes back', async () => {
  const file = pathOf(20, 'state.safetensors');
  const { size } = statSync(file);
  truncateSync(file, size - 10);
  const { kind, message } = await failure();
  expect(kind).toBe('broken');
  expect(message).toBe(
    [
      `checkpoint ${pathOf(20)} is broken and was left in place:`,
      `  ${file}: truncated: expected ${size} bytes, found ${size - 10}`,
      'The checkpoint before it is for step 10; --restore_previous_checkpoint resumes from there.',
    ].join('\n'),
  );
  expect((await failure({ step: 20 })).kind).toBe('broken');
});

test('with the flag the one before is restored, and the broken one steps aside only when its step is saved again', async () => {
  truncateSync(pathOf(20, 'state.safetensors'), 100);
  const broken = listing();
  const checkpointer = open();
  const state = createTrainState(layout, slotsLike(layout, ['m']));
  const { step, passedOver } = await checkpointer.restore(state, { allowPrevious: true });
  expect([step, state.step, passedOver.length]).toEqual([10, 10, 1]);
  expect(passedOver[0]!.path).toBe(pathOf(20));
  expect(listing()).toEqual(broken);
  expect([10, 15, 20].map((at) => checkpointer.shouldSave(at))).toEqual([false, true, true]);
  for (const at of [15, 20]) {
    state.step = at;
    expect(await checkpointer.save(state)).toBe(true);
  }
  // Once: the new one is whole, and counts as any other.
  await checkpointer.waitUntilFinished();
  expect([await checkpointer.save(state), checkpointer.latestGoodStep()]).toEqual([false, 20]);
  await checkpointer.close();
  expect(readdirSync(directory).sort()).toEqual([
    'broken_checkpoint_00000020',
    'checkpoint_00000010',
    'checkpoint_00000015',
    'checkpoint_00000020',
  ]);
  expect((await open().restore(state)).step).toBe(20);
});

test('a broken checkpoint counts for nothing when old ones are let go', async () => {
  truncateSync(pathOf(20, 'state.safetensors'), 100);
  const checkpointer = new Checkpointer({
    directory,
    experiment: 'test.Small',
    saveMaxToKeep: 1,
    saveKeepIntervalDuration: null,
  });
  const state = createTrainState(layout, slotsLike(layout, ['m']));
  await checkpointer.restore(state, { allowPrevious: true });
  state.step = 15;
  await checkpointer.save(state);
  await checkpointer.close();
  expect(checkpointer.steps()).toEqual([15, 20]);
});

test('when none is whole, all are named', async () => {
  rmSync(pathOf(20, 'metadata.json'));
  rmSync(pathOf(10, 'train_input.json'));
  const { message } = await failure({ allowPrevious: true });
  expect(message).toBe(
    [
      `checkpoint ${pathOf(20)} is broken and was left in place:`,
      `  ${pathOf(20, 'metadata.json')}: the file is missing`,
      `  ${pathOf(10, 'train_input.json')}: the file is missing`,
      'There is no older checkpoint to go back to.',
    ].join('\n'),
  );
});

test('a directory that does not hold the step of its name is broken', async () => {
  cpSync(pathOf(20), pathOf(30), { recursive: true });
  const { problem } = await failure();
  expect(problem).toBe(`${pathOf(30)}: the directory names step 30, the state in it step 20`);
});

test('a file cut or changed at any byte is seen', async () => {
  const files = readdirSync(pathOf(20)).map((name) => {
    const bytes = readFileSync(pathOf(20, name));
    return { path: pathOf(20, name), bytes };
  });
  const damage = fc.record({
    file: fc.constantFrom(...files),
    at: fc.nat(),
    flip: fc.integer({ min: 0, max: 255 }),
  });
  await fc.assert(
    fc.asyncProperty(damage, async ({ file: { path, bytes }, at, flip }) => {
      const position = at % bytes.length;
      const damaged = flip === 0 ? bytes.subarray(0, position) : Buffer.from(bytes);
      if (flip !== 0) damaged[position]! ^= flip;
      // Space between the fields of metadata.json says nothing.
      fc.pre(!(path.endsWith('metadata.json') && sameJson(damaged, bytes)));
      writeFileSync(path, damaged);
      try {
        const error = await failure();
        expect(error.kind).toBe('broken');
        expect(error.message).toContain(path);
      } finally {
        writeFileSync(path, bytes);
      }
    }),
    { numRuns: runs(150, 30) },
  );
});

test.each(['train_input.json', 'progress.json'])(
  '%s that is cut short breaks the checkpoint, whatever its digest',
  async (name) => {
    const [path, metadata] = [pathOf(20, name), pathOf(20, 'metadata.json')];
    const cut = Buffer.from('{"position": ');
    writeFileSync(path, cut);
    const { sha256: _, ...fields } = JSON.parse(readFileSync(metadata, 'utf8'));
    fields.files[name] = digestOfBytes(cut);
    writeFileSync(metadata, JSON.stringify({ ...fields, sha256: digestOfJson(fields) }));
    const error = await failure();
    expect(error).toMatchObject({
      kind: 'broken',
      problem: expect.stringMatching(/^\S+\.json: it is not JSON: Unexpected end of JSON input/),
    });
    const state = createTrainState(layout, slotsLike(layout, ['m']));
    expect((await open().restore(state, { allowPrevious: true })).step).toBe(10);
  },
);

/** What may stand where a file belongs, and the words for it. */
const strangers: Record<string, [make: (path: string) => void, problem: string]> = {
  'a named pipe': [(path) => execFileSync('mkfifo', [path]), 'PATH is not a regular file but a named pipe'],
  'a directory': [(path) => mkdirSync(path), 'PATH is not a regular file but a directory'],
  'a link to a device': [
    (path) => symlinkSync('/dev/zero', path),
    'PATH is not a regular file but a device or socket',
  ],
  'a link to itself': [
    (path) => symlinkSync(path, path),
    "ELOOP: too many symbolic links encountered, open 'PATH'",
  ],
  'a link to nowhere': [(path) => symlinkSync('nowhere', path), 'the file is missing'],
};

test.each(Object.keys(strangers))(
  '%s in place of a file breaks the checkpoint, and is not waited for',
  async (kind) => {
    const [make, problem] = strangers[kind]!;
    for (const name of ['state.safetensors', 'metadata.json', 'train_input.json']) {
      const path = pathOf(20, name);
      const before = readFileSync(path);
      rmSync(path);
      make(path);
      const error = await failure();
      expect(error).toMatchObject({ kind: 'broken', problem: `${path}: ${problem.replace('PATH', path)}` });
      rmSync(path, { recursive: true });
      writeFileSync(path, before);
    }
  },
);

test('a checkpoint may be a link to another disk; a link to nowhere, a file or a pipe in its place is broken', async () => {
  const elsewhere = join(parent, 'elsewhere');
  renameSync(pathOf(20), elsewhere);
  symlinkSync(elsewhere, pathOf(20));
  const state = createTrainState(layout, slotsLike(layout, ['m']));
  expect((await open().restore(state)).step).toBe(20);
  renameSync(elsewhere, join(parent, 'gone'));
  expect((await failure()).problem).toBe(`${pathOf(20)}: the file is missing`);
  expect((await open().restore(state, { allowPrevious: true })).step).toBe(10);
  rmSync(pathOf(20));
  for (const make of [(path: string) => writeFileSync(path, ''), strangers['a named pipe']![0]]) {
    make(pathOf(20));
    expect((await failure()).problem).toBe(`${pathOf(20)}: it is not a directory`);
    rmSync(pathOf(20));
  }
});

test('a linked checkpoint is let go as a link: what it leads to stays', async () => {
  const elsewhere = join(parent, 'elsewhere');
  renameSync(pathOf(10), elsewhere);
  symlinkSync(elsewhere, pathOf(10));
  const options = { saveMaxToKeep: 1, saveKeepIntervalDuration: null };
  const checkpointer = new Checkpointer({ directory, experiment: 'test.Small', ...options });
  const state = createTrainState(layout, slotsLike(layout, ['m']));
  state.step = 30;
  await checkpointer.save(state);
  await checkpointer.close();
  expect(readdirSync(directory)).toEqual(['checkpoint_00000030']);
  expect(readdirSync(elsewhere)).toContain('state.safetensors');
});

function sameJson(left: Buffer, right: Buffer): boolean {
  try {
    return JSON.stringify(JSON.parse(left.toString())) === JSON.stringify(JSON.parse(right.toString()));
  } catch {
    return false;
  }
}

test('a checkpoint of a future version says so', async () => {
  const path = pathOf(20, 'metadata.json');
  const { createHash } = await import('node:crypto');
  const { sha256: _, ...fields } = JSON.parse(readFileSync(path, 'utf8'));
  const future = { ...fields, version: '2.0' };
  const sha256 = createHash('sha256').update(JSON.stringify(future)).digest('hex');
  writeFileSync(path, JSON.stringify({ ...future, sha256 }));
  const { kind, message } = await failure();
  expect(kind).toBe('mismatch');
  expect(message).toBe(
    `${path}: written by another version of Luthier: expected version 1.0, 1.1, 1.2, 1.3 or 1.4, found 2.0`,
  );
});

describe('slots of shapes of their own', () => {
  const entry = (name: string, shape: number[], offset: number) => ({
    name,
    shape,
    offset,
    size: shape.reduce((a, b) => a * b, 1),
  });
  const rows = { dtype: 'float32' as const, size: 16, entries: [entry('lm/w', [2], 0)] };
  const bytes = { dtype: 'int8' as const, size: 16, entries: [entry('lm/w', [2, 3], 0)] };
  const vector = { dtype: 'float32' as const, size: 16, entries: [entry('lm/b', [3], 0)] };
  const factored = { rows, bytes, vector };

  async function save(slots: TrainState['slotLayouts']): Promise<void> {
    const state = createTrainState(layout, slots);
    state.step = 30;
    for (const [name, slot] of Object.entries(state.slots))
      slots[name]!.entries.forEach(({ offset, size }) => {
        for (let i = 0; i < size; i++) slot[offset + i] = 10 * name.length - i;
      });
    const writer = open();
    await writer.save(state);
    await writer.close();
  }
  const problem = (slots: TrainState['slotLayouts'], options: RestoreOptions = {}) =>
    open()
      .restore(createTrainState(layout, slots), options)
      .then(
        () => 'none',
        (error: Error) => error.message.split('\n').slice(1, -1).join('\n'),
      );

  test('variables in bfloat16 come back bit for bit; in another type they are another model', async () => {
    const entries = [{ ...entry('lm/w', [2, 3], 0), storage: 'bfloat16' as const }];
    const narrow = { size: 16, entries };
    const state = createTrainState(narrow, {});
    heldView(state.params, entries[0]!).set([1, 2, 3, 4, 5, 6]);
    state.step = 30;
    const writer = open();
    await writer.save(state);
    await writer.close();
    const found = createTrainState(narrow, {});
    await open().restore(found);
    expect(new Uint16Array(found.params.buffer).subarray(0, 7)).toEqual(Uint16Array.of(1, 2, 3, 4, 5, 6, 0));
    const floats = createTrainState({ size: 16, entries: [entry('lm/w', [2, 3], 0)] }, {});
    await expect(open().restore(floats)).rejects.toThrow(
      "\n  variable 'lm/w' is bfloat16 in the checkpoint, float32 in the model\n",
    );
  });

  test('may be stored in bfloat16, float16 and uint8, in files that older readers refuse by their version', async () => {
    const types = ['bfloat16', 'float16', 'uint8'] as const;
    const narrow = Object.fromEntries(types.map((dtype) => [dtype, { ...bytes, dtype }]));
    await save(narrow);
    const metadata = JSON.parse(readFileSync(pathOf(30, 'metadata.json'), 'utf8'));
    expect(metadata.version).toBe('1.3');
    expect(metadata.variables['lm/w'].slots.float16).toEqual({ shape: [2, 3], dtype: 'float16' });
    const state = createTrainState(layout, narrow);
    await open().restore(state);
    const elements = types.map((dtype) => [
      state.slots[dtype]!.constructor,
      ...state.slots[dtype]!.subarray(0, 6),
    ]);
    expect(elements).toEqual([
      [Uint16Array, 80, 79, 78, 77, 76, 75],
      [Uint16Array, 70, 69, 68, 67, 66, 65],
      [Uint8Array, 50, 49, 48, 47, 46, 45],
    ]);
    expect(await problem({ ...narrow, float16: { ...bytes, dtype: 'bfloat16' } })).toBe(
      "  slot 'float16' of 'lm/w' is F16 [2, 3] in the checkpoint, BF16 [2, 3] in the model",
    );
    const saved = SavedVariables.open(directory);
    const floats = new Float32Array(6);
    saved.readInto('bfloat16/lm/w', floats);
    saved.close();
    expect(floats[0]).toBe(80 * 2 ** -133);
  });

  test('are restored bit for bit; a digest, a shape or a dtype that is another is told', async () => {
    await save(factored);
    const metadata = JSON.parse(readFileSync(pathOf(30, 'metadata.json'), 'utf8'));
    expect(metadata).toMatchObject({
      version: '1.2',
      slots: ['rows', 'bytes', 'vector'],
      variables: {
        'lm/w': {
          slots: { rows: { shape: [2], dtype: 'float32' }, bytes: { shape: [2, 3], dtype: 'int8' } },
        },
        'lm/b': { slots: { vector: { shape: [3], dtype: 'float32' } } },
      },
    });
    const state = createTrainState(layout, factored);
    const restored = await open().restore(state);
    expect([restored.withoutSlots, state.step]).toEqual([[], 30]);
    expect([...state.slots.rows!.subarray(0, 3)]).toEqual([40, 39, 0]);
    expect([...state.slots.bytes!.subarray(0, 7)]).toEqual([50, 49, 48, 47, 46, 45, 0]);
    expect(await problem({ ...factored, rows: { ...rows, entries: [entry('lm/w', [3], 0)] } })).toBe(
      "  slot 'rows' of 'lm/w' is F32 [2] in the checkpoint, F32 [3] in the model",
    );
    expect(await problem({ ...factored, bytes: { ...bytes, dtype: 'float32' } })).toBe(
      "  slot 'bytes' of 'lm/w' is I8 [2, 3] in the checkpoint, F32 [2, 3] in the model",
    );
    expect(
      await problem({
        ...factored,
        vector: { ...vector, entries: [...vector.entries, entry('lm/w', [2, 3], 8)] },
      }),
    ).toBe("  slot 'vector' of 'lm/w' is only in the model");
    expect(await problem({ rows, bytes: { ...bytes, entries: [] }, vector })).toBe(
      "  slot 'bytes' of 'lm/w' is only in the checkpoint",
    );
    expect(await problem({ rows, bytes })).toBe("  optimizer slot 'vector' is only in the checkpoint");
  });

  test('a variable that had none, or has none now, is no mismatch', async () => {
    await save({ rows: vector });
    const state = createTrainState(layout, {
      rows: { ...vector, entries: [...vector.entries, entry('lm/w', [2], 8)] },
    });
    expect((await open().restore(state)).withoutSlots).toEqual(['lm/w']);
    expect([...state.slots.rows!.subarray(0, 3)]).toEqual([40, 39, 38]);
    // The first checkpoints have m for both variables.
    const one = createTrainState(layout, { m: { ...vector, entries: [entry('lm/w', [2, 3], 0)] } });
    one.slots.m!.fill(7);
    expect((await open().restore(one, { step: 20 })).withoutSlots).toEqual([]);
    expect([...one.slots.m!.subarray(0, 7)]).toEqual([0, 0, 0, 0, 0, 0, 7]);
  });
});

test('parameters alone may be views of the mapped file, in the place of those of the state', async () => {
  const map = await loadMapFile();
  if (map === undefined) return;
  const target = createTrainState(layout);
  const reader = open();
  const valuesOf = (mapped: object) => Object.entries(mapped).map(([path, values]) => [path, ...values]);
  const { mapped } = await reader.restore(target, { paramsOnly: true, map });
  expect(valuesOf(mapped)).toEqual([
    ['lm/w', 20, 20, 20, 20, 20, 20],
    ['lm/b', 20, 20, 20],
  ]);
  expect([target.step, ...target.params]).toEqual([20, ...new Array(16).fill(0)]);
  const ofSlot = await reader.restore(target, { paramsOnly: 'm', map });
  expect(valuesOf(ofSlot.mapped)).toEqual([
    ['lm/w', 0, 0, 0, 0, 0, 0],
    ['lm/b', 0, 0, 0],
  ]);
  // Where the system refuses, and for a state with its slots, they are read.
  for (const options of [
    { paramsOnly: true, map: Object.assign(() => undefined, { forget: () => {} }) },
    { map },
  ]) {
    const state = createTrainState(layout, options.paramsOnly ? {} : slotsLike(layout, ['m']));
    expect((await reader.restore(state, options)).mapped).toEqual({});
    expect([...state.params.subarray(0, 9)]).toEqual(new Array(9).fill(20));
  }
  await reader.close();
});
