/** @file States that ranks hold in parts: parts of rank 0's, the whole from them, and learners that need wholes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Checkpointer, type StateWriters } from '../../../src/checkpoints/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import { Adafactor, Adam, AdamW, Learner } from '../../../src/learners/index.js';
import { gpt2Lm, LanguageModel } from '../../../src/models/index.js';
import { hear, nextTurn } from '../../../src/programs/ranks/agreement.js';
import { SplitState } from '../../../src/programs/ranks/splitState.js';
import {
  heldByEngine,
  initialize,
  outlineOf,
  type TrainMemory,
  trainStateOf,
} from '../../../src/programs/taskState.js';
import type { JobOptions, JobRanks } from '../../../src/runs/index.js';
import { cut, Mesh, SingleTask, Train } from '../../../src/tasks/index.js';
import { temporaryDirectory } from '../../command.js';
import { ranksInProcess } from './ranksInProcess.js';

const LAYERS = 'lm/transformer/x_layers_0';
const weightSplitDimsMapping = {
  '.*/ffn_layer1/linear/w': ['data', 'mdl'],
  '.*/softmax/w': [['data', 'mdl'], null],
  '.*/layer_norm/scale': ['mdl'],
};
const grid = (...iciMeshShape: number[]) => build(Mesh.config({ iciMeshShape, weightSplitDimsMapping }));
const taskOf = (learner: Partial<Config<Learner>> = {}): SingleTask => {
  const lmTpl = gpt2Lm({ vocabSize: 64, modelDims: 16, numLayers: 1, numHeads: 2, maxSeqLength: 16 });
  const optimizer = AdamW.config({ learningRate: 1e-2, emaDecay: 0.5 });
  return build(
    SingleTask.config({
      model: LanguageModel.config({ lmTpl }),
      train: Train.config({ learner: Learner.config({ optimizer, ...learner }) }),
    }),
  );
};

/** Rank 0's state, with other numbers in all elements of variables and slots, and the parts of all ranks. */
async function split(ranks: readonly JobRanks[], mesh: Mesh, debug?: JobOptions['debug']) {
  const task = taskOf();
  const whole = heldByEngine(trainStateOf(task));
  const arrays = [whole.params, ...Object.values(whole.slots)];
  for (const [i, array] of arrays.entries()) for (let j = 0; j < array.length; j++) array[j] = i * 10_000 + j;
  const states = await Promise.all(
    ranks.map((each, rank) =>
      SplitState.of({ ranks: each, mesh, debug }, task, rank === 0 ? whole : undefined),
    ),
  );
  await Promise.all(states.map((state) => state!.fill({})));
  return { whole, arrays, states: states.map((state) => state!) };
}

test('each rank has its part of every variable and slot, and rank 0 the whole of changed parts', async () => {
  const told: string[] = [];
  const ranks = ranksInProcess(4, (name) => told.push(name));
  const { whole, states } = await split(ranks, grid(1, 2, 2));
  const held = (state: TrainMemory, path: string) => state.views[path]![0];
  const { offset } = whole.layout.entries.find(({ name }) => name.endsWith('ffn_layer1/linear/w'))!;
  // [16, 64] in blocks of [8, 32].
  expect(states.map(({ parts }) => held(parts, `${LAYERS}/ff_layer/ffn_layer1/linear/w`))).toEqual(
    [0, 32, 8 * 64, 8 * 64 + 32].map((at) => offset + at),
  );
  const before = whole.params.slice();
  const { memory } = whole;
  await memory!.toHost();
  expect(told).toEqual([]);
  await Promise.all(
    states.map(({ change, parts }, i) =>
      change.call(states[i], async () => {
        for (const array of [parts.params, ...Object.values(parts.slots)])
          for (let j = 0; j < array.length; j++) array[j]! += 0.5;
      }),
    ),
  );
  await Promise.all([
    memory!.toHost(),
    ...states.slice(1).map(async (state, i) => {
      expect(await nextTurn(ranks[i + 1]!)).toBe('gather');
      await state.take('gather');
    }),
  ]);
  for (const { offset: at, size } of whole.layout.entries)
    expect(whole.params.slice(at, at + size)).toEqual(before.slice(at, at + size).map((x) => x + 0.5));
  const { entries } = whole.slotLayouts.m!;
  for (const { offset: at, size } of entries) expect(whole.slots.m![at + size - 1]! % 1).toBe(0.5);
});

