/** @file Language models: one that learns to write TypeScript, and nanoGPT's on Shakespeare. */
import { z } from 'zod';
import {
  AdamW,
  type BaseInput,
  ByteTokenizer,
  CharTokenizer,
  type Config,
  ConfigError,
  type ConfigValues,
  charVocabularyOf,
  Decode,
  Experiment,
  gpt2Lm,
  LanguageModel,
  Learner,
  LinearRampupCosineDecay,
  narrow,
  SampleDecoder,
  SingleTask,
  TextInput,
  Train,
} from '../src/index.js';
import {
  AppendEos,
  CacheDatasetPlaceholder,
  Feature,
  LanguageModelFeatures,
  Mixture,
  PretrainedTokenizer,
  Rekey,
  SeqioInput,
  SplitTokens,
  Task,
  TextFileSource,
  Tokenize,
} from '../src/inputs/index.js';

const positive = z.int().positive();
const fpropDtypes = ['float32', 'bfloat16'] as const;

/** GPT-2 style language models, trained with AdamW, linear warm-up and cosine decay. */
export abstract class LmExperiment extends Experiment.with({
  numLayers: positive.default(12).describe('Transformer blocks.'),
  numHeads: positive.default(12).describe('Attention heads of a block.'),
  modelDims: positive.default(768).describe('Depth of the residual stream; a multiple of numHeads.'),
  seqLen: positive.default(1024).describe('Tokens of a row, and the longest text that the model sees.'),
  batchSize: positive.default(12).describe('Rows of a training batch.'),
  dropoutProb: z.number().min(0).lt(1).default(0).describe('Probability of dropout.'),
  useBias: z.boolean().default(false).describe('Whether matrix products and norms have biases.'),
  numTrainSteps: positive.default(1000).describe('Training steps; the learning rate decays until the last.'),
  learningRate: z.number().positive().default(6e-4).describe('The highest learning rate.'),
  minLearningRate: z.number().nonnegative().default(6e-5).describe('The learning rate at the end.'),
  warmupSteps: z.int().nonnegative().default(100).describe('Steps until the highest learning rate.'),
  beta2: z.number().min(0).lt(1).default(0.99).describe("AdamW's decay of squared gradients."),
  weightDecay: z.number().nonnegative().default(0.1).describe('Decay of matrices; vectors do not decay.'),
  fpropDtype: z
    .enum(fpropDtypes)
    .default('float32')
    .describe('Type that matrix products round their operands to.'),
  seed: z.int().nonnegative().default(1234).describe('Seed of weights, dropout and the order of the data.'),
}) {
  /** How many tokens the vocabulary has. */
  protected vocabSize(): number {
    return 256;
  }

  override validate() {
    if (this.modelDims % this.numHeads === 0) return;
    throw new ConfigError(`modelDims (${this.modelDims}) must be a multiple of numHeads (${this.numHeads}).`);
  }

  override task(): Config<SingleTask> {
    const { numLayers, numHeads, modelDims, seqLen, useBias, dropoutProb } = this;
    const vocabSize = this.vocabSize();
    const lmTpl = gpt2Lm({
      ...{ vocabSize, modelDims, numLayers, numHeads, useBias, dropoutProb },
      maxSeqLength: seqLen,
    });
    return SingleTask.config({
      model: LanguageModel.config({ fpropDtype: this.fpropDtype, lmTpl }),
      train: Train.config({
        learner: Learner.config({ optimizer: this.optimizer() }),
        numTrainSteps: this.numTrainSteps,
        randomSeed: this.seed,
      }),
    });
  }

  private optimizer() {
    return AdamW.config({
      learningRate: this.learningRate,
      lrSchedule: LinearRampupCosineDecay.config({
        warmupSteps: this.warmupSteps,
        decayStart: this.warmupSteps,
        decayEnd: Math.max(this.numTrainSteps, this.warmupSteps),
        minRatio: this.minLearningRate / this.learningRate,
        // As nanoGPT: already the first update moves.
        rampupFromZero: false,
      }),
      beta2: this.beta2,
      decoupledWeightDecay: this.weightDecay,
      skipLp1dVectors: true,
      clipGradientNormToValue: 1,
    });
  }
}

