/** @file Imports of published models: the checkpoint's bits, what loads it, and every fault of a folder at once. */
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { encodeSafetensors, readCheckpoint, SafetensorsFile } from '../../../src/checkpoints/index.js';
import { narrow } from '../../../src/compiler/index.js';
import { build, type Config } from '../../../src/hparams/index.js';
import type { PretrainedTokenizer, TextInput } from '../../../src/inputs/index.js';
import { pretrainedLm } from '../../../src/models/index.js';
import { trainStateOf } from '../../../src/programs/taskState.js';
import { type ImportOptions, importPublished, loadRun } from '../../../src/trained/index.js';
import { temporaryDirectory } from '../../command.js';
import { loaded } from '../../programs/loadedModel.js';

const published = join(import.meta.dirname, '../../fixtures/published');

function importing(folder: string, values: Partial<ImportOptions> = {}) {
  const jobLogDir = join(temporaryDirectory(), 'run');
  const done = importPublished({
    ...{ folder, jobLogDir, dtype: 'float32', maxLength: undefined, files: ['*.txt'] },
    ...{ ignoredFields: [], ignoredTensors: [], ...values },
  });
  return { jobLogDir, done };
}

/** A copy of a folder, whose config.json may be changed. */
function copied(name: string, change: (settings: Record<string, unknown>) => void = () => {}): string {
  const folder = join(temporaryDirectory(), name);
  cpSync(join(published, name), folder, { recursive: true });
  const file = join(folder, 'config.json');
  const settings = JSON.parse(readFileSync(file, 'utf8'));
  change(settings);
  writeFileSync(file, JSON.stringify(settings));
  return folder;
}

/** Gives the tokenizer.json of a folder a template that begins texts with a token. */
function startTexts(folder: string): void {
  const file = join(folder, 'tokenizer.json');
  const id = '<|endoftext|>';
  const single = [{ SpecialToken: { id, type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }];
  const template = { single, pair: single, special_tokens: { [id]: { id, ids: [0], tokens: [id] } } };
  const post_processor = { type: 'TemplateProcessing', ...template };
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), post_processor }));
}

const checkpointOf = (jobLogDir: string): string => join(jobLogDir, 'checkpoints/checkpoint_00000000');

/** The parameters of a checkpoint by path. */
function paramsIn(jobLogDir: string): Record<string, ArrayLike<number | bigint>> {
  const file = new SafetensorsFile(join(checkpointOf(jobLogDir), 'state.safetensors'));
  const names = file.layout.tensors.map(({ name }) => name).filter((name) => name.startsWith('params/'));
  return Object.fromEntries(names.map((name) => [name.slice('params/'.length), file.read(name)]));
}

test.each(['gpt2', 'llamaBfloat16', 'families/mixtral'])(
  '%s has the bits of initFromCheckpoint',
  async (name) => {
    const folder = join(published, name);
    const { jobLogDir, done } = importing(folder);
    const { count } = await done;
    const { state } = loaded(pretrainedLm(folder), folder);
    expect(paramsIn(jobLogDir)).toEqual(state.views);
    expect(count).toBe(Object.values(state.views).reduce((sum, { length }) => sum + length, 0));
  },
);

test('bfloat16 is held so, frozen, with the values of its file', async () => {
  const folder = join(published, 'llamaBfloat16');
  const { jobLogDir, done } = importing(folder, { dtype: 'bfloat16' });
  await done;
  const { views } = loaded(pretrainedLm(folder), folder).state;
  const expected = Object.entries(views).map(([name, floats]) => [
    name,
    narrow(floats as Float32Array, 'bfloat16'),
  ]);
  expect(paramsIn(jobLogDir)).toEqual(Object.fromEntries(expected));
});