test.each([
  ['nan', 0.25],
  [undefined, 0],
] as const)('with --debug=%s, gradients of the whole are %f', async (debug, expected) => {
  const ranks = ranksInProcess(2);
  const { whole, states } = await split(ranks, grid(1, 1, 2), debug);
  await Promise.all(
    states.map((state) =>
      state.change(async () => {
        state.parts.grads.fill(0.25);
      }),
    ),
  );
  await Promise.all([whole.memory!.toHost(), nextTurn(ranks[1]!).then(() => states[1]!.take('gather'))]);
  const { offset, size } = whole.changing.entries.at(-1)!;
  expect(whole.grads.slice(offset, offset + size)).toEqual(new Float32Array(size).fill(expected));
});

test('parts of a step that failed are of no step, and stay where they are', async () => {
  const ranks = ranksInProcess(2);
  const { whole, states } = await split(ranks, grid(1, 1, 2));
  const before = whole.params.slice();
  const failing = states[0]!.change(async () => {
    states[0]!.parts.params.fill(0);
    throw new RangeError('no');
  });
  await expect(failing).rejects.toThrow('no');
  await whole.memory!.toHost();
  expect(whole.params).toEqual(before);
});

test('parts are written as the file of one process, and read by another mesh, each rank its chunks', async () => {
  const four = ranksInProcess(4);
  const { whole, states } = await split(four, grid(1, 2, 2));
  whole.step = 6;
  const [one, shared] = [temporaryDirectory(), temporaryDirectory()];
  const save = async (directory: string, writers?: StateWriters) => {
    const checkpointer = new Checkpointer({ directory, experiment: 'tiny' });
    await checkpointer.save(whole, { writers });
    await checkpointer.close();
  };
  await save(one);
  // Rank 0's whole takes no part in it.
  for (const array of [whole.params, ...Object.values(whole.slots)]) array.fill(-1);
  await Promise.all([
    save(shared, states[0]!.checkpoints),
    ...states.slice(1).map(async (state, i) => {
      expect(await nextTurn(four[i + 1]!)).toBe('save');
      await state.take('save');
      await state.checkpoints.close();
    }),
  ]);
  const name = 'checkpoint_00000006';
  const bytesIn = (directory: string) => readFileSync(join(directory, name, 'state.safetensors'));
  expect(Buffer.compare(bytesIn(shared), bytesIn(one))).toBe(0);

  const two = ranksInProcess(2);
  for (const directory of [shared, one]) {
    const others = await split(two, grid(1, 1, 2));
    const expected = others.states.map(({ parts }) => parts.params.slice());
    for (const { parts } of others.states) parts.params.fill(-1);
    others.whole.params.fill(-1);
    await Promise.all([
      others.states[0]!.read(join(directory, name)),
      hear<{ directory: string }>(two[1]!).then((told) => others.states[1]!.checkpoints.read(told.directory)),
    ]);
    for (const state of others.states)
      state.source = { from: 'checkpoint', unfrozen: [], slotsAdded: ['ema'] };
    await Promise.all(others.states.map((state) => state.fill({})));
    for (const [rank, { parts }] of others.states.entries())
      for (const { name: path, offset, size } of parts.layout.entries) {
        const at = parts.params.subarray(offset, offset + size);
        expect(at, path).toEqual(expected[rank]!.subarray(offset, offset + size));
        // A slot that the checkpoint is said to lack begins anew.
        const { offset: slot } = parts.slotLayouts.ema!.entries.find((entry) => entry.name === path)!;
        expect(parts.slots.ema!.subarray(slot, slot + size)).toEqual(at);
        expect(parts.slots.m![slot]! >= 10_000).toBe(true);
      }
  }
});

