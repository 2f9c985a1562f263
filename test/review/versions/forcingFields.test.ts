/** @file Fields that keep a run from going on, by attempts to go on with the values that they had. */
import { expect, test } from 'vitest';
import { type Config, deepCopy, print } from '../../../src/hparams/index.js';
import { Adam, Lion } from '../../../src/learners/index.js';
import type { LanguageModel } from '../../../src/models/index.js';
import { resume, type SavedRun, savedRun } from '../../../src/programs/resumption.js';
import { forcingFields } from '../../../src/review/versions/forcingFields.js';
import { type Configs, readConfigs, writeConfigs } from '../../../src/review/versions/writtenConfigs.js';
import { longTest } from '../../longTest.js';
import { tinyOptions, tokens } from '../../programs/tinyJob.js';

const labels = { checkpoint: 'a checkpoint', data: 'data/train.json' };
const saved = (configs: Configs): Promise<SavedRun> =>
  savedRun({ ...configs, name: 'tiny' }, (error) => String(error));
const present: Configs = tinyOptions();

/** The configs of now with an edit. */
function edited(edit: (configs: Configs) => void): Configs {
  const configs = readConfigs(writeConfigs(present));
  edit(configs);
  return configs;
}

const transformer = ({ task }: Configs) => (task.model as Config<LanguageModel>).lmTpl.stackedTransformerTpl;

/** Fields that force a new run where the configs were those of `document`. */
async function forcing(document: string, name = 'tiny'): Promise<string[]> {
  const run = await saved(readConfigs(document));
  const attempt = (configs: Configs) => resume({ ...configs, name }, run, labels);
  await expect(attempt(present)).rejects.toThrow();
  return forcingFields(document, present, attempt);
}

longTest('of several changed fields, only the one to blame is named', async () => {
  const before = edited((configs) => {
    transformer(configs).numHeads = 4;
    configs.task.train.numTrainSteps = 40;
    configs.task.train.saveIntervalSteps = 7;
    configs.task.train.learner.optimizer.clipGradientNormToValue = 0.5;
  });
  expect(await forcing(writeConfigs(before))).toEqual(['task.model.lmTpl.stackedTransformerTpl.numHeads']);
});

test('fields that refuse each by itself are all named', async () => {
  const before = edited((configs) => {
    transformer(configs).numLayers = 2;
    configs.task.train.numTrainSteps = 40;
    configs.task.train.learner.optimizer = Lion.config({ learningRate: 0.1 });
  });
  expect((await forcing(writeConfigs(before))).sort()).toEqual([
    'task.model.lmTpl.stackedTransformerTpl.numLayers',
    'task.train.learner.optimizer',
  ]);
});

test('where the name is refused, no field is named', async () => {
  const before = edited(({ task }) => void (task.train.numTrainSteps = 40));
  expect(await forcing(writeConfigs(before), 'other')).toEqual([]);
});

test('a default that changed is named', async () => {
  const written = JSON.parse(writeConfigs(present)) as { defaults: Record<string, Record<string, string>> };
  const [cls] = Object.keys(written.defaults).filter((name) => 'muDtype' in written.defaults[name]!);
  const text = written.defaults[cls!]!.muDtype!;
  expect(text).toContain('float32');
  written.defaults[cls!]!.muDtype = text.replace('float32', 'bfloat16');
  expect(await forcing(JSON.stringify(written))).toEqual(['task.train.learner.optimizer.muDtype']);
});

test('two fields that only refuse together', async () => {
  const before = edited((configs) => {
    configs.task.train.numTrainSteps = 40;
    configs.task.train.saveIntervalSteps = 7;
    configs.task.train.learner.optimizer = Adam.config({ learningRate: 0.5 });
  });
  const attempt = async ({ task }: Configs): Promise<void> => {
    if (task.train.numTrainSteps !== 40 || task.train.saveIntervalSteps !== 7) throw new Error('Refused.');
  };
  expect((await forcingFields(writeConfigs(before), present, attempt)).sort()).toEqual([
    'task.train.numTrainSteps',
    'task.train.saveIntervalSteps',
  ]);
});

test('a list of another length is one field, and a document of unknown classes names none', async () => {
  const before = edited((configs) => {
    (configs.datasets as unknown[]).push(tokens('validation'));
    configs.task.train.numTrainSteps = 40;
  });
  const attempt = async ({ datasets }: Configs): Promise<void> => {
    if (datasets.length !== 2) throw new Error('Refused.');
  };
  const document = writeConfigs(before);
  expect(await forcingFields(document, present, attempt)).toEqual(['datasets']);
  const unknown = document.replaceAll('SingleTask', 'TaskOfOld');
  expect(unknown).not.toBe(document);
  expect(await forcingFields(unknown, present, attempt)).toEqual([]);
  expect(await forcingFields(undefined, present, attempt)).toEqual([]);
});

test('the configs that are asked about stay as they are', async () => {
  const [task, before] = [
    deepCopy(present.task),
    edited((configs) => void (transformer(configs).numHeads = 4)),
  ];
  await forcing(writeConfigs(before));
  expect(print(present.task)).toBe(print(task));
});
