/** @file Networks of published families against transformers: logits, greedy tokens, loss and gradients (scripts/record_families.py). */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import {
  type LanguageModel,
  networkDifferences,
  type PublishedFamilyName,
  pretrainedLm,
} from '../../../src/models/index.js';
import { temporaryDirectory } from '../../command.js';
import { ints, run, stateOf } from '../../layers/helpers.js';
import { loaded, thetaOf } from '../../programs/loadedModel.js';
import { distance, expectGradients, publishedFamily, recordOf } from './published.js';

const families = [
  'qwen2',
  'qwen3',
  'qwen3_next',
  'mixtral',
  'gemma2',
  'gemma3_text',
  'olmo2',
  'gpt_oss',
  'deepseek_v3',
] satisfies PublishedFamilyName[];
/** Tokens of the prompt; the others of a record are greedy. */
const PROMPT = 7;
/** Tokens of a step of the decode. */
const STEP = 8;

describe.each(families)('%s', (name) => {
  const folder = publishedFamily(name);
  const record = recordOf(folder);
  const ids: number[] = JSON.parse(record.layout.metadata.ids!);
  const whole = loaded(pretrainedLm(folder), folder);
  const model = whole.task.model as LanguageModel;
  const theta = thetaOf(whole);
  const shape = [1, ids.length];

  test('loss and gradients of one step', () => {
    const weights = tf.tensor(
      Float32Array.from(ids, (_, i) => Number(i < ids.length - 1)),
      shape,
    ) as Tensor;
    const paddings = tf.zeros(shape) as Tensor;
    const batch = { ids: ints(ids, shape), labels: ints([...ids.slice(1), 0], shape), weights, paddings };
    expectGradients(model, whole, folder, () => model.fprop(batch)[0].avg_xent![0]);
  });

  test('logits and greedy tokens of a decode', () => {
    const decodeState = stateOf(model.initialDecodeState(1, ids.length));
    const steps: number[] = [];
    for (let at = 0; at < ids.length; at += STEP) {
      const next = ids.slice(at, at + STEP);
      const timeStep = tf.scalar(at, 'int32') as Tensor;
      const step = () => model.extendStep(ints(next, [1, next.length]), { timeStep });
      steps.push(...run(theta, step, { decodeState, doEval: true }).dataSync());
    }
    expect(distance(steps, record.read('logits') as Float32Array)).toBeLessThan(1e-4);
    const best = tf.argMax(tf.tensor(steps, [ids.length, steps.length / ids.length]), 1).dataSync();
    expect([...best.slice(PROMPT - 1, -1)]).toEqual(ids.slice(PROMPT));
  });
});

test('layers of another kind than the published ones are told', () => {
  const folder = publishedFamily('qwen3');
  const lm = pretrainedLm(folder);
  const layer = 'stackedTransformerTpl.transformerLayerParamsTpls[1].trAttenTpl';
  Object.assign(lm.stackedTransformerTpl.transformerLayerParamsTpls[1]!.trAttenTpl, {
    ...{ windowSize: null, normBeforeRotary: false },
  });
  expect(networkDifferences(lm, pretrainedLm(folder))).toEqual([
    `${layer}.windowSize is null, there 9`,
    `${layer}.normBeforeRotary is false, there true`,
  ]);
});

test('experts, latent attention and rotations of YaRN are compared, too', () => {
  const folder = publishedFamily('deepseek_v3');
  const lm = pretrainedLm(folder);
  const stack = lm.stackedTransformerTpl;
  const mixer = stack.transformerLayerParamsTpl.mixerTpl as unknown as {
    logitScale: number;
    rotaryPositionEmbTpl: { scalingTpl: { betaFast: number } };
  };
  Object.assign(stack.moeLayerTpl, { routedScalingFactor: 1, biasUpdateRate: 0.5 });
  mixer.logitScale = 0.5;
  mixer.rotaryPositionEmbTpl.scalingTpl.betaFast = 16;
  const path = 'stackedTransformerTpl.transformerLayerParamsTpl.mixerTpl';
  const told = networkDifferences(lm, pretrainedLm(folder));
  expect(told.map((line) => line.replace(/there 0\.\d+$/, 'there X')).sort()).toEqual([
    'stackedTransformerTpl.moeLayerTpl.routedScalingFactor is 1, there 2.5',
    `${path}.logitScale is 0.5, there X`,
    `${path}.rotaryPositionEmbTpl.scalingTpl.betaFast is 16, there 32`,
  ]);
});

test('settings that a family has no counterpart of are told all at once', () => {
  const folder = join(temporaryDirectory(), 'qwen3');
  mkdirSync(folder);
  const file = join(folder, 'config.json');
  const settings = JSON.parse(readFileSync(join(publishedFamily('qwen3'), 'config.json'), 'utf8'));
  writeFileSync(
    file,
    JSON.stringify({ ...settings, hidden_act: 'relu', layer_types: ['full_attention', 'x'] }),
  );
  expect(() => pretrainedLm(folder)).toThrow(
    `${file}: the network has no counterpart here, or the file is damaged:\n` +
      `  hidden_act is "relu": Invalid option: expected one of "silu"|"swish"\n` +
      `  layer_types.1 is "x": Invalid option: expected one of "full_attention"|"sliding_attention"`,
  );
  writeFileSync(file, JSON.stringify({ ...settings, layer_types: ['full_attention'] }));
  expect(() => pretrainedLm(folder)).toThrow(
    `  layer_types is ["full_attention"]: expected one for each of num_hidden_layers`,
  );
});
