/** @file Settings of single examples, penalties and scores: on the host and inside the step, and by whole decodes. */
import { afterAll, expect, test } from 'vitest';
import { type HostTensor, prngKey } from '../../src/compiler/index.js';
import {
  type DecodeOutput,
  type DecodeRequest,
  type ExtendStep,
  GreedyDecoder,
  SampleDecoder,
  Stepper,
} from '../../src/decoding/index.js';
import { build } from '../../src/hparams/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { engines } from '../compiler/engines.js';
import { int32, randomParams, randomPrompts } from './randomModels.js';

const [V, SEQLEN] = [23, 40];

const float32 = (data: number[]): HostTensor => ({
  ...{ shape: [data.length], dtype: 'float32' },
  data: Float32Array.from(data),
});

const opened: Stepper[] = [];
afterAll(() => Promise.all(opened.map((stepper) => stepper.dispose())));

/** A decoder with every setting that a program knows. */
const decoder = build(
  SampleDecoder.config({
    ...{ seqlen: SEQLEN, eosId: [5, 6], minDecodeSteps: 7, numSamples: 2, k: 12, p: 0.95 },
    ...{ minP: 0.02, repetitionPenalty: 1.2, presencePenalty: 0.2, frequencyPenalty: 0.3 },
    ...{ logitBias: { 5: 3, 8: 0.5 }, numPerTokenLogprobs: 2, returnEntropyScore: true },
  }),
) as SampleDecoder;

const settings = {
  temperature: float32([1.2, 0, 0.8]),
  perExampleTopK: int32([3], [0, 3, 5]),
  perExampleTopP: float32([1, 0.5, 0.9]),
  perExampleMaxDecodeSteps: int32([3], [26, 9, 4]),
  gumbelPrngKey: int32([3], [1, 2, 3]),
};

for (const [title, { engine, available }] of engines)
  test.skipIf(!available)(`all settings at once, on ${title}: as on the host from logits`, async () => {
    const lmTpl = gpt2Lm({ vocabSize: V, modelDims: 16, numLayers: 1, numHeads: 2, maxSeqLength: SEQLEN });
    const model = build(LanguageModel.config({ lmTpl })) as LanguageModel;
    const request = { ...randomPrompts([12, 30, 19], V), settings, key: prngKey(4) };
    const outputs: DecodeOutput[] = [];
    for (const inProgram of [true, false]) {
      const stepper = await Stepper.create({
        ...{ model, params: randomParams(model, 1, 2), rows: decoder.numRows(3), seqlen: SEQLEN },
        rule: inProgram ? decoder.rule : null,
        rowSettings: inProgram ? decoder.ruleFields(settings) : [],
        compileOptions: (name) => ({ name, engine: engine as 'native', numThreads: 2 }),
      });
      opened.push(stepper);
      outputs.push(await decoder.decode({ ...request, ...stepper.calls }));
    }
    const [drawn, expected] = outputs as [DecodeOutput, DecodeOutput];
    for (const name of ['outputIds', 'decodeLengths', 'topIds'] as const)
      expect([...drawn[name]!.data], name).toEqual([...expected[name]!.data]);
    for (const name of ['logprobs', 'entropy', 'topLogprobs'] as const)
      for (const [i, value] of expected[name]!.data.entries())
        expect(drawn[name]!.data[i]).toBeCloseTo(value, 3);
    expect(drawn.topIds!.shape).toEqual([3, 2, SEQLEN, 2]);
    // Greedy samples are alike; no row is longer than its own limit, none ends before seven tokens or its limit.
    expect(drawn.outputIds.data.slice(2 * SEQLEN, 3 * SEQLEN)).toEqual(
      drawn.outputIds.data.slice(3 * SEQLEN, 4 * SEQLEN),
    );
    for (const [row, length] of drawn.decodeLengths.data.entries()) {
      const steps = length - [12, 30, 19][Math.floor(row / 2)]!;
      expect(steps).toBeLessThanOrEqual([26, 9, 4][Math.floor(row / 2)]!);
      expect(steps).toBeGreaterThanOrEqual(Math.min(7, [26, 9, 4][Math.floor(row / 2)]!));
    }
  });