/** Declarations that nobody trains on: whole files, none of which has a twin in the rest of the corpus. */
const heldOut = [
  'pkg:@types/node/{dgram,readline,tty,vm,worker_threads,zlib}.d.ts',
  'pkg:typescript/lib/lib.{es2021,es2022}.*.d.ts',
];

/** Those of the held-out files that are mostly code; others are mostly comments and licences. */
const promptFiles = ['pkg:@types/node/zlib.d.ts', 'pkg:typescript/lib/lib.es2022.intl.d.ts'];

/**
 * A small byte-level model that learns to write TypeScript declarations, from those that the project's own
 * dependencies install.
 */
export class Small extends LmExperiment.with({
  evalBatchSize: positive.default(32).describe('Rows of an evaluation batch.'),
  promptLength: positive.default(40).describe('Bytes of a held-out file that a completion starts from.'),
  numPrompts: positive.default(6).describe('Completions that are decoded.'),
  temperature: z.number().nonnegative().default(0.5).describe('Of the completions; 0 is greedy.'),
}).preset({
  numLayers: 4,
  numHeads: 4,
  modelDims: 128,
  seqLen: 128,
  // Few tokens a step and many steps: at this budget of time, twice the width at half the steps learns much less.
  batchSize: 8,
  numTrainSteps: 2000,
  learningRate: 3e-3,
  minLearningRate: 1e-4,
  warmupSteps: 100,
  fpropDtype: 'bfloat16',
}) {
  override task() {
    const task = super.task();
    task.train.saveIntervalSteps = 500;
    task.train.saveMaxToKeep = 3;
    task.train.summaryIntervalSteps = 50;
    task.train.evalIntervalSteps = 1000;
    task.train.evalSkipTrain = true;
    const decoder = SampleDecoder.config({ seqlen: this.seqLen, temperature: this.temperature, eosId: [] });
    task.decode = Decode.config({ decoder, prefixLength: this.promptLength });
    return task;
  }

  override datasets(): Config<BaseInput>[] {
    return [
      this.corpus({ name: 'train', isTraining: true, batchSize: this.batchSize, inputRandomSeed: this.seed }),
      this.corpus({ name: 'held_out', batchSize: this.evalBatchSize, evalLoopNumBatches: -1 }),
    ];
  }

  override decodeDatasets(): Config<BaseInput>[] {
    const values = { name: 'held_out', validationFiles: promptFiles, batchSize: this.numPrompts };
    return [this.corpus({ ...values, sampling: 'random', repeat: true, inputRandomSeed: this.seed })];
  }

  private corpus(values: Partial<ConfigValues<TextInput>>): Config<TextInput> {
    return TextInput.config({
      files: ['pkg:typescript/lib/*.d.ts', 'pkg:@types/node/**/*.d.ts'],
      validationFiles: heldOut,
      split: values.isTraining ? 'train' : 'validation',
      tokenizer: ByteTokenizer.config(),
      seqLen: this.seqLen,
      ...values,
    });
  }
}

/**
 * nanoGPT's character-level model of Shakespeare in its published size for CPUs
 * (https://github.com/karpathy/nanoGPT, "i only have a macbook").
 */
