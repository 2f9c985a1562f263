/** @file Prompt lookup: the text of greedy decoding in fewer calls of the model, drafts, models that take nothing back. */
import { expect, test } from 'vitest';
import { prngKey } from '../../src/compiler/index.js';
import { GreedyDecoder, PromptLookupDecoder, Stepper } from '../../src/decoding/index.js';
import { lookedUp } from '../../src/decoding/promptLookupDecoder.js';
import { build } from '../../src/hparams/index.js';
import { DotProductAttention, WindowCache } from '../../src/layers/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { randomParams, randomPrompts } from './randomModels.js';

test('a draft is what followed the newest earlier place of the longest end', () => {
  expect(lookedUp([1, 2, 3, 9, 2, 3, 4, 1, 2, 3], 3, 2)).toEqual([9, 2]);
  expect(lookedUp([1, 2, 3, 9, 2, 3, 4, 1, 2, 3], 2, 9)).toEqual([4, 1, 2, 3]);
  expect(lookedUp([5, 5], 3, 4)).toEqual([5]);
  expect(lookedUp([1, 2, 3], 3, 4)).toEqual([]);
});

const [V, SEQLEN] = [13, 48];

function modelOf(windowSize: number | null): LanguageModel {
  const lmTpl = gpt2Lm({ vocabSize: V, modelDims: 16, numLayers: 1, numHeads: 2, maxSeqLength: SEQLEN });
  if (windowSize !== null)
    lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl = DotProductAttention.config({
      ...{ inputDim: 16, hiddenDim: 16, numHeads: 2, windowSize, cacheTpl: WindowCache.config() },
    });
  return build(LanguageModel.config({ lmTpl })) as LanguageModel;
}

const request = { ...randomPrompts([3, 12, 7], V), key: prngKey(1) };

test('the text is that of greedy decoding, in fewer calls', async () => {
  const model = modelOf(null);
  const fields = { seqlen: SEQLEN, eosId: [2], minDecodeSteps: 4 };
  const greedy = build(GreedyDecoder.config(fields)) as GreedyDecoder;
  const lookup = build(PromptLookupDecoder.config({ ...fields, numDraftTokens: 5 })) as PromptLookupDecoder;
  const given = { model, params: randomParams(model, 3, 2), rows: 3, seqlen: SEQLEN };
  const compileOptions = (name: string) => ({ name, numThreads: 1 });
  const plain = await Stepper.create({ ...given, compileOptions, rule: greedy.rule });
  const expected = await greedy.decode({ ...request, ...plain.calls });
  await plain.dispose();
  const { rule, draftTokens } = lookup;
  const stepper = await Stepper.create({ ...given, compileOptions, rule, draftTokens });
  let calls = 0;
  const counted =
    <R>(call: (ids: Int32Array, positions: Int32Array) => R) =>
    (ids: Int32Array, positions: Int32Array): R => {
      calls++;
      return call(ids, positions);
    };
  const counting = { ...stepper.calls };
  for (const name of ['extendRows', 'extendDrafts'] as const) {
    const call = stepper.calls[name]! as (ids: Int32Array, positions: Int32Array) => Promise<unknown>;
    Object.assign(counting, { [name]: counted(call) });
  }
  const output = await lookup.decode({ ...request, ...counting });
  await stepper.dispose();
  expect([...output.outputIds.data]).toEqual([...expected.outputIds.data]);
  expect([...output.decodeLengths.data]).toEqual([...expected.decodeLengths.data]);
  for (const [i, logprob] of expected.logprobs.data.entries())
    expect(output.logprobs.data[i]).toBeCloseTo(logprob, 4);
  const steps = Math.max(...[3, 12, 7].map((length, row) => expected.decodeLengths.data[row]! - length));
  expect(steps).toBeGreaterThan(20);
  expect(calls).toBeLessThan(0.7 * steps);
});

test('a model whose state takes nothing back is named', async () => {
  const model = modelOf(5);
  const lookup = build(PromptLookupDecoder.config({ seqlen: SEQLEN })) as PromptLookupDecoder;
  const stepper = await Stepper.create({
    ...{ model, params: randomParams(model, 3, 2), rows: 3, seqlen: SEQLEN, rule: lookup.rule },
    ...{ draftTokens: lookup.draftTokens, compileOptions: (name: string) => ({ name, numThreads: 1 }) },
  });
  await expect(lookup.decode({ ...request, ...stepper.calls })).rejects.toThrow(
    /^decode: drafts need a state whose tokens can be taken back, one place each; '.*key_state' has none\.$/,
  );
  await stepper.dispose();
});
