/** @file Files about the state that a run begins with: layers as they were built, and where each part of the state is from. */
import { expect, test } from 'vitest';
import { build } from '../../src/hparams/index.js';
import { EMA } from '../../src/learners/index.js';
import { postInitText, provenanceText } from '../../src/programs/stateFiles.js';
import { trainStateOf } from '../../src/programs/taskState.js';
import { tinyOptions } from './tinyJob.js';

const { task: config } = tinyOptions({}, { jobLogDir: 'out', emaDecay: 0.9 });
config.model.fpropDtype = 'bfloat16';
const task = build(config);
const state = trainStateOf(task);

/** Settings by path. */
const read = (text: string) => new Map(text.split('\n').map((line) => line.split(' : ') as [string, string]));

test('post_init_model_params.txt has each layer with what it takes from those above, and each variable', () => {
  const settings = read(postInitText(task));
  const block = 'lm/transformer/x_layers_0';
  expect(settings.get('model')).toBe('class LanguageModel');
  expect(settings.get(block)).toBe('class Transformer');
  // Neither of the two is a value of the layer's own config.
  expect(settings.get(`${block}/ff_layer/layer_norm.fpropDtype`)).toBe("'bfloat16'");
  expect(settings.get(`${block}/ff_layer/layer_norm.skipLpRegularization`)).toBe('false');
  expect(settings.get(`${block}/ff_layer.hiddenDims`)).toBe('32');
  // Templates are the layers below, where there are any.
  const templates = [...settings].filter(([path]) => path.endsWith('Tpl'));
  expect(new Set(templates.map(([, value]) => value))).toEqual(new Set(['null']));
  expect(settings.get(`${block}/ff_layer/ffn_layer1/linear/w`)).toMatch(
    /^float32 \[8, 32\] Gaussian \{ scale: 0\.02/,
  );
  const names = task.variables.map(({ path }) => path);
  expect([...settings.keys()].slice(-names.length)).toEqual(names);
});

test('train_state_provenance.txt names the source of the step, each variable and each slot', () => {
  const begun = read(provenanceText(state, undefined, undefined));
  expect(begun.get('step')).toBe('random_init');
  expect(new Set(begun.values())).toEqual(new Set(['random_init', undefined]));
  const paths = state.layout.entries.map(({ name }) => name);
  const slots = Object.keys(state.slotLayouts);
  expect([...begun.keys()].filter((key) => key.startsWith('mdl_vars/'))).toEqual(
    paths.map((path) => `mdl_vars/${path}`),
  );
  expect(slots).toContain(EMA);
  for (const slot of slots) expect(begun.get(`opt_states/${slot}/${paths[0]}`)).toBe('random_init');

  // Fine-tuning reads variables alone, and not all of them.
  const given = { sourceOf: (name: string) => (name === paths[0] ? 'base/checkpoint_1: x/w' : undefined) };
  const tuned = read(provenanceText(state, undefined, given));
  expect(tuned.get(`mdl_vars/${paths[0]}`)).toBe('base/checkpoint_1: x/w');
  expect(
    new Set([...tuned].filter(([key]) => key !== `mdl_vars/${paths[0]}`).map(([, value]) => value)),
  ).toEqual(new Set(['random_init', undefined]));

  // Another run gives all but the slots that it has not.
  const restored = { path: 'other/checkpoint_4', unfrozen: [paths[0]!], average: 'begins' as const };
  const branched = read(provenanceText(state, restored, undefined));
  expect([branched.get('step'), branched.get(`mdl_vars/${paths[0]}`)]).toEqual([
    restored.path,
    restored.path,
  ]);
  for (const slot of slots) {
    expect(branched.get(`opt_states/${slot}/${paths[0]}`)).toBe('random_init');
    expect(branched.get(`opt_states/${slot}/${paths[1]}`)).toBe(slot === EMA ? 'random_init' : restored.path);
  }
});