export class ShakespeareChar extends LmExperiment.with({
  dataPath: z.string().min(1).describe("The text file: nanoGPT's data/shakespeare_char/input.txt."),
  evalBatchSize: positive.default(64).describe('Rows of an evaluation batch.'),
}).preset({
  numLayers: 4,
  numHeads: 4,
  modelDims: 128,
  seqLen: 64,
  batchSize: 12,
  numTrainSteps: 2000,
  learningRate: 1e-3,
  minLearningRate: 1e-4,
  warmupSteps: 100,
}) {
  protected override vocabSize() {
    return [...this.vocabulary()].length;
  }

  override task() {
    const task = super.task();
    task.train.saveIntervalSteps = 500;
    task.train.evalIntervalSteps = 500;
    task.train.evalSkipTrain = true;
    const decoder = SampleDecoder.config({ seqlen: this.seqLen, temperature: 0.8, k: 200, eosId: [] });
    task.decode = Decode.config({ decoder, prefixLength: 16 });
    return task;
  }

  override datasets(): Config<BaseInput>[] {
    const train = { name: 'train', isTraining: true, batchSize: this.batchSize, sampling: 'random' } as const;
    return [
      this.text({ ...train, split: 'train', inputRandomSeed: this.seed }),
      this.text({ name: 'validation', batchSize: this.evalBatchSize, evalLoopNumBatches: -1 }),
    ];
  }

  override decodeDatasets(): Config<BaseInput>[] {
    return [this.text({ name: 'validation', batchSize: 4 })];
  }

  private vocabulary(): string {
    return charVocabularyOf([this.dataPath]);
  }

  /** Nine tenths of the text train, the last tenth is validation, as in nanoGPT. */
  private text(values: Partial<ConfigValues<TextInput>>): Config<TextInput> {
    return TextInput.config({
      files: [this.dataPath],
      split: 'validation',
      tokenizer: CharTokenizer.config({ vocabulary: this.vocabulary() }),
      seqLen: this.seqLen,
      ...values,
    });
  }
}

/** ShakespeareChar with products in bfloat16. */
export class ShakespeareCharBfloat16 extends ShakespeareChar.preset({ fpropDtype: 'bfloat16' }) {}

/** Declarations of the compiler's libraries and of Node, without those that are held out. */
const sources = {
  typescript: 'pkg:typescript/lib/!(lib.es2021.*|lib.es2022.*).d.ts',
  node: 'pkg:@types/node/**/!(dgram|readline|tty|vm|worker_threads|zlib).d.ts',
};

/**
 * Small on a vocabulary of byte pairs, in packed rows, from a mixture of two sources. The vocabulary is trained on the
 * mixture's files.
 */
export class SmallBpe extends Small.with({
  nodeRate: z.number().positive().default(2).describe("Rate of Node's declarations to 1 of the compiler's."),
}).preset({ promptLength: 16 }) {
  protected override vocabSize() {
    return 2048;
  }

  override task() {
    const task = super.task();
    narrow(task.model, LanguageModel, 'task.model').lmTpl.packedInput = true;
    return task;
  }

  override datasets(): Config<BaseInput>[] {
    const { typescript, node } = sources;
    const mixtureOrTask = Mixture.config({
      parts: { typescript: this.files([typescript]), node: this.files([node]) },
      rates: { typescript: 1, node: this.nodeRate },
    });
    const pack = { featureConverter: LanguageModelFeatures.config({ pack: true }) };
    const train = { name: 'train', isTraining: true, batchSize: this.batchSize, inputRandomSeed: this.seed };
    return [
      this.rows({ ...train, ...pack, mixtureOrTask }),
      this.rows({ ...pack, name: 'held_out', mixtureOrTask: this.files(heldOut), evalLoopNumBatches: -1 }),
    ];
  }

  override decodeDatasets(): Config<BaseInput>[] {
    const mixtureOrTask = this.files(promptFiles);
    return [this.rows({ name: 'held_out', mixtureOrTask, batchSize: this.numPrompts })];
  }

  /** Pieces of whole files. */
  private files(files: string[]): Config<Task> {
    const tokenizer = PretrainedTokenizer.config({
      ...{ file: 'experiments/typescript.tokenizer.json', padToken: '<pad>', eosToken: '<eos>' },
    });
    return Task.config({
      source: TextFileSource.config({ files }),
      preprocessors: [
        Rekey.config({ keyMap: { targets: 'text' } }),
        Tokenize.config(),
        AppendEos.config(),
        CacheDatasetPlaceholder.config(),
        SplitTokens.config(),
      ],
      features: { targets: Feature.config({ tokenizer }) },
    });
  }

  private rows(
    values: Partial<ConfigValues<SeqioInput>> & { mixtureOrTask: Config<Task> | Config<Mixture> },
  ) {
    const taskFeatureLengths = { targets: this.seqLen };
    return SeqioInput.config({
      splitName: 'all',
      taskFeatureLengths,
      batchSize: this.evalBatchSize,
      ...values,
    });
  }
}
