/** @file Published weights: the logits of transformers, every form of files and models, and errors with file and tensor. */
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { SafetensorsFile } from '../../src/checkpoints/index.js';
import { FeedForward, SharedEmbeddingSoftmax, StackedTransformerRepeated } from '../../src/layers/index.js';
import { gpt2Lm, pretrainedLm, publishedFamilies } from '../../src/models/index.js';
import { type NamedTensor, writeSafetensors } from '../checkpoints/writeSafetensors.js';
import { temporaryDirectory } from '../command.js';
import { loaded, logitsOf } from './loadedModel.js';

const published = join(import.meta.dirname, '../fixtures/published');
const recorded = new SafetensorsFile(join(published, 'logits.safetensors'));
const ids: number[] = JSON.parse(recorded.layout.metadata.ids!);

function expectRecorded(actual: ArrayLike<number>, name: string): void {
  const expected = recorded.read(name) as Float32Array;
  expect(actual.length).toBe(expected.length);
  const errors = Array.from(expected, (value, i) => Math.abs(value - actual[i]!));
  expect(Math.max(...errors)).toBeLessThan(1e-5);
}

test.each(['gpt2', 'gpt2Half', 'llama', 'llamaBfloat16'])('%s has the logits of transformers', (name) => {
  const folder = join(published, name);
  const model = loaded(pretrainedLm(folder), folder);
  expect(model.lines).toEqual([
    expect.stringMatching(new RegExp(`^Initial values of (\\d+) of \\1 variables come from ${folder}\\.$`)),
  ]);
  expectRecorded(logitsOf(model, ids), name);
});

/** A copy of a model's folder that may be changed. */
function copied(name: string): string {
  const folder = join(temporaryDirectory(), name);
  cpSync(join(published, name), folder, { recursive: true });
  return folder;
}

/** Writes the tensors of a folder's only file anew. */
function rewrite(
  folder: string,
  change: (tensor: NamedTensor) => NamedTensor | readonly NamedTensor[],
): void {
  const path = join(folder, 'model.safetensors');
  const file = new SafetensorsFile(path);
  const tensors = file.layout.tensors.flatMap((place) => change({ ...place, data: file.read(place.name) }));
  file.close();
  rmSync(path);
  writeSafetensors(path, tensors);
}

const f32 = (name: string, shape: number[]): NamedTensor => ({
  ...{ name, dtype: 'F32', shape },
  data: new Float32Array(shape.reduce((a, b) => a * b, 1)),
});

test('names without a prefix, masks that are stored, and a copy of the tied table', () => {
  const folder = copied('gpt2');
  rewrite(folder, (tensor) => {
    const name = tensor.name.replace(/^transformer\./, '');
    const plain = { ...tensor, name };
    if (name === 'wte.weight') return [plain, { ...tensor, name: 'lm_head.weight' }];
    if (name !== 'h.1.ln_1.weight') return plain;
    return [plain, f32('h.1.attn.bias', [1, 1, 24, 24]), f32('h.1.attn.masked_bias', [])];
  });
  expectRecorded(logitsOf(loaded(pretrainedLm(folder), folder), ids), 'gpt2');
  // A head of its own is another network.
  rewrite(folder, (tensor) => (tensor.name === 'lm_head.weight' ? f32('lm_head.weight', [264, 16]) : tensor));
  expect(() => loaded(pretrainedLm(folder), folder)).toThrow(
    `the model can't start from ${folder}:\n  'lm_head.weight' [264, 16] of the checkpoint is in no variable of the model.\n`,
  );
});

test('other layouts of the same network: fused projections, tables for embedding and softmax, repeated layers', () => {
  const folder = join(published, 'gpt2');
  const fused = pretrainedLm(folder);
  fused.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl.combineQkv = true;
  fused.softmaxTpl = SharedEmbeddingSoftmax.config({
    feedForwardTpl: FeedForward.config({ hasBias: false }),
  });
  const separate = loaded(fused, folder);
  expect(separate.state.views['lm/transformer/x_layers_0/self_attention/combined_qkv/w']).toHaveLength(768);
  expectRecorded(logitsOf(separate, ids), 'gpt2');

  const repeated = pretrainedLm(folder);
  const { hiddenDims, numHeads, transformerLayerParamsTpl } = repeated.stackedTransformerTpl;
  repeated.stackedTransformerTpl = StackedTransformerRepeated.config({
    ...{ numLayers: 1, xTimes: 2, hiddenDims, numHeads, transformerLayerParamsTpl },
  });
  const stacked = loaded(repeated, folder);
  expect(stacked.lines).toEqual([`Initial values of 20 of 20 variables come from ${folder}.`]);
  expectRecorded(logitsOf(stacked, ids), 'gpt2');
});