test('a run of GPT-2 loads with its tokenizer after it moved, and trains from the first step of any optimizer', async () => {
  const folder = copied('gpt2');
  startTexts(folder);
  const { jobLogDir, done } = importing(folder);
  expect((await done).copied).toEqual(['config.json', 'tokenizer.json']);
  const moved = join(temporaryDirectory(), 'moved');
  cpSync(jobLogDir, moved, { recursive: true });
  rmSync(jobLogDir, { recursive: true });
  const run = await loadRun(moved, { engine: 'eager' });
  expect([run.name, run.step, run.maxTokens]).toEqual(['gpt2', 0, 24]);
  const { file } = (run.document.datasets[0] as Config<TextInput>).tokenizer as Config<PretrainedTokenizer>;
  expect(file).toBe(join(moved, 'published/tokenizer.json'));
  expect(run.tokenizer.decode(run.tokenizer.encode('one two'))).toBe('one two');
  // As AutoTokenizer of transformers 5.24 has them; no second one where the prompt has it.
  for (const prompt of ['one two', '<|endoftext|>one two'])
    expect([...run.stream(prompt, { maxTokens: 1 }).promptIds]).toEqual([0, 79, 259, 257, 87, 79]);
  await run.dispose();
  const state = trainStateOf(build(run.document.task));
  const { withoutSlots } = readCheckpoint(checkpointOf(moved), state, { experiment: 'gpt2' });
  expect(withoutSlots).toEqual(state.layout.entries.map(({ name }) => name));
  const again = importPublished({
    ...{ folder: join(published, 'gpt2'), jobLogDir: moved, dtype: 'float32', maxLength: undefined },
    ...{ files: ['*.txt'], ignoredFields: [], ignoredTensors: [] },
  });
  await expect(again).rejects.toThrow(
    `--job_log_dir=${moved}: it has checkpoints of a run. Give another directory, or delete it.`,
  );
});

test('every fault of settings and shards is told before anything is written', async () => {
  const folder = copied('llama', (settings) => {
    Object.assign(settings, { hidden_act: 'relu', attention_multiplier: 0.5 });
    Object.assign(settings.rope_parameters as object, { long_mscale: 1.25 });
  });
  for (const shard of [1, 3]) rmSync(join(folder, `model-0000${shard}-of-00003.safetensors`));
  const { jobLogDir, done } = importing(folder);
  const missing = (shard: number): string => {
    const file = join(folder, `model-0000${shard}-of-00003.safetensors`);
    return `  ${file}: cannot be read: ENOENT: no such file or directory, open '${file}'`;
  };
  await expect(done).rejects.toThrow(
    [
      `${join(folder, 'config.json')}: the network has no counterpart here, or the file is damaged:`,
      '  hidden_act is "relu": Invalid option: expected one of "silu"|"swish"',
      "  rope_parameters.long_mscale is 1.25: the field is not read, and may change the network's numbers",
      "  attention_multiplier is 0.5: the field is not read, and may change the network's numbers",
      `${join(folder, 'model.safetensors.index.json')}: its shards are not whole:`,
      ...[1, 3].map(missing),
    ].join('\n'),
  );
  expect(existsSync(jobLogDir)).toBe(false);
});

test('missing, surplus and misshapen tensors, and a type that is not read, are told at once', async () => {
  const folder = copied('gpt2');
  const file = join(folder, 'model.safetensors');
  const read = new SafetensorsFile(file);
  const tensors = Object.fromEntries(
    read.layout.tensors.map(({ name, shape }) => [
      name,
      { dtype: 'float32' as const, shape, data: read.read(name) as Float32Array },
    ]),
  );
  const { 'transformer.ln_f.bias': bias, ...others } = tensors;
  const positions = { dtype: 'float32', shape: [12, 32], data: new Float32Array(12 * 32) } as const;
  const flags = { dtype: 'bool', shape: [16], data: new Uint8Array(16) } as const;
  writeFileSync(
    file,
    encodeSafetensors({
      ...others,
      'transformer.ln_x.bias': bias!,
      'transformer.wpe.weight': positions,
      'transformer.ln_f.weight': flags,
    }),
  );
  const { jobLogDir, done } = importing(folder);
  await expect(done).rejects.toThrow(
    [
      `${folder}: the weights are not those of its config.json:`,
      "  lm/position_emb/emb_var is [24, 16], and 'transformer.wpe.weight' in the checkpoint [12, 32].",
      "  lm/final_ln/scale: 'transformer.ln_f.weight' of the checkpoint: BOOL is not read; convert it to F32, F16, BF16 or F64.",
      "  lm/final_ln/bias: the checkpoint has no 'ln_f.bias'.",
      "  'transformer.ln_x.bias' [16] of the checkpoint is in no variable of the model.",
    ].join('\n'),
  );
  expect(existsSync(jobLogDir)).toBe(false);
});

test('fields and tensors that are named are passed over', async () => {
  const folder = copied('gpt2', (settings) => Object.assign(settings, { new_field: 3 }));
  const { jobLogDir, done } = importing(folder, { ignoredFields: ['new_field'] });
  await done;
  expect(readdirSync(jobLogDir)).toContain('experiment.json');
});

test('an architecture that is not known names the nearest', async () => {
  const folder = copied('llama', (settings) => Object.assign(settings, { model_type: 'lama' }));
  await expect(importing(folder).done).rejects.toThrow(
    `${join(folder, 'config.json')}: models of model_type 'lama' are not known. Did you mean 'llama'? Known are `,
  );
});
