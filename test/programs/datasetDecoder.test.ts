/** @file Decodes of batches of several sizes, one after the other, by one decoder. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { flatViews, prngKey } from '../../src/compiler/index.js';
import { SampleDecoder } from '../../src/decoding/index.js';
import { build } from '../../src/hparams/index.js';
import { type Batch, TextInput } from '../../src/inputs/index.js';
import { Learner, Sgd } from '../../src/learners/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { DatasetDecoder, decodableModel } from '../../src/programs/datasetDecoder.js';
import { ProgramDataset } from '../../src/programs/programDataset.js';
import { paramsOf } from '../../src/programs/taskState.js';
import type { JobOptions } from '../../src/runs/options.js';
import { Decode, SingleTask, Train } from '../../src/tasks/index.js';
import { temporaryDirectory } from '../command.js';
import { corpusDirectory } from '../inputs/corpus.js';

/** Two prompts of `length` tokens. */
const prompts = (length: number): Batch => ({
  ids: {
    shape: [2, length],
    dtype: 'int32',
    data: Int32Array.from({ length: 2 * length }, (_, i) => (i * 5) % 16),
  },
  paddings: { shape: [2, length], dtype: 'float32', data: new Float32Array(2 * length) },
});

test('prompts that samples share may be longer than those of the first batch, or shorter', async () => {
  const decoder = SampleDecoder.config({
    ...{ seqlen: 16, eosId: [], numSamples: 2, k: 0, maxDecodeSteps: 4, lazyPrefixBroadcast: true },
  });
  const files = [join(corpusDirectory({ 'one.txt': 'abcdefgh' }), '*.txt')];
  const lmTpl = gpt2Lm({ vocabSize: 256, modelDims: 8, numLayers: 1, numHeads: 2, maxSeqLength: 16 });
  const config = SingleTask.config({
    model: LanguageModel.config({ lmTpl }),
    train: Train.config({ learner: Learner.config({ optimizer: Sgd.config({ learningRate: 1 }) }) }),
    decode: Decode.config({ decoder, prefixLength: 12 }),
  });
  const task = build(config);
  const state = paramsOf(task);
  await task.initialize(flatViews(state.layout, state.params));
  const options: JobOptions = {
    ...{ name: 'widths', task: config, datasets: [], decodeDatasets: [], moduleUrl: import.meta.url },
    ...{ jobLogDir: temporaryDirectory(), mode: 'decode', overrides: [], classVars: '', engine: 'onnx' },
  };
  const input = build(TextInput.config({ name: 'widths', files, seqLen: 4, batchSize: 2 }));
  const dataset = new ProgramDataset(options, task, input, 'decode_test_widths');
  const newDecoder = () =>
    new DatasetDecoder(options, task, decodableModel(task, 'A test'), state, dataset, {
      decode: task.hp.decode,
      runs: 1,
    });
  const decoded = async (used: DatasetDecoder, length: number) =>
    (await used.continueBatch(prompts(length), prngKey(3))).map(({ sampled }) =>
      sampled!.map(({ decoded_ids }) => decoded_ids),
    );
  const [used, fresh] = [newDecoder(), newDecoder()];
  const expected = await decoded(fresh, 12);
  const short = await decoded(used, 4);
  expect(short.flat().map(({ length }) => length)).toEqual([8, 8, 8, 8]);
  expect(expected.flat().map(({ length }) => length)).toEqual([16, 16, 16, 16]);
  expect(await decoded(used, 12)).toEqual(expected);
  expect(await decoded(used, 4)).toEqual(short);
  for (const each of [used, fresh]) await each.close();
});
