/** @file Span corruption as T5 learns it: with one decoder, to which the corrupted text is a prefix, and with an encoder-decoder. */
import {
  type BaseInput,
  ByteTokenizer,
  type Config,
  type ConfigValues,
  DotProductAttention,
  LanguageModel,
  narrow,
} from '../src/index.js';
import {
  BasePredictMetric,
  Feature,
  FilterByLength,
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
import { PairExperiment, Sentences } from './sequences.js';

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

/** Made sentences, several a text. */
export class SentenceTexts extends Sentences.with({}) {
  protected override *records() {
    let text = '';
    let numSentences = 0;
    for (const { inputs } of super.records()) {
      text += `${inputs}. `;
      if (++numSentences % 8 > 0) continue;
      yield { inputs: text, targets: text };
      text = '';
    }
  }
}

/** The spans of a text by their sentinels. */
const spansOf = (text: unknown): Map<string, string> =>
  new Map(
    [...String(text).matchAll(/<extra_id_(\d+)>([^<]*)/g)].map(([, sentinel, span]) => [sentinel!, span!]),
  );

/** Share of the hidden spans that are filled in exactly. */
export class FilledSpans extends BasePredictMetric {
  override compute(targets: readonly unknown[], predictions: readonly unknown[]): number {
    const right = targets.flatMap((target, i) => {
      const predicted = spansOf(predictions[i]);
      return [...spansOf(target)].map(([sentinel, span]) => predicted.get(sentinel) === span);
    });
    return right.filter(Boolean).length / right.length;
  }
}

const inputs = 64;
/** Spans shorter than T5's 3 tokens: most then follow from what is visible. */
const spans = { noiseDensity: 0.15, meanNoiseSpanLength: 2 };
const pieces = spanCorruptionLengths(inputs + 1, spans);
const numSentinels = 16;

/**
 * Restores spans of made sentences that it has not seen, by bytes. Positions are relative, as T5's are, by rotations: with
 * T5's biases, or with sinusoids, the decoder takes thousands of steps until it looks at what surrounds a span.
 */
export class MadeText extends PairExperiment.preset({ batchSize: 32, numTrainSteps: 7000, numHeldOut: 256 }) {
  protected override network() {
    const network = super.network();
    network.positionEmbTpl = null;
    const stacks = [network.encoderStackedTransformerTpl, network.decoderStackedTransformerTpl];
    for (const { transformerLayerParamsTpl: layer } of stacks) {
      layer.trAttenTpl.useRotaryPositionEmb = true;
      layer.crossAttenTpl = DotProductAttention.config();
    }
    return network;
  }

  protected override tokens() {
    const feature = Feature.config({
      tokenizer: ByteTokenizer.config(),
      addEos: false,
      extraIds: numSentinels,
    });
    return { feature, vocabSize: 256 + numSentinels, bosId: 0, eosId: [] };
  }

  protected override lengths() {
    // Without the ends that T5's lengths count.
    return { inputs, targets: pieces.targetsLength - 1 };
  }

  protected override source() {
    return SentenceTexts.config({ count: 60_000 });
  }

  protected override preprocessors() {
    const { tokensLength } = pieces;
    return [
      Tokenize.config(),
      SplitTokens.config({ maxTokensPerSegment: tokensLength }),
      // Pieces of one length have targets of one, which need no end.
      FilterByLength.config({ min: tokensLength }),
      SpanCorruption.config(spans),
    ];
  }

  protected override predictMetrics() {
    return { filled_spans: FilledSpans.config() };
  }
}
