/** @file Whether code goes on from a run, by the descriptions of its checkpoint and data alone. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { build, type Config } from '../../src/hparams/index.js';
import { type BaseInput, TextInput } from '../../src/inputs/index.js';
import { Adam, AdamW, Lion } from '../../src/learners/index.js';
import type { LanguageModel } from '../../src/models/index.js';
import { loadable, resume, type SavedRun, savedRun, type Trainable } from '../../src/programs/resumption.js';
import { temporaryDirectory } from '../command.js';
import { tinyOptions } from './tinyJob.js';

const labels = { checkpoint: 'a checkpoint', data: 'data/train.json' };
const saved = (experiment: Trainable): Promise<SavedRun> => savedRun(experiment, (error) => String(error));
const transformer = ({ task }: Trainable) =>
  (task.model as Config<LanguageModel>).lmTpl.stackedTransformerTpl;

function edited(edit: (experiment: Trainable) => void): Trainable {
  const experiment = tinyOptions();
  edit(experiment);
  return experiment;
}

/** What a run of `tinyOptions` says when an edited experiment goes on from it. */
async function goingOn(edit: (experiment: Trainable) => void, run = saved(tinyOptions()), ofAny = false) {
  const { differences } = await resume(edited(edit), await run, labels, ofAny);
  return differences.map(({ text }) => text);
}

test('the same experiment goes on without a word; its name must be the same, but for --checkpoint', async () => {
  expect(await goingOn(() => {})).toEqual([]);
  const rename = (experiment: Trainable) => Object.assign(experiment, { name: 'other' });
  await expect(goingOn(rename)).rejects.toThrow(
    "a checkpoint: written by experiment 'tiny', not by 'other'; use another --job_log_dir for this one",
  );
  expect(await goingOn(rename, saved(tinyOptions()), true)).toEqual([]);
});

test('an average that begins or ends is told', async () => {
  const average = (experiment: Trainable) => {
    experiment.task.train.learner.optimizer = Adam.config({ learningRate: 0.1, emaDecay: 0.9 });
  };
  expect(await goingOn(average)).toEqual([
    'The moving average of the parameters begins at this step: emaDecay has changed.',
  ]);
  expect(await goingOn(() => {}, saved(edited(average)))).toEqual([
    'The moving average of the parameters ends at this step: emaDecay has changed.',
  ]);
});

test('an optimizer with the same slots goes on, one with others does not', async () => {
  const use = (optimizer: Trainable['task']['train']['learner']['optimizer']) => (experiment: Trainable) => {
    experiment.task.train.learner.optimizer = optimizer;
  };
  expect(await goingOn(use(AdamW.config({ learningRate: 0.1 })))).toEqual([]);
  await expect(goingOn(use(Lion.config({ learningRate: 0.1 })))).rejects.toThrow('optimizer slot');
});

test('variables that were frozen are named', async () => {
  const frozen = edited(({ task }) => {
    task.train.learner.bpropVariableExclusion = ['.*position_emb.*'];
  });
  expect(await goingOn(() => {}, saved(frozen))).toEqual([
    expect.stringMatching(/^No longer frozen, with the optimizer's state of a first step: .*position_emb/),
  ]);
});

test('variables of another shape are refused; initFromCheckpoint would load the others', async () => {
  const wide = edited((experiment) => {
    transformer(experiment).numHeads = 4;
    transformer(experiment).numLayers = 2;
  });
  const run = await saved(tinyOptions());
  await expect(resume(wide, run, labels)).rejects.toThrow(/^a checkpoint: not compatible with this model/);
  const { loads, keeps } = loadable(build(wide.task), run.description);
  expect(loads).toContain('lm/position_emb/emb_var');
  expect(
    keeps.filter((name) => name.includes('x_layers_0')).map((name) => name.split('/').slice(-2)[0]),
  ).toEqual(expect.arrayContaining(['query', 'key', 'value', 'post']));
  expect(keeps.filter((name) => name.includes('x_layers_1'))).not.toEqual([]);
  expect(new Set([...loads, ...keeps]).size).toBe(build(wide.task).layout().entries.length);
});

/** A run on text. */
function onText(file: string, values: object = {}): Trainable {
  const train = { name: 'train', isTraining: true, files: [file], batchSize: 2, seqLen: 8, ...values };
  return edited((experiment) => {
    Object.assign(experiment, { datasets: [TextInput.config(train as never)] as Config<BaseInput>[] });
  });
}

test("the data's saved state is restored by the input that takes it", async () => {
  const file = join(temporaryDirectory(), 'text.txt');
  writeFileSync(file, 'a calm grey sea at night. '.repeat(40));
  const run = await saved(onText(file, { inputRandomSeed: 1 }));
  const { differences } = await resume(onText(file, { inputRandomSeed: 1 }), run, labels);
  expect(differences).toEqual([]);
  await expect(resume(onText(file, { inputRandomSeed: 5 }), run, labels)).rejects.toThrow('seed is 5, was 1');
  writeFileSync(file, 'a wild grey sea at night. '.repeat(40));
  await expect(resume(onText(file, { inputRandomSeed: 1 }), run, labels)).rejects.toThrow(file);
});

test('a run whose data is not there is described without it', async () => {
  const file = join(temporaryDirectory(), 'text.txt');
  writeFileSync(file, 'a calm grey sea at night. '.repeat(40));
  const experiment = onText(file);
  rmSync(file);
  const run = await saved(experiment);
  expect(run.data).toBeUndefined();
  expect(run.noData).toContain(file);
  const { differences } = await resume(experiment, run, labels);
  expect(differences).toEqual([]);
});
