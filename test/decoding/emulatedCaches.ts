/** @file Models with caches of 8 bits, and an emulation of these in floats, decoded. */
import { expect } from 'vitest';
import { prngKey, type Tensor, tf } from '../../src/compiler/index.js';
import {
  type BaseDecoder,
  BeamSearchDecoder,
  type DecodeOutput,
  GreedyDecoder,
  PromptLookupDecoder,
  SampleDecoder,
  Stepper,
  type StepperOptions,
} from '../../src/decoding/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import {
  type CachedHeads,
  DotProductAttention,
  FullCache,
  GroupedQueryAttention,
  type StepArgs,
} from '../../src/layers/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { randomParams, randomPrompts } from './randomModels.js';

export const SEQLEN = 84;
const [V, D] = [19, 32];
const LENGTHS = [3, 70];

/** x [B, T, N, H] to the nearest of 255 numbers from -m to m, where m is the largest in a token's head; halves away from 0. */
function nearest(x: Tensor): Tensor {
  const step = tf.maximum(tf.div(tf.max(tf.abs(x), -1, true), 127), 1e-30);
  return tf.mul(tf.sign(x), tf.mul(tf.floor(tf.add(tf.div(tf.abs(x), step), 0.5)), step)) as Tensor;
}

/** A cache of floats that takes rounded ones. */
class Emulated extends FullCache {
  override extend(key: Tensor, value: Tensor, args: StepArgs): CachedHeads {
    return super.extend(nearest(key), nearest(value), args);
  }
}

type Attention = (cacheTpl: Config<FullCache>) => Config<DotProductAttention>;

const fields = { inputDim: D, hiddenDim: D, numHeads: 4 };
/** Attentions over a cache. */
export const attentions: Readonly<Record<string, Attention>> = {
  plain: (cacheTpl) => DotProductAttention.config({ ...fields, cacheTpl }),
  'grouped queries, rotated, in a window': (cacheTpl) =>
    GroupedQueryAttention.config({
      ...{ ...fields, numKvHeads: 2, useRotaryPositionEmb: true, windowSize: 20, cacheTpl },
    }),
};

/** A small language model. */
export function modelOf(attention: Attention, cacheTpl: Config<FullCache>): LanguageModel {
  const lmTpl = gpt2Lm({ vocabSize: V, modelDims: D, numLayers: 2, numHeads: 4, maxSeqLength: SEQLEN });
  lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl = attention(cacheTpl);
  return build(LanguageModel.config({ lmTpl }));
}

const ends = { seqlen: SEQLEN, eosId: [5], maxDecodeSteps: 10 };
const sharing = { prompts: 2, promptSize: 69, steps: 10 };
/** Decoders, and how their rows have caches. */
export const decoders: Readonly<
  Record<string, { of: Config<BaseDecoder>; more?: Pick<StepperOptions, 'sharing' | 'rowsApart'> }>
> = {
  greedy: { of: GreedyDecoder.config(ends) },
  'prompt lookup': { of: PromptLookupDecoder.config(ends) },
  beams: { of: BeamSearchDecoder.config({ ...ends, beamSize: 3 }) },
  samples: { of: SampleDecoder.config({ ...ends, numSamples: 2, k: 6 }) },
  'samples that share prompts': {
    of: SampleDecoder.config({ ...ends, numSamples: 2, k: 6, lazyPrefixBroadcast: true }),
    more: { sharing },
  },
};

/** A decode of random prompts. */
export async function decoded(
  model: LanguageModel,
  { of, more }: (typeof decoders)[string],
  engine: 'native' | 'onnx',
): Promise<DecodeOutput> {
  const decoder = build(of);
  const { rule, candidates, draftTokens } = decoder;
  const stepper = await Stepper.create({
    ...{ model, params: randomParams(model, 1, 1.5), rows: decoder.numRows(2), seqlen: SEQLEN, ...more },
    ...{ rule, candidates, draftTokens },
    compileOptions: (name) => ({ name, engine, numThreads: 2 }),
  });
  const output = await decoder.decode({ ...randomPrompts(LENGTHS, V), key: prngKey(3), ...stepper.calls });
  await stepper.dispose();
  return output;
}

/** Holds a decode with caches of 8 bits against the emulation. */
export async function expectEmulated(
  attention: Attention,
  decoder: (typeof decoders)[string],
  engine: 'native' | 'onnx',
): Promise<void> {
  const output = await decoded(modelOf(attention, FullCache.config({ precision: 8 })), decoder, engine);
  const expected = await decoded(modelOf(attention, Emulated.config()), decoder, engine);
  expect([...output.outputIds.data]).toEqual([...expected.outputIds.data]);
  for (const [i, logprob] of expected.logprobs.data.entries())
    expect(output.logprobs.data[i]).toBeCloseTo(logprob, 4);
}