/** The message of what is thrown. */
function messageOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('nothing was thrown');
}

const tiny = () => pretrainedLm(join(published, 'gpt2Half'));

test('one file, a file of an index and a folder are the same weights', () => {
  const whole = loaded(pretrainedLm(join(published, 'gpt2')), join(published, 'gpt2', 'model.safetensors'));
  expectRecorded(logitsOf(whole, ids), 'gpt2');
  const index = join(published, 'gpt2Half', 'model.safetensors.index.json');
  expect(loaded(tiny(), index).state.params).toEqual(
    loaded(tiny(), join(published, 'gpt2Half')).state.params,
  );
});

test('rules of one’s own come first, with axes; variables and tensors may be left out by name', () => {
  const folder = join(published, 'llama');
  const plain = loaded(pretrainedLm(folder), folder).state.views;
  const { views, layout } = loaded(pretrainedLm(folder), folder, {
    // The prefix of names is the rules' affair.
    loadRules: [
      ['.*/x_layers_1/ff_layer/ffn_layer1/linear/w', 'layers.0.mlp.down_proj.weight', 'i o -> i o'],
      ['lm/(.*)/x_layers_1/(.*)', 'lm/{}/x_layers_0/{}'],
    ],
    ignoreRules: ['lm/softmax/.*'],
    ignoreTensors: ['model\\.layers\\.1\\..*'],
  }).state;
  const at = (layer: number, name: string) => `lm/transformer/x_layers_${layer}/${name}`;
  expect(views[at(1, 'layer_norm/scale')]).toEqual(plain[at(0, 'layer_norm/scale')]);
  expect(views[at(1, 'ff_layer/ffn_layer1/linear/w')]).toEqual(
    transposed(plain[at(0, 'ff_layer/ffn_layer2/linear/w')] as Float32Array, 24),
  );
  const unset = layout.entries.filter(({ name }) => views[name]!.some(Number.isNaN));
  expect(unset.map(({ name }) => name)).toEqual(['lm/softmax/logits_ffn/linear/w']);
});

/** [rows, columns] to [columns, rows]. */
const transposed = (matrix: Float32Array, rows: number): Float32Array => {
  const columns = matrix.length / rows;
  return matrix.map((_, i) => matrix[(i % rows) * columns + Math.floor(i / rows)]!);
};

test('a network that is not the published one is refused with every variable and tensor', () => {
  const folder = join(published, 'gpt2');
  const lm = gpt2Lm({
    vocabSize: 264,
    modelDims: 16,
    numLayers: 1,
    numHeads: 2,
    maxSeqLength: 20,
    useBias: true,
  });
  const problems = messageOf(() => loaded(lm, folder)).split('\n');
  expect(problems).toEqual([
    `task.train.initFromCheckpoint[0]: the model can't start from ${folder}:`,
    "  lm/position_emb/emb_var is [20, 16], and 'transformer.wpe.weight' in the checkpoint [24, 16].",
    ...recordedTensors('gpt2')
      .filter(([name]) => name.startsWith('transformer.h.1.'))
      .map(([name, shape]) => `  '${name}' [${shape}] of the checkpoint is in no variable of the model.`),
    'Map paths by loadRules, and name variables that shall keep their own initial values in ignoreRules, tensors that may ' +
      'be left over in ignoreTensors.',
  ]);
  expect(messageOf(() => loaded(lm, folder, { nameRules: 'llama' }))).toContain(
    '\n  lm/final_ln/bias: no published weight has its place by the name rules.\n',
  );
  expect(messageOf(() => loaded(lm, folder, { nameRules: 'none' }))).toContain(
    "\n  lm/softmax/w: the checkpoint has no 'lm/softmax/w'.",
  );
  expect(messageOf(() => loaded(lm, folder, { step: 3 }))).toBe(
    `task.train.initFromCheckpoint[0].step: ${folder} has weights, and no steps to choose from.`,
  );
  expect(messageOf(() => loaded(lm, folder, { averageLast: 2 }))).toBe(
    'task.train.initFromCheckpoint[0].averageLast: expected the directory of a run, whose newest checkpoints count, and no step.',
  );
});