/** Prompts of one token, and the logits of a model that always gives these. */
function always(logits: number[], rows: number): DecodeRequest {
  const extendStep: ExtendStep = async (ids) =>
    Float32Array.from({ length: ids.length * logits.length }, (_, i) => logits[i % logits.length]!);
  return {
    ...{ prefixIds: int32([rows, 1], new Array(rows).fill(0)), extendStep, key: prngKey(0) },
    prefixLengths: int32([rows], new Array(rows).fill(1)),
  };
}

test('no end of a sequence is drawn before minDecodeSteps', async () => {
  const greedy = build(
    GreedyDecoder.config({ seqlen: 8, eosId: [2, 3], minDecodeSteps: 3 }),
  ) as GreedyDecoder;
  const { outputIds, logprobs } = await greedy.decode(always([0, 1, 3, 2], 1));
  expect([...outputIds.data]).toEqual([0, 1, 1, 1, 2, 0, 0, 0]);
  // Under the model: what may not be drawn yet has its share.
  expect(logprobs.data[1]).toBeCloseTo(1 - Math.log(1 + Math.E + Math.E ** 3 + Math.E ** 2), 5);
});

test('an example ends with its own sequence of tokens, and at its own length', async () => {
  const script = [5, 4, 3, 5, 4, 4, 1, 1];
  const extendStep: ExtendStep = async (ids, step) =>
    Float32Array.from({ length: ids.length * 6 }, (_, i) => (i % 6 === script[step] ? 1 : 0));
  const given = {
    eosId: int32([4, 2], [4, 4, 0, 3, 0, 0, 5, 4]),
    perExampleMaxDecodeSteps: int32([4], [20, 20, 4, 20]),
  };
  const greedy = build(GreedyDecoder.config({ seqlen: 9, eosId: 5, maxDecodeSteps: 6 })) as GreedyDecoder;
  const output = await greedy.decode({ ...always([0], 4), extendStep, settings: given });
  expect([...output.decodeLengths.data]).toEqual([7, 4, 5, 3]);
  const misshapen = { perExampleMaxDecodeSteps: int32([2], [1, 1]) };
  await expect(greedy.decode({ ...always([0], 4), extendStep, settings: misshapen })).rejects.toThrow(
    "decode: expected 'perExampleMaxDecodeSteps' of shape [4], got [2].",
  );
});

test('penalties follow the tokens of prompt and continuation', async () => {
  const decode = async (fields: object) => {
    const sampler = build(
      SampleDecoder.config({ seqlen: 6, eosId: [], temperature: 0, ...fields }),
    ) as SampleDecoder;
    return [...(await sampler.decode(always([1.9, 1.8, 1.5], 1))).outputIds.data];
  };
  expect(await decode({})).toEqual([0, 0, 0, 0, 0, 0]);
  // The prompt's token is a repetition, but none of the continuation's.
  expect(await decode({ repetitionPenalty: 2 })).toEqual([0, 1, 2, 0, 0, 0]);
  expect(await decode({ presencePenalty: 1 })).toEqual([0, 0, 1, 2, 0, 0]);
  expect(await decode({ frequencyPenalty: 0.25 })).toEqual([0, 0, 1, 0, 1, 2]);
  expect(await decode({ logitBias: { 2: 1 } })).toEqual([0, 2, 2, 2, 2, 2]);
});

test('scores of drawn tokens: entropy in nats, likeliest tokens', async () => {
  const sampler = build(
    SampleDecoder.config({ seqlen: 3, k: 1, returnEntropyScore: true, numPerTokenLogprobs: 2 }),
  ) as SampleDecoder;
  const { entropy, topIds, topLogprobs } = await sampler.decode(
    always([0, Math.log(2), 0, Number.NEGATIVE_INFINITY], 1),
  );
  expect(entropy!.data[0]).toBe(0);
  expect(entropy!.data[2]).toBeCloseTo(1.5 * Math.log(2), 5);
  expect([...topIds!.data]).toEqual([0, 0, 1, 0, 1, 0]);
  expect(topLogprobs!.data[0]).toBe(1);
  expect(topLogprobs!.data[2]).toBeCloseTo(-Math.log(2), 5);
  expect(topLogprobs!.data[3]).toBeCloseTo(-Math.log(4), 5);
});
