/** @file Encoders, encoder-decoders and classifiers of published families against transformers (scripts/record_encoders.py). */
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import type { Config } from '../../../src/hparams/index.js';
import {
  pretrainedModel,
  type SequenceModel,
  type TensorBatch,
  type TextEmbeddingModel,
} from '../../../src/models/index.js';
import { temporaryDirectory } from '../../command.js';
import { ints, run, stateOf } from '../../layers/helpers.js';
import { loadedModel, thetaOf } from '../../programs/loadedModel.js';
import { distance, expectGradients, publishedFamily, recordOf } from './published.js';

/** Tokens of a step of the decode. */
const STEP = 16;

interface Listed {
  readonly shape: number[];
  readonly dtype: 'float32' | 'int32';
  readonly data: number[];
}

/** A batch of arrays by path. */
function batchOf(arrays: Readonly<Record<string, Listed>>): TensorBatch {
  const batch: Record<string, unknown> = {};
  for (const [path, { shape, dtype, data }] of Object.entries(arrays)) {
    const array = tf.tensor(data, shape, dtype);
    const [outer, inner] = path.split('.') as [string, string?];
    batch[outer] = inner === undefined ? array : { ...(batch[outer] as object), [inner]: array };
  }
  return batch as TensorBatch;
}

/** Outputs at places of padding count as 0. */
const unpadded = (outputs: Tensor, paddings: Tensor | undefined): Tensor =>
  paddings && outputs.rank === 3 ? tf.mul(outputs, tf.expandDims(tf.sub(1, paddings), -1)) : outputs;

/** A recorded model with its batch. */
function opened(name: string) {
  const folder = publishedFamily(name);
  const whole = loadedModel(pretrainedModel(folder), folder);
  const record = recordOf(folder);
  const { batch, tokens, loss } = record.layout.metadata as Record<string, string>;
  return { folder, whole, record, loss, tokens: JSON.parse(tokens!), batch: batchOf(JSON.parse(batch!)) };
}

describe.each(['bert', 'bertClassifier', 'bertEncoder', 't5', 't5Gated', 'vit'])('%s', (name) => {
  const { folder, whole, record, loss, tokens, batch } = opened(name);
  const { model } = whole.task;

  test('outputs', () => {
    const outputs = run(thetaOf(whole), () => model.computePredictions(batch), { doEval: true }) as Record<
      string,
      Tensor
    >;
    const { paddings } = (batch.tgt ?? batch) as unknown as { readonly paddings?: Tensor };
    for (const output of record.layout.tensors.map(({ name }) => name))
      expect(
        distance(unpadded(outputs[output]!, paddings).dataSync(), record.read(output) as Float32Array),
      ).toBeLessThan(1e-5);
    record.close();
  });

  test.runIf(loss !== undefined)('loss and gradients of one step', () => {
    expectGradients(model, whole, folder, () => model.fprop(batch)[0].avg_xent![0]);
  });

  test.runIf(tokens !== null)('greedy tokens of a decode', () => {
    const sequences = model as SequenceModel;
    const source = tf.expandDims(tf.range(2, 14, 1, 'int32'), 0) as Tensor;
    const prompt = { 'src.ids': source, 'src.paddings': tf.zeros(source.shape) as Tensor };
    const specs = Object.fromEntries(
      Object.entries(prompt).map(([path, { shape, dtype }]) => [path, { shape, dtype: dtype as 'int32' }]),
    );
    const decodeState = stateOf(sequences.initialDecodeState(1, tokens.length, specs));
    const context = { decodeState, doEval: true };
    const theta = thetaOf(whole);
    run(theta, () => sequences.begin(prompt), context);
    const given = [0, ...tokens.slice(0, -1)];
    const found: number[] = [];
    for (let at = 0; at < given.length; at += STEP) {
      const timeStep = tf.scalar(at, 'int32') as Tensor;
      const ids = ints(given.slice(at, at + STEP), [1, STEP]);
      const logits = run(theta, () => sequences.extendStep(ids, { timeStep }), context);
      found.push(...tf.argMax(logits, -1).dataSync());
    }
    expect(found).toEqual(tokens);
  });
});

test('sentence encoders pool and norm as modules.json says', () => {
  const folder = join(temporaryDirectory(), 'bert');
  cpSync(publishedFamily('bertEncoder'), folder, { recursive: true });
  const modules = (...types: string[]) =>
    writeFileSync(
      join(folder, 'modules.json'),
      JSON.stringify(
        types.map((type, i) => ({
          idx: i,
          type: `sentence_transformers.models.${type}`,
          path: `${i}_${type}`,
        })),
      ),
    );
  const embedder = () => pretrainedModel(folder) as Config<TextEmbeddingModel>;
  expect(embedder()).toMatchObject({ normalized: true, encoderTpl: { pooling: 'mean' } });
  modules('Transformer', 'Pooling');
  mkdirSync(join(folder, '1_Pooling'));
  const file = join(folder, '1_Pooling', 'config.json');
  writeFileSync(file, JSON.stringify({ pooling_mode_cls_token: true, pooling_mode_mean_tokens: false }));
  expect(embedder()).toMatchObject({ normalized: false, encoderTpl: { pooling: 'first' } });
  writeFileSync(file, JSON.stringify({ pooling_mode_cls_token: true, pooling_mode_mean_tokens: true }));
  expect(embedder).toThrow(
    `${file}: pooling by cls_token, mean_tokens has no counterpart here: expected one of mean_tokens, cls_token, lasttoken.`,
  );
  modules('Transformer', 'Dense');
  expect(embedder).toThrow(
    `${join(folder, 'modules.json')}: a module Dense has no counterpart here: expected Transformer, Pooling and Normalize.`,
  );
});
