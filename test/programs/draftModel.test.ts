/** @file The model that drafts, and its variables of a run. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { writeParams } from '../../src/checkpoints/index.js';
import { GreedyDecoder, SpeculativeDecoder } from '../../src/decoding/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import { type BaseLayer, Linear } from '../../src/layers/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { draftModel } from '../../src/programs/index.js';
import { temporaryDirectory } from '../command.js';
import { randomParams } from '../decoding/randomModels.js';

const lmTpl = gpt2Lm({ vocabSize: 7, modelDims: 4, numLayers: 1, numHeads: 1, maxSeqLength: 8 });
const modelConfig = LanguageModel.config({ lmTpl });

const decoderOf = (draftTpl: Config<BaseLayer>, draftCheckpoint: string) =>
  build(SpeculativeDecoder.config({ seqlen: 8, draftTpl, draftCheckpoint })) as SpeculativeDecoder;

test('variables are those of the newest checkpoint of the run', async () => {
  const run = temporaryDirectory();
  const { layout, views } = randomParams(build(modelConfig) as LanguageModel, 5);
  const values = (name: string) => {
    const bytes = new Uint8Array(views[name]!.slice().buffer);
    return [{ byteLength: bytes.length, write: (target: Uint8Array) => target.set(bytes) }];
  };
  const directory = join(run, 'checkpoints');
  await writeParams({ directory, experiment: 'lm.Draft', layout, values });
  const draft = (await draftModel(decoderOf(modelConfig, run)))!;
  expect(draft.model.vocabSize).toBe(7);
  for (const [name, value] of Object.entries(views))
    expect([...draft.params.views[name]!]).toEqual([...value]);
});

test('decoders without a model that drafts have none; a missing run and a model that is none are named', async () => {
  expect(await draftModel(build(GreedyDecoder.config({ seqlen: 8 })) as GreedyDecoder)).toBeUndefined();
  await expect(draftModel(decoderOf(modelConfig, '/no/such/run'))).rejects.toThrow('/no/such/run');
  const linear = Linear.config({ inputDims: 2, outputDims: 2 });
  await expect(draftModel(decoderOf(linear, 'run'))).rejects.toThrow(
    "SpeculativeDecoder.draftTpl: Linear can't decode: it lacks initialDecodeState and extendStep (Decodable).",
  );
});