/** Names and shapes in a folder's only file. */
function recordedTensors(name: string): [string, string][] {
  const file = new SafetensorsFile(join(published, name, 'model.safetensors'));
  file.close();
  return file.layout.tensors.map((place) => [place.name, place.shape.join(', ')]);
}

test('shards that are missing, cut or elsewhere, and files of other formats, are errors that name them', () => {
  const folder = copied('gpt2Half');
  const index = join(folder, 'model.safetensors.index.json');
  const shard = join(folder, 'model-00002-of-00003.safetensors');
  const text = readFileSync(index, 'utf8');
  const open = () => messageOf(() => loaded(tiny(), folder));
  writeFileSync(index, text.replaceAll('model-00002', '../model-00002'));
  expect(open()).toMatch(
    /index\.json: tensor '.*': expected the name of a safetensors file beside it, found '\.\.\/model-00002-of-00003\.safetensors'$/,
  );
  writeFileSync(index, text.replace('"transformer.h.1.ln_1.bias"', '"transformer.h.1.ln_3.bias"'));
  expect(open()).toMatch(
    /safetensors: it has no tensor 'transformer\.h\.1\.ln_3\.bias', which the index places there$/,
  );
  for (const damaged of ['{}', 'null', '[1]', text.slice(0, 100)]) {
    writeFileSync(index, damaged);
    expect(open()).toBe(`${index}: it is not an index of shards: expected {"weight_map": {TENSOR: FILE, …}}`);
  }
  writeFileSync(index, '{"weight_map": {}}');
  expect(open()).toBe(`${index}: its weight_map is empty`);
  writeFileSync(index, text);
  const bytes = readFileSync(shard);
  writeFileSync(shard, bytes.subarray(0, bytes.length - 1));
  const ofShard = (problem: string) => `${index}: its shards are not whole:\n  ${shard}: ${problem}`;
  expect(open()).toBe(
    ofShard(`truncated in the tensors: expected ${bytes.length} bytes, found ${bytes.length - 1}`),
  );
  rmSync(shard);
  expect(open()).toBe(ofShard(`cannot be read: ENOENT: no such file or directory, open '${shard}'`));
  rmSync(index);
  expect(open()).toBe(
    `${folder}: it has model-00001-of-00003.safetensors, model-00003-of-00003.safetensors and no index that joins them; ` +
      'give the path of one',
  );
  const pickle = join(temporaryDirectory(), 'pickled');
  mkdirSync(pickle);
  writeFileSync(join(pickle, 'pytorch_model.bin'), '');
  const problem =
    'pytorch_model.bin: it is not in safetensors format; convert it, as by save_pretrained(folder, safe_serialization=True) of ' +
    'transformers';
  expect(messageOf(() => loaded(tiny(), pickle))).toBe(join(pickle, problem));
  expect(messageOf(() => loaded(tiny(), join(pickle, 'pytorch_model.bin')))).toBe(join(pickle, problem));
});

