/** @file Encoder-decoders on made text: copies of strings, and a translation from one made language into another. */
import { z } from 'zod';
import { GreedyDecoder } from '../src/decoding/index.js';
import {
  type BaseInput,
  CharTokenizer,
  type Config,
  type ConfigValues,
  Decode,
  Experiment,
  SingleTask,
  Train,
} from '../src/index.js';
import {
  type BasePredictMetric,
  type BasePreprocessor,
  type BaseRecordSource,
  ExactMatch,
  Feature,
  IterableSource,
  SeqioInput,
  SequenceModelFeatures,
  Task,
  Tokenize,
} from '../src/inputs/index.js';
import {
  SharedEmbeddingSoftmax,
  StackedTransformer,
  TransformerEncoderDecoder,
} from '../src/layers/index.js';
import { SequenceModel } from '../src/models/index.js';
import { type Draw, drawsOf, pick } from './draws.js';
import { decayingAdam } from './parts.js';

const positive = z.int().positive();

/** Ends a text, and stands before the first target. */
const END = '\n';

interface Pair {
  readonly inputs: string;
  readonly targets: string;
}

/** Pairs of made texts; no two have the same inputs. */
abstract class MadePairs extends IterableSource.with({
  count: positive.default(40_000).describe('Pairs.'),
  seed: z.int().nonnegative().default(1).describe('Seed of the pairs.'),
}) {
  static override readonly isAbstract = true;

  protected abstract pair(draw: Draw): Pair;

  protected override *records() {
    const { count, seed } = this.hp;
    const seen = new Set<string>();
    for (let i = 0; seen.size < count; i++) {
      const { inputs, targets } = this.pair(drawsOf(seed, i));
      if (seen.has(inputs)) continue;
      seen.add(inputs);
      yield { inputs, targets: targets + END };
    }
  }
}

/** The ids of an experiment's texts. */
interface Tokens {
  readonly feature: Config<Feature>;
  readonly vocabSize: number;
  /** Stands before the first target. */
  readonly bosId: number;
  /** Ends decoded texts; [] where their length does. */
  readonly eosId: number | number[];
}

/** Characters, END among them. */
function charactersOf(vocabulary: string): Tokens {
  const feature = Feature.config({ tokenizer: CharTokenizer.config({ vocabulary }), addEos: false });
  const end = vocabulary.indexOf(END);
  return { feature, vocabSize: vocabulary.length, bosId: end, eosId: end };
}

/** Encoder-decoders, whose quality is that of the targets of held-out pairs that greedy decoding gives. */
export abstract class PairExperiment extends Experiment.with({
  numLayers: positive.default(2).describe('Transformer blocks, in the encoder and in the decoder.'),
  numHeads: positive.default(4).describe('Attention heads of a block.'),
  modelDims: positive.default(64).describe('Depth of the residual stream; a multiple of numHeads.'),
  batchSize: positive.default(64).describe('Pairs of a training batch.'),
  numTrainSteps: positive.default(1000).describe('Training steps; the learning rate decays until the last.'),
  learningRate: z.number().positive().default(3e-3).describe('The highest learning rate.'),
  numHeldOut: positive.default(512).describe('Held-out pairs that are decoded.'),
  seed: z.int().nonnegative().default(1234).describe('Seed of weights and of the order of the data.'),
}) {
  protected abstract tokens(): Tokens;
  /** The longest inputs and targets, the end included. */
  protected abstract lengths(): { readonly inputs: number; readonly targets: number };
  protected abstract source(): Config<BaseRecordSource>;

  /** From the source's texts to inputs and targets. */
  protected preprocessors(): Config<BasePreprocessor>[] {
    return [Tokenize.config()];
  }

  protected predictMetrics(): Record<string, Config<BasePredictMetric>> {
    return { exact: ExactMatch.config() };
  }

  protected network(): Config<TransformerEncoderDecoder> {
    const { numLayers, numHeads, modelDims } = this;
    const stack = () => StackedTransformer.config({ numLayers, numHeads, hiddenDims: 4 * modelDims });
    return TransformerEncoderDecoder.config({
      modelDims,
      encoderStackedTransformerTpl: stack(),
      decoderStackedTransformerTpl: stack(),
      softmaxTpl: SharedEmbeddingSoftmax.config({
        numClasses: this.tokens().vocabSize,
        scaleSqrtDepth: true,
      }),
    });
  }

  override task() {
    const { numTrainSteps } = this;
    return SingleTask.config({
      model: SequenceModel.config({ modelTpl: this.network() }),
      train: Train.config({
        learner: decayingAdam(this),
        ...{ numTrainSteps, randomSeed: this.seed, summaryIntervalSteps: 100 },
        ...{ saveIntervalSteps: 500, evalIntervalSteps: 500, evalSkipTrain: true, decodeIntervalSteps: 500 },
      }),
      decode: Decode.config({
        decoder: GreedyDecoder.config({
          seqlen: this.lengths().targets + 1,
          eosId: this.tokens().eosId,
        }),
      }),
    });
  }

  override datasets(): Config<BaseInput>[] {
    const { batchSize, numHeldOut, seed } = this;
    const training = { name: 'train', isTraining: true, inputRandomSeed: seed, batchSize };
    return [this.pairs({ ...training, splitName: `all[${numHeldOut}:]` }), ...this.decodeDatasets()];
  }

  override decodeDatasets(): Config<BaseInput>[] {
    const { numHeldOut } = this;
    const values = { name: 'held_out', batchSize: Math.min(numHeldOut, 128), evalLoopNumBatches: -1 };
    return [this.pairs({ ...values, splitName: `all[:${numHeldOut}]` })];
  }

  private pairs(values: Partial<ConfigValues<SeqioInput>> & { splitName: string }): Config<SeqioInput> {
    const { feature, bosId } = this.tokens();
    return SeqioInput.config({
      mixtureOrTask: Task.config({
        source: this.source(),
        preprocessors: this.preprocessors(),
        features: { inputs: feature, targets: feature },
        predictMetrics: this.predictMetrics(),
      }),
      taskFeatureLengths: this.lengths(),
      featureConverter: SequenceModelFeatures.config({ bosId }),
      batchSize: this.batchSize,
      ...values,
    });
  }
}

