/** @file Objectives without labels: span corruption, prefixes, masked tokens (t5.data.preprocessors). */
import { z } from 'zod';
import { iidNoiseMask, noiseCounts, randomSpansNoiseMask, withSentinels } from './noiseMasks.js';
import {
  type Example,
  featureOf,
  MapPreprocessor,
  type PreprocessContext,
  tokenId,
  tokensOf,
} from './preprocessor.js';
import { uncounted } from './sequenceRows.js';

const TARGETS = 'targets';

/**
 * T5's span corruption: `inputs` are the targets with each random span replaced by a sentinel, `targets` the spans, each
 * after its sentinel. Sentinels count down from `sentinelId`.
 */
export class SpanCorruption extends MapPreprocessor.with({
  noiseDensity: z.number().gt(0).lt(1).default(0.15).describe('Share of the tokens that are hidden.'),
  meanNoiseSpanLength: z.number().min(1).default(3).describe('Tokens of a hidden span, on average.'),
  sentinelId: tokenId
    .positive()
    .nullable()
    .default(null)
    .describe('Id of the first sentinel; null: the last one of the vocabulary.'),
}) {
  protected override map(example: Example, context: PreprocessContext): Example {
    const { noiseDensity, meanNoiseSpanLength } = this.hp;
    const sentinel =
      this.hp.sentinelId ?? featureOf(context, TARGETS, 'whose tokens are hidden').vocabSize - 1;
    const tokens = tokensOf(example, TARGETS);
    const mask = randomSpansNoiseMask(tokens.length, noiseDensity, meanNoiseSpanLength, context.draws);
    return {
      ...example,
      inputs: withSentinels(tokens, (i) => mask[i] === 1, sentinel),
      targets: withSentinels(tokens, (i) => mask[i] === 0, sentinel),
    };
  }
}

/**
 * T5's random_spans_helper: how many tokens to cut a text into, so that span corruption gives `inputsLength` inputs and
 * `targetsLength` targets, each with an end.
 *
 * @param inputsLength 3 or more.
 */
export function spanCorruptionLengths(
  inputsLength: number,
  { noiseDensity = 0.15, meanNoiseSpanLength = 3 } = {},
): { readonly tokensLength: number; readonly targetsLength: number } {
  const lengthsOf = (tokens: number): { inputs: number; targets: number } => {
    const { noise, spans } = noiseCounts(tokens, noiseDensity, meanNoiseSpanLength);
    return { inputs: tokens - noise + spans + 1, targets: noise + spans + 1 };
  };
  let tokensLength = Math.max(inputsLength - 1, 2);
  while (lengthsOf(tokensLength + 1).inputs <= inputsLength) tokensLength++;
  const { targets } = lengthsOf(tokensLength);
  // As T5 has it: at half the tokens, inputs and targets come out equal.
  const isEven = noiseDensity === 0.5 && targets > inputsLength;
  return isEven
    ? { tokensLength: tokensLength - 1, targetsLength: targets - 1 }
    : { tokensLength, targetsLength: targets };
}

/** Cuts the targets at a random place: the first part becomes the inputs (T5's prefix_lm). */
export class PrefixLm extends MapPreprocessor {
  protected override map(example: Example, { draws }: PreprocessContext): Example {
    const tokens = tokensOf(example, TARGETS);
    const [most, least] = [tokens.length - 1, Math.min(tokens.length - 1, 1)];
    const cut = tokens.length === 0 ? 0 : least + draws.below(most - least + 1);
    return { ...example, inputs: tokens.subarray(0, cut), targets: tokens.subarray(cut) };
  }
}

/**
 * BERT's masked tokens: of a random share of the tokens, most become `maskId` in the inputs, some a random token, and some
 * stay. In the targets the others are negative, which gives them weight 0 in MaskedLanguageModelFeatures.
 */
export class MaskTokens extends MapPreprocessor.with({
  maskId: tokenId.nullable().default(null).describe('Id of the mask; null: the last one of the vocabulary.'),
  noiseDensity: z.number().gt(0).lt(1).default(0.15).describe('Share of the tokens that are predicted.'),
  randomTokenProb: z
    .number()
    .min(0)
    .max(1)
    .default(0.1)
    .describe('Share of these that become random tokens.'),
  keepProb: z.number().min(0).max(1).default(0.1).describe('Share of these that stay as they are.'),
}) {
  protected override map(example: Example, context: PreprocessContext): Example {
    const { noiseDensity, randomTokenProb, keepProb } = this.hp;
    const { draws } = context;
    const { vocabSize } = featureOf(context, TARGETS, 'whose tokens are hidden');
    const maskId = this.hp.maskId ?? vocabSize - 1;
    const tokens = tokensOf(example, TARGETS);
    const mask = iidNoiseMask(tokens.length, noiseDensity, draws);
    const [inputs, targets] = [tokens.slice(), tokens.slice()];
    for (let i = 0; i < tokens.length; i++) {
      if (mask[i] === 0) {
        targets[i] = uncounted(tokens[i]!);
        continue;
      }
      const kind = draws.uniform();
      if (kind < randomTokenProb) inputs[i] = draws.below(vocabSize);
      else if (kind >= randomTokenProb + keepProb) inputs[i] = maskId;
    }
    return { ...example, inputs, targets };
  }
}