test('a config.json of another network is refused by its settings', () => {
  const folder = copied('llama');
  const file = join(folder, 'config.json');
  const settings = JSON.parse(readFileSync(file, 'utf8'));
  const refused = (changes: object) => {
    writeFileSync(file, JSON.stringify({ ...settings, ...changes }));
    return messageOf(() => pretrainedLm(folder));
  };
  expect(refused({ hidden_act: 'relu', rope_parameters: { rope_type: 'longrope' } })).toBe(
    `${file}: the network has no counterpart here, or the file is damaged:\n` +
      `  hidden_act is "relu": Invalid option: expected one of "silu"|"swish"\n` +
      `  rope_parameters.rope_type is "longrope": Invalid option: expected one of "default"|"linear"|"llama3"|"yarn"`,
  );
  expect(refused({ model_type: 'lama' })).toBe(
    `${file}: models of model_type 'lama' are not known. Did you mean 'llama'? Known are ${publishedFamilies.join(', ')}.`,
  );
  const rules = messageOf(() => loaded(tiny(), folder));
  expect(rules).toMatch(
    /^.*Known are gpt2, llama, .*\. Set nameRules to one of them, or map all names by loadRules\.$/,
  );
  writeFileSync(file, '{');
  expect(messageOf(() => pretrainedLm(folder))).toMatch(new RegExp(`^${file}: .*JSON`));
  renameSync(file, `${file}.txt`);
  expect(messageOf(() => pretrainedLm(folder))).toBe(
    `${file} is missing: expected the folder of a published model.`,
  );
});

test('settings as earlier versions of transformers write them', () => {
  const rotary = (changes: object) => {
    const folder = copied('llama');
    const file = join(folder, 'config.json');
    const { rope_parameters: _, ...settings } = JSON.parse(readFileSync(file, 'utf8'));
    writeFileSync(file, JSON.stringify({ ...settings, ...changes }));
    const { trAttenTpl } = pretrainedLm(folder).stackedTransformerTpl.transformerLayerParamsTpl;
    return trAttenTpl.rotaryPositionEmbTpl;
  };
  expect(rotary({})).toMatchObject({ minTimescale: 1, maxTimescale: 10_000 });
  expect(rotary({ rope_theta: 5e5, rope_scaling: null })).toMatchObject({ maxTimescale: 5e5 });
  expect(rotary({ rope_scaling: { type: 'linear', factor: 4 } })).toMatchObject({
    ...{ minTimescale: 1, maxTimescale: 10_000, scalingTpl: { factor: 4 } },
  });
  expect(rotary({ rope_theta: 5e5, rope_scaling: { rope_type: 'llama3', factor: 32 } })).toMatchObject({
    maxTimescale: 5e5,
    scalingTpl: { factor: 32, lowFrequencyFactor: 1, highFrequencyFactor: 4, originalMaxSeqLength: 8192 },
  });
  const yarn = { rope_type: 'yarn', factor: 4, mscale: 1, mscale_all_dim: 0.5 };
  expect(rotary({ max_position_embeddings: 512, rope_scaling: yarn })).toMatchObject({
    scalingTpl: {
      factor: 4,
      originalMaxSeqLength: 512,
      betaFast: 32,
      betaSlow: 1,
      mscale: 1,
      mscaleAllDim: 0.5,
    },
  });
});

test('settings that shapes do not show are compared with config.json', () => {
  const folder = join(published, 'gpt2');
  const lm = gpt2Lm({
    ...{ vocabSize: 264, modelDims: 16, numLayers: 2, numHeads: 2, maxSeqLength: 24, useBias: true },
    normEpsilon: 1e-6,
  });
  lm.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl.attenLogitCap = 50;
  const layer = 'stackedTransformerTpl.transformerLayerParamsTpl';
  const epsilon = (norm: string) => `${norm}.epsilon is 0.000001, there 0.00001`;
  expect(loaded(lm, folder).lines[1]).toBe(
    `The network is not that of ${folder}/config.json: ${epsilon('finalLnTpl')}; ${epsilon(`${layer}.lnTpl`)}; ` +
      `${layer}.trAttenTpl.attenLogitCap is 50, there 0; ${epsilon(`${layer}.trFflayerTpl.lnTpl`)}; ` +
      `${layer}.trFflayerTpl.activationTpl.approximate is false, there true.`,
  );
  const rotated = pretrainedLm(join(published, 'llama'));
  const { trAttenTpl } = rotated.stackedTransformerTpl.transformerLayerParamsTpl;
  trAttenTpl.rotaryPositionEmbTpl.maxTimescale = 10_000;
  expect(loaded(rotated, join(published, 'llama')).lines[1]).toMatch(
    /rotaryPositionEmbTpl\.maxTimescale is 10000, there 50000\.$/,
  );
});