const letters = 'abcdefghijklmnopqrstuvwxyz';
const longestString = 16;

/** Strings of random letters, which are their own targets. */
export class RandomStrings extends MadePairs.with({}) {
  protected override pair(draw: Draw) {
    const inputs = Array.from({ length: 4 + draw(longestString - 3) }, () => pick(draw, letters)).join('');
    return { inputs, targets: inputs };
  }
}

/** Copies strings of 4 to 16 letters that it has not seen. */
export class Copy extends PairExperiment.with({}) {
  protected override tokens() {
    return charactersOf(END + letters);
  }
  protected override lengths() {
    return { inputs: longestString, targets: longestString + 1 };
  }

  protected override source() {
    return RandomStrings.config();
  }
}

/** Nouns with their translations, which are of class a or o. */
export const nouns = {
  bird: 'ruma',
  cat: 'melo',
  dog: 'bako',
  fish: 'sita',
  horse: 'tavo',
  king: 'girda',
  star: 'lunto',
  tree: 'polma',
};
export const adjectives = { big: 'gorn', old: 'vek', red: 'ruz', small: 'pim', wild: 'drav' };
export const verbs = { find: 'lek', follow: 'sund', hear: 'ora', know: 'mit', see: 'vid' };
export const adverbs = { often: 'ofa', 'not yet': 'neza', today: 'dia' };
const wordsOf = <T extends object>(words: T) => Object.keys(words) as (keyof T & string)[];

/** A noun phrase in both languages. */
function nounPhrase(draw: Draw): { text: string; translation: string; isPlural: boolean } {
  const noun = pick(draw, wordsOf(nouns));
  const isPlural = draw(2) === 1;
  const adjective = draw(2) === 1 ? pick(draw, wordsOf(adjectives)) : null;
  const isDefinite = draw(2) === 1;
  const singular = nouns[noun];
  // Articles and adjectives agree with the noun in class and number; adjectives follow.
  const ending = singular.at(-1)! + (isPlural ? 's' : '');
  const plural = noun === 'fish' ? 'fish' : `${noun}s`;
  const translation = [
    (isDefinite ? 'l' : 'un') + ending,
    singular + (isPlural ? 's' : ''),
    ...(adjective ? [adjectives[adjective] + ending] : []),
  ];
  const article = isDefinite ? ['the'] : isPlural ? ['some'] : ['a'];
  const text = [...article, ...(adjective ? [adjective] : []), isPlural ? plural : noun];
  return { text: text.join(' '), translation: translation.join(' '), isPlural };
}

/**
 * Sentences of a subject, a verb, an object and sometimes an adverb. The translation puts the adverb first and the verb last; the verb
 * agrees with its subject, articles and adjectives with their noun.
 */
export class Sentences extends MadePairs.with({}) {
  protected override pair(draw: Draw) {
    const [subject, object] = [nounPhrase(draw), nounPhrase(draw)];
    const verb = pick(draw, wordsOf(verbs));
    const adverb = draw(2) === 1 ? pick(draw, wordsOf(adverbs)) : null;
    const inputs = [subject.text, subject.isPlural ? verb : `${verb}s`, object.text, adverb ?? ''];
    const conjugated = verbs[verb] + (subject.isPlural ? 'unt' : 'it');
    const targets = [adverb ? adverbs[adverb] : '', subject.translation, object.translation, conjugated];
    return { inputs: inputs.join(' ').trim(), targets: targets.join(' ').trim() };
  }
}

/** Translates sentences that it has not seen. */
export class Translate extends PairExperiment.with({}) {
  protected override tokens() {
    return charactersOf(`${END} ${letters}`);
  }
  protected override lengths() {
    return { inputs: 56, targets: 56 };
  }

  protected override source() {
    return Sentences.config();
  }
}
