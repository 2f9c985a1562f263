/** @file `luthier validate` traces decoding: programs and decoders that fail are problems of the dataset to decode. */
import { expect, test } from 'vitest';
import type { ConfiguredExperiment } from '../../../src/cli/index.js';
import { GreedyDecoder } from '../../../src/decoding/index.js';
import { build } from '../../../src/hparams/index.js';
import { SyntheticLmInput } from '../../../src/inputs/index.js';
import { AdamW, Learner } from '../../../src/learners/index.js';
import { gpt2Lm, LanguageModel } from '../../../src/models/index.js';
import { Decode, SingleTask, Train } from '../../../src/tasks/index.js';
import { traceSteps } from '../../../src/tools/validate/traceSteps.js';
import { Numbers } from '../../inputs/numbers.js';

class Fails extends LanguageModel {
  override extendStep(): never {
    throw new Error('no step');
  }
}

/** Problems of an experiment that decodes so many tokens of its prompts, or more, with a model. */
async function problems(
  seqlen: number,
  model: typeof LanguageModel = LanguageModel,
  prompts: typeof SyntheticLmInput = Numbers,
) {
  const lmTpl = gpt2Lm({ vocabSize: 32, modelDims: 16, numLayers: 1, numHeads: 2, maxSeqLength: 16 });
  const task = SingleTask.config({
    model: model.config({ lmTpl }),
    train: Train.config({
      ...{ learner: Learner.config({ optimizer: AdamW.config({ learningRate: 1e-3 }) }), numTrainSteps: 1 },
    }),
    decode: Decode.config({ decoder: GreedyDecoder.config({ seqlen, eosId: [1] }), prefixLength: 2 }),
  });
  const values = { vocabSize: 32, seqLen: 8, batchSize: 2 };
  const configured = {
    ...{ task, datasets: [SyntheticLmInput.config({ ...values, isTraining: true })] },
    decodeDatasets: [prompts.config({ ...values, name: 'prompts' })],
  } as unknown as ConfiguredExperiment;
  const found = await traceSteps(configured, build(task));
  return found.map(({ path, error }) => [path, (error as Error).message]);
}

test('decoding that works has no problem', async () => {
  expect(await problems(12)).toEqual([]);
});

test('prompts without text, which decodes write', async () => {
  expect(await problems(12, LanguageModel, SyntheticLmInput)).toEqual([
    ['decodeDatasets[0]', "Input 'prompts' has no text, so its ids have no strings."],
  ]);
});

test('a model whose step fails, and a decoder without a length', async () => {
  expect(await problems(12, Fails)).toEqual([['decodeDatasets[0]', 'model (Fails): extendStep: no step']]);
  expect(await problems(0)).toEqual([
    [
      'decodeDatasets[0]',
      'GreedyDecoder.seqlen: The sequence length for decoding must be > 0, current value = 0.',
    ],
  ]);
});
