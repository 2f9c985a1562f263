/** @file Masked letters of made sentences, filled in from both sides. */
import { z } from 'zod';
import {
  type BaseInput,
  CharTokenizer,
  type Config,
  type ConfigValues,
  Experiment,
  SingleTask,
  Train,
} from '../src/index.js';
import { Feature, LanguageModelFeatures, Rekey, SeqioInput, Task, Tokenize } from '../src/inputs/index.js';
import { BertModel, paxLm } from '../src/models/index.js';
import { decayingAdam } from './parts.js';
import { Sentences } from './sequences.js';

const positive = z.int().positive();

/** The characters of sentences, and the mask. */
const vocabulary = ' abcdefghijklmnopqrstuvwxyz_';

/** A small BERT that fills in hidden letters of sentences that it has not seen. */
export class Letters extends Experiment.with({
  numLayers: positive.default(3).describe('Transformer blocks.'),
  numHeads: positive.default(4).describe('Attention heads of a block.'),
  modelDims: positive.default(64).describe('Depth of the residual stream; a multiple of numHeads.'),
  seqLen: positive.default(128).describe('Letters of a row.'),
  batchSize: positive.default(32).describe('Rows of a batch.'),
  numTrainSteps: positive.default(1000).describe('Training steps; the learning rate decays until the last.'),
  learningRate: z.number().positive().default(3e-3).describe('The highest learning rate.'),
  numHeldOut: positive.default(1024).describe('Held-out sentences.'),
  seed: z.int().nonnegative().default(1234).describe('Seed of weights, masks and the order of the data.'),
}) {
  override task() {
    const { numLayers, numHeads, modelDims, numTrainSteps } = this;
    const lmTpl = paxLm({ vocabSize: vocabulary.length, numLayers, numHeads, modelDims });
    lmTpl.modelType = 'bidirectional';
    return SingleTask.config({
      model: BertModel.config({ lmTpl, maskTokenId: vocabulary.indexOf('_') }),
      train: Train.config({
        learner: decayingAdam(this),
        ...{ numTrainSteps, randomSeed: this.seed, summaryIntervalSteps: 100 },
        ...{ saveIntervalSteps: 500, evalIntervalSteps: 500, evalSkipTrain: true },
      }),
    });
  }

  override datasets(): Config<BaseInput>[] {
    const { numHeldOut, seed } = this;
    return [
      this.sentences(`all[${numHeldOut}:]`, { name: 'train', isTraining: true, inputRandomSeed: seed }),
      this.sentences(`all[:${numHeldOut}]`, { name: 'held_out', evalLoopNumBatches: -1 }),
    ];
  }

  /** Several sentences a row. */
  private sentences(splitName: string, values: Partial<ConfigValues<SeqioInput>>): Config<SeqioInput> {
    const tokenizer = CharTokenizer.config({ vocabulary });
    return SeqioInput.config({
      mixtureOrTask: Task.config({
        source: Sentences.config(),
        preprocessors: [Rekey.config({ keyMap: { targets: 'inputs' } }), Tokenize.config()],
        features: { targets: Feature.config({ tokenizer, addEos: false }) },
      }),
      ...{ splitName, batchSize: this.batchSize, taskFeatureLengths: { targets: this.seqLen } },
      featureConverter: LanguageModelFeatures.config({ pack: true }),
      ...values,
    });
  }
}
