/** @file Fingerprints of several experiments: what they share is what they have in common, whatever came before. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import type { ConfiguredExperiment } from '../../../src/cli/index.js';
import { type Tensor, tf } from '../../../src/compiler/index.js';
import { GreedyDecoder, SampleDecoder } from '../../../src/decoding/index.js';
import { Learner, Sgd } from '../../../src/learners/index.js';
import { gpt2Lm, LanguageModel } from '../../../src/models/index.js';
import { Fingerprints } from '../../../src/review/fingerprints/experimentFingerprints.js';
import { Decode, F1, SingleTask, Train } from '../../../src/tasks/index.js';
import { Numbers } from '../../inputs/numbers.js';
import { eachInput } from '../../keys.js';

/** Losses are larger in the training of one task than in that of another. */
class ScaledTask extends SingleTask.with({ scale: z.number().default(1) }) {
  override lossOf<T>(metrics: Readonly<Record<string, T>>): T {
    const [value, weight] = super.lossOf(metrics) as unknown as [Tensor, Tensor];
    return [tf.mul(value, this.hp.scale), weight] as T;
  }
}

/** The same fields, and other losses. */
class OtherwiseScaledTask extends ScaledTask {
  override lossOf<T>(metrics: Readonly<Record<string, T>>): T {
    const [value, weight] = super.lossOf(metrics) as unknown as [Tensor, Tensor];
    return [tf.mul(value, value), weight] as T;
  }
}

const small = { vocabSize: 8, modelDims: 4, numLayers: 1, numHeads: 1, maxSeqLength: 8 };
const base = {
  task: ScaledTask,
  ownField: 1,
  model: 8,
  learner: 1,
  evalMetrics: {},
  randomSeed: 1,
  decoder: GreedyDecoder.config({ seqlen: 6, eosId: 1 }),
  decodeBatch: 1,
  prefixLength: null as number | null,
  data: 4,
};
const others: typeof base = {
  task: OtherwiseScaledTask as typeof ScaledTask,
  ownField: 2,
  model: 9,
  learner: 2,
  evalMetrics: { f1: F1.config({ logits: 'logits', labels: 'labels' }) },
  randomSeed: 2,
  decoder: SampleDecoder.config({ seqlen: 6, eosId: 1 }) as never,
  decodeBatch: 2,
  prefixLength: 2,
  data: 5,
};

function experiment(given: typeof base): ConfiguredExperiment {
  const {
    task,
    ownField,
    model,
    learner,
    evalMetrics,
    randomSeed,
    decoder,
    decodeBatch,
    prefixLength,
    data,
  } = given;
  const values = {
    model: LanguageModel.config({ lmTpl: gpt2Lm({ ...small, vocabSize: model }), returnPredictions: true }),
    train: Train.config({
      learner: Learner.config({ optimizer: Sgd.config({ learningRate: learner }) }),
      randomSeed,
    }),
    decode: Decode.config({ decoder, prefixLength }),
    evalMetrics,
  };
  const input = (isTraining: boolean, batchSize: number) =>
    Numbers.config({ seqLen: data, vocabSize: 8, isTraining, batchSize, numBatches: 1 });
  return {
    task: task.config({ ...values, scale: ownField }),
    datasets: [input(true, 1), input(false, 1)],
    decodeDatasets: [input(false, decodeBatch)],
  } as unknown as ConfiguredExperiment;
}

/** Fingerprints of experiments one after another, which share what they can. */
async function oneAfterAnother(all: readonly (typeof base)[]) {
  const shared = new Fingerprints();
  const found = [];
  for (const each of all) found.push(await shared.of(experiment(each)));
  return found;
}

test('each input of an experiment is asked, whatever other experiment came before', async () => {
  const named = eachInput('fingerprints', base, others);
  const all = [base, { ...base }, ...named.map(([, inputs]) => inputs as typeof base)];
  const found = await oneAfterAnother(all);
  expect(found[1]).toEqual(found[0]);
  for (const [i, [input]] of named.entries()) expect(found[i + 2], input).not.toEqual(found[0]);
  expect((await oneAfterAnother(all.toReversed())).reverse()).toEqual(found);
});
