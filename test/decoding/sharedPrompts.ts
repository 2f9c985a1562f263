/** @file Models that decode with the caches of prompts shared by samples, and without. */
import { expect } from 'vitest';
import { prngKey } from '../../src/compiler/index.js';
import { type DecodeOutput, SampleDecoder, Stepper } from '../../src/decoding/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import {
  Alibi,
  DotProductAttention,
  GroupedQueryAttention,
  KeyValuePrefix,
  StackedTransformerRepeated,
  type TransformerLm,
  WindowCache,
} from '../../src/layers/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { randomParams, randomPrompts } from './randomModels.js';

const [V, D, SEQLEN, STEPS, SAMPLES] = [13, 8, 84, 7, 4];
/** Tokens of prompts: one alone, more than a block takes, and some. */
const LENGTHS = [1, 75, 16];

type Change = (
  lm: Config<TransformerLm>,
  fields: { inputDim: number; hiddenDim: number; numHeads: number },
) => void;

const attention =
  (config: (fields: Parameters<Change>[1]) => Config<DotProductAttention>): Change =>
  (lm, fields) => {
    lm.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl = config(fields);
  };

const repeated =
  (unrollInDecode: boolean): Change =>
  (lm) => {
    const { hiddenDims, numHeads, transformerLayerParamsTpl } = lm.stackedTransformerTpl;
    lm.stackedTransformerTpl = StackedTransformerRepeated.config({
      ...{ hiddenDims, numHeads, transformerLayerParamsTpl, xTimes: 2, unrollInDecode },
    });
  };

/** Changes of a language model. */
export const changes: Readonly<Record<string, Change>> = {
  plain: () => {},
  'a prefix model': (lm) => {
    lm.modelType = 'prefix';
  },
  'grouped queries, rotated, in a window, with sinks': attention((fields) =>
    GroupedQueryAttention.config({
      ...{ ...fields, numKvHeads: 1, useRotaryPositionEmb: true, windowSize: 9, useSinks: true },
    }),
  ),
  'convolutions, biases below a cap, trained keys': attention((fields) =>
    DotProductAttention.config({
      ...{ ...fields, dconvQkv: true, attenLogitCap: 2, relativeBiasTpl: Alibi.config() },
      prefixTpl: KeyValuePrefix.config({ prefixLength: 2 }),
    }),
  ),
  'rings, which are copied': attention((fields) =>
    DotProductAttention.config({ ...fields, windowSize: 5, cacheTpl: WindowCache.config() }),
  ),
  'stacked over repetitions': repeated(false),
  'repetitions apart': repeated(true),
};

/** A small language model with a change. */
export function modelOf(change: Change, fpropDtype: 'float32' | 'bfloat16' = 'float32'): LanguageModel {
  const lmTpl = gpt2Lm({ vocabSize: V, modelDims: D, numLayers: 1, numHeads: 2, maxSeqLength: SEQLEN });
  change(lmTpl, { inputDim: D, hiddenDim: D, numHeads: 2 });
  return build(LanguageModel.config({ fpropDtype, lmTpl }));
}

const prompts = randomPrompts(LENGTHS, V);

/** Samples of prompts, and the bytes of state that their decode took. */
export async function decode(
  model: LanguageModel,
  lazyPrefixBroadcast: boolean,
  engine: string,
): Promise<{ output: DecodeOutput; bytes: number }> {
  const fields = { seqlen: SEQLEN, maxDecodeSteps: STEPS, numSamples: SAMPLES, eosId: 3, k: 6 };
  const decoder = build(SampleDecoder.config({ ...fields, lazyPrefixBroadcast }));
  const stepper = await Stepper.create({
    ...{ model, params: randomParams(model, 1, 3), seqlen: SEQLEN, rule: decoder.rule },
    rows: decoder.numRows(LENGTHS.length),
    sharing: decoder.sharing(LENGTHS.length, Math.max(...LENGTHS)),
    compileOptions: (name) => ({ name, engine: engine as 'native', numThreads: 2 }),
  });
  let output: DecodeOutput | undefined;
  // Twice: the second time on caches that are full.
  for (let i = 0; i < 2; i++) {
    stepper.reset();
    output = await decoder.decode({ ...prompts, ...stepper.calls, key: prngKey(4) });
  }
  const bytes = stepper.stateBytes;
  await stepper.dispose();
  return { output: output!, bytes };
}

/** Expects the same tokens, of the same log-probabilities. */
export function expectSame(actual: DecodeOutput, expected: DecodeOutput): void {
  expect(actual.outputIds).toEqual(expected.outputIds);
  expect(actual.decodeLengths).toEqual(expected.decodeLengths);
  for (const [i, logprob] of expected.logprobs.data.entries())
    expect(Math.abs(actual.logprobs.data[i]! - logprob)).toBeLessThan(1e-5);
}

/** The share of the drawn tokens that come before a row's first other one, and how their log-probabilities differ. */
export function compared(actual: DecodeOutput, expected: DecodeOutput) {
  const differences: number[] = [];
  let drawn = 0;
  for (const [row, end] of expected.decodeLengths.data.entries()) {
    const begin = row * SEQLEN + LENGTHS[Math.floor(row / SAMPLES)]!;
    const places = Array.from({ length: row * SEQLEN + end - begin }, (_, i) => begin + i);
    const other = places.findIndex((at) => actual.outputIds.data[at] !== expected.outputIds.data[at]);
    for (const at of places.slice(0, other < 0 ? undefined : other))
      differences.push(Math.abs(actual.logprobs.data[at]! - expected.logprobs.data[at]!));
    drawn += places.length;
  }
  return { alike: differences.length / drawn, differences };
}
