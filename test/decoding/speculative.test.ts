/** @file Speculative decoding: the text of greedy decoding, the distribution of the model, drafts of models that do not fit. */
import { expect, test } from 'vitest';
import { prngKey } from '../../src/compiler/index.js';
import {
  type DecodeRequest,
  GreedyDecoder,
  SpeculativeDecoder,
  Stepper,
  type StepperOptions,
} from '../../src/decoding/index.js';
import { build } from '../../src/hparams/index.js';
import { WindowCache } from '../../src/layers/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { int32, randomParams, randomPrompts } from './randomModels.js';

const [V, SEQLEN] = [13, 48];

function modelOf(vocabSize = V, windowSize: number | null = null): LanguageModel {
  const lmTpl = gpt2Lm({ vocabSize, modelDims: 16, numLayers: 1, numHeads: 2, maxSeqLength: SEQLEN });
  if (windowSize !== null) {
    const attention = lmTpl.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl;
    Object.assign(attention, { windowSize, cacheTpl: WindowCache.config() });
  }
  return build(LanguageModel.config({ lmTpl })) as LanguageModel;
}

const lengths = [3, 12, 1];
const request = { ...randomPrompts(lengths, V), key: prngKey(1) };
const model = modelOf();
const options = {
  ...{ model, params: randomParams(model, 3, 2), rows: 3, seqlen: SEQLEN, rule: null },
  compileOptions: (name: string) => ({ name, numThreads: 1 }),
};
const fields = { seqlen: SEQLEN, eosId: [2], minDecodeSteps: 4 };
const drafted = { draftTpl: LanguageModel.config(), draftCheckpoint: 'run' };
const speculative = (more = {}) =>
  build(SpeculativeDecoder.config({ ...fields, ...drafted, temperature: 0, ...more })) as SpeculativeDecoder;

/** The tokens of a decode, and the calls of the model that it took behind the prompts. */
async function decoded(decoder: SpeculativeDecoder, draft: StepperOptions['draft']) {
  const stepper = await Stepper.create({ ...options, draftTokens: decoder.draftTokens, draft });
  const { extendRows, extendDraftLogits, ...calls } = stepper.calls;
  let count = 0;
  const counted = (call: any) => (ids: Int32Array, positions: Int32Array) => {
    count++;
    return call(ids, positions);
  };
  const output = await decoder.decode({
    ...{ ...request, ...calls },
    ...{ extendRows: counted(extendRows), extendDraftLogits: counted(extendDraftLogits) },
  });
  await stepper.dispose();
  return { output, calls: count };
}

test('the text is that of greedy decoding, whatever is drafted, in fewer calls', async () => {
  const greedy = build(GreedyDecoder.config(fields)) as GreedyDecoder;
  const plain = await Stepper.create({ ...options, rule: greedy.rule });
  const expected = await greedy.decode({ ...request, ...plain.calls });
  await plain.dispose();
  const steps = Math.max(...lengths.map((length, row) => expected.decodeLengths.data[row]! - length));
  expect(steps).toBeGreaterThan(20);
  const drafts = [options.params, randomParams(model, 4, 2)].map((params) => ({ model, params }));
  const calls: number[] = [];
  for (const draft of drafts) {
    const found = await decoded(speculative(), draft);
    expect([...found.output.outputIds.data]).toEqual([...expected.outputIds.data]);
    for (const [i, logprob] of expected.logprobs.data.entries())
      expect(found.output.logprobs.data[i]).toBeCloseTo(logprob, 4);
    calls.push(found.calls);
  }
  // A draft model that is the model itself has all its tokens kept, up to the end, where a draft has no room.
  expect(calls[0]).toBeLessThanOrEqual(Math.ceil(steps / 5) + 4);
  expect(calls[1]).toBeLessThanOrEqual(steps);
});

test('draft models that do not fit are named', async () => {
  const { draftTokens } = speculative();
  const create = (draft: LanguageModel) =>
    Stepper.create({ ...options, draftTokens, draft: { model: draft, params: randomParams(draft, 1) } });
  await expect(create(modelOf(V + 2))).rejects.toThrow(
    /^decode: the model that drafts has 15 token ids, and the model 13\.$/,
  );
  await expect(create(modelOf(V, 5))).rejects.toThrow(
    /^decode: drafts need a state whose tokens can be taken back, one place each; '.*key_state' has none\.$/,
  );
});

/** Probabilities of the token after each one: of a model, and of one that drafts. */
const bigrams = [
  [0.1, 0.5, 0.3, 0.1],
  [0.25, 0.25, 0.05, 0.45],
  [0.6, 0.1, 0.2, 0.1],
  [0.3, 0.3, 0.2, 0.2],
];
const drafting = [
  [0.3, 0.3, 0.2, 0.2],
  [0.1, 0.1, 0.7, 0.1],
  [0.5, 0.2, 0.2, 0.1],
  [0.05, 0.45, 0.25, 0.25],
];
const logitsOf = (table: readonly (readonly number[])[]) => async (ids: Int32Array) =>
  Float32Array.from([...ids].flatMap((id) => table[id]!.map(Math.log)));

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/** Chi-square statistics of the pairs of tokens at the places of many rows' continuations, each of three tokens. */
async function chiSquares(verifying: readonly (readonly number[])[], temperature: number): Promise<number[]> {
  const rows = 2000;
  const decoder = speculative({
    seqlen: 12,
    eosId: [],
    minDecodeSteps: 0,
    maxDecodeSteps: 3,
    temperature,
    k: 0,
  });
  const extendRows = logitsOf(verifying);
  const { outputIds } = await decoder.decode({
    ...{
      prefixIds: int32([rows, 1], new Int32Array(rows)),
      prefixLengths: int32([rows], new Int32Array(rows).fill(1)),
    },
    ...{ key: prngKey(7), extendStep: extendRows, extendRows, extendDraftLogits: extendRows },
    extendDrafts: async () => ({ ids: new Int32Array(), logprobs: new Float32Array() }),
    draft: { extendStep: logitsOf(drafting), extendRows: logitsOf(drafting) },
  } satisfies DecodeRequest);
  const warm = bigrams.map((row) => {
    const weights = row.map((p) => p ** (1 / temperature));
    return weights.map((weight) => weight / sum(weights));
  });
  /** Of places of the continuation: tokens before them, and their distribution. */
  const counts = [0, 1, 2].map(() => bigrams.map((row) => row.map(() => 0)));
  for (let row = 0; row < rows; row++)
    for (const [place, of] of counts.entries()) {
      const [before, id] = outputIds.data.subarray(row * 12 + place, row * 12 + place + 2);
      of[before!]![id!]! += 1;
    }
  return counts.map((of) =>
    sum(
      of.flatMap((row, before) => {
        const total = sum(row);
        return row.map((count, id) => {
          const mean = total * warm[before]![id]!;
          return mean === 0 ? 0 : (count - mean) ** 2 / mean;
        });
      }),
    ),
  );
}

test('the distribution is that of the model, at any temperature', async () => {
  // 12 degrees of freedom, or 3 where all come behind one token: one of 100,000 draws is beyond.
  for (const temperature of [1, 0.7])
    expect(Math.max(...(await chiSquares(bigrams, temperature)))).toBeLessThan(45);
  // Of rows that another model verifies, it is not.
  expect(Math.min(...(await chiSquares(drafting, 1)))).toBeGreaterThan(200);
});