test('a checkpoint that one rank cannot read is the error of all', async () => {
  const ranks = ranksInProcess(2);
  const { states } = await split(ranks, grid(1, 1, 2));
  const none = join(temporaryDirectory(), 'checkpoint_00000001');
  const reads = states.map(({ checkpoints }, rank) =>
    checkpoints.read(rank === 0 ? none : join(none, 'elsewhere')),
  );
  for (const read of reads) await expect(read).rejects.toThrow(`${none}: the file is missing`);
});

test('ranks draw the initial values of their parts, those of one process', async () => {
  const ranks = ranksInProcess(4);
  const { states } = await split(ranks, grid(1, 2, 2));
  const task = taskOf();
  const one = trainStateOf(task);
  await initialize({}, task, one);
  for (const state of states) state.source = { from: 'seed' };
  await Promise.all(states.map((state) => state.fill({})));
  for (const { path, size } of await squaresOf(states, ranks, one)) expect(size, path).toBeGreaterThan(0);
  for (const state of states)
    for (const shard of state.shards) {
      const part = new Float32Array(state.parts.views[shard.path]!.length);
      cut(one.views[shard.path] as Float32Array, shard, part);
      expect(state.parts.views[shard.path]).toEqual(part);
    }
});

/** Sums of squares over parts, checked against those of the whole. */
async function squaresOf(states: readonly SplitState[], ranks: readonly JobRanks[], one: TrainMemory) {
  for (const state of states)
    for (const [i, value] of state.parts.params.entries()) state.parts.grads[i] = 2 * value;
  const [squares] = await Promise.all([
    states[0]!.squares(),
    ...states.slice(1).map(async (state, i) => {
      expect(await nextTurn(ranks[i + 1]!)).toBe('norms');
      await state.take('norms');
    }),
  ]);
  return [...squares].map(([path, { size, params, grads }]) => {
    const values = one.views[path] as Float32Array;
    expect(size).toBe(values.length);
    expect(params, path).toBeCloseTo(
      values.reduce((sum, x) => sum + x * x, 0),
      3,
    );
    expect(grads, path).toBeCloseTo(4 * params, 3);
    return { path, size };
  });
}

test('a state without parts is none, unless ranks have the same rows', async () => {
  const [ranks] = ranksInProcess(1);
  const of = (...sizes: number[]) =>
    SplitState.of(
      {
        ranks: { ...ranks!, count: sizes.reduce((a, b) => a * b) },
        mesh: build(Mesh.config({ iciMeshShape: sizes })),
      },
      taskOf(),
    );
  expect(await SplitState.of({}, taskOf())).toBeUndefined();
  expect(await of(1, 2, 1)).toBeUndefined();
  expect(await of(1, 1, 2)).toBeDefined();
  expect(outlineOf(taskOf()).params.length).toBe(0);
});

test.each([
  [Adam.config({ learningRate: 1e-2, lazyUpdate: true }), 'Adam looks at whole rows, as it is lazy'],
  [
    Adafactor.config({ learningRate: 1e-2, ewcRegularizerWeight: 1 }),
    'Adafactor updates variables as wholes, and ewcRegularizerWeight draws parts back',
  ],
])('learners that cannot update parts are refused: %#', async (optimizer, reason) => {
  const [ranks] = ranksInProcess(1);
  const made = SplitState.of(
    { ranks: { ...ranks!, count: 2 }, mesh: grid(1, 1, 2) },
    taskOf({ optimizer: optimizer as never }),
  );
  await expect(made).rejects.toThrow(
    `Learner: ranks hold parts of '${LAYERS}/layer_norm/scale', and ${reason}: leave it whole in ` +
      'task.mesh.weightSplitDimsMapping, or take an optimizer of elements, such as AdamW.',
  );
});
