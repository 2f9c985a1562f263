/** @file Span corruption as T5 learns it, with one decoder: the corrupted text is a prefix, and the spans are predicted. */
import {
  type BaseInput,
  ByteTokenizer,
  type Config,
  type ConfigValues,
  LanguageModel,
  narrow,
} from '../src/index.js';
import {
  Feature,
  LanguageModelFeatures,
  Rekey,
  SeqioInput,
  SpanCorruption,
  SplitTokens,
  spanCorruptionLengths,
  Task,
  TextFileSource,
  Tokenize,
} from '../src/inputs/index.js';
import { LmExperiment } from './lm.js';

const extraIds = 100;

/** A small model that restores spans of TypeScript declarations, by bytes. */
export class Small extends LmExperiment.preset({
  numLayers: 2,
  numHeads: 4,
  modelDims: 128,
  seqLen: 128,
  batchSize: 16,
  numTrainSteps: 1000,
  learningRate: 3e-3,
  minLearningRate: 1e-4,
  fpropDtype: 'bfloat16',
}) {
  protected override vocabSize() {
    return 256 + extraIds;
  }

  override task() {
    const task = super.task();
    narrow(task.model, LanguageModel, 'task.model').lmTpl.packedInput = true;
    Object.assign(task.train, { saveIntervalSteps: 500, evalIntervalSteps: 500, evalSkipTrain: true });
    return task;
  }

  override datasets(): Config<BaseInput>[] {
    const training = 'pkg:typescript/lib/!(lib.es2021.*|lib.es2022.*).d.ts';
    const heldOut = 'pkg:typescript/lib/lib.{es2021,es2022}.*.d.ts';
    return [
      this.spans(training, { name: 'train', isTraining: true, inputRandomSeed: this.seed }),
      this.spans(heldOut, { name: 'held_out', evalLoopNumBatches: -1 }),
    ];
  }

  /** Inputs and targets that fill a row of seqLen together. */
  private spans(files: string, values: Partial<ConfigValues<SeqioInput>>): Config<SeqioInput> {
    const inputs = Math.floor(this.seqLen * 0.75);
    const { tokensLength } = spanCorruptionLengths(inputs);
    const feature = Feature.config({ tokenizer: ByteTokenizer.config(), addEos: false, extraIds });
    const mixtureOrTask = Task.config({
      source: TextFileSource.config({ files: [files] }),
      preprocessors: [
        Rekey.config({ keyMap: { targets: 'text' } }),
        Tokenize.config(),
        SplitTokens.config({ maxTokensPerSegment: tokensLength }),
        SpanCorruption.config(),
      ],
      features: { inputs: feature, targets: feature },
    });
    return SeqioInput.config({
      ...{ mixtureOrTask, splitName: 'all', batchSize: this.batchSize },
      taskFeatureLengths: { inputs, targets: this.seqLen - inputs },
      featureConverter: LanguageModelFeatures.config({ pack: true, weightsOnTargetsOnly: true }),
      ...values,
    });
  }
}
