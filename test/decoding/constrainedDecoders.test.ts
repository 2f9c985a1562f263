/** @file Every decoder under a constraint, by the compiled programs and by logits on the host. */
import { expect, test } from 'vitest';
import { prngKey } from '../../src/compiler/index.js';
import {
  type BaseDecoder,
  BeamSearchDecoder,
  Constraints,
  FlatBeamSearchDecoder,
  GreedyDecoder,
  PromptLookupDecoder,
  SampleDecoder,
  SpeculativeDecoder,
  Stepper,
} from '../../src/decoding/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { engines } from '../compiler/engines.js';
import { randomParams, randomPrompts } from './randomModels.js';

const tokens = [...'abcdefgh{}":,01 ', 'ab', 'bc', '{"', '":', 'ca'].map((text) =>
  new TextEncoder().encode(text),
);
const [END, V] = [tokens.length, tokens.length + 1];
const constraints = new Constraints(V, (id) => tokens[id], new Set([END]));
const lm = gpt2Lm({ vocabSize: V, modelDims: 16, numLayers: 1, numHeads: 2, maxSeqLength: 40 });
const model = build(LanguageModel.config({ lmTpl: lm }));
const params = randomParams(model, 3, 2);
const prompts = randomPrompts([3, 1, 4], V);
const common = { seqlen: 24, eosId: END, maxDecodeSteps: 18 };
const regex = '(abc|ca[01]+ ){2,5}h?';

async function texts(config: Config<BaseDecoder>, byPrograms: boolean): Promise<(string | null)[]> {
  const decoder = build(config);
  const stepper = await Stepper.create({
    ...{ model, params, rows: decoder.numRows(3), seqlen: 24, candidates: undefined, rule: null },
    ...(byPrograms && {
      rule: decoder.rule,
      candidates: decoder.candidates,
      draftTokens: decoder.draftTokens,
      ...(decoder.draft && { draft: { model, params: randomParams(model, 4, 2) } }),
    }),
    isConstrained: byPrograms && decoder.isConstrained,
    compileOptions: () => ({ engine: engines[0]![1].engine }),
  });
  try {
    const request = { ...prompts, key: prngKey(5), constraints, ...stepper.calls };
    const { outputIds, decodeLengths, prefixLengths } = await decoder.decode(request);
    const each = decodeLengths.data.length / 3;
    return Array.from(decodeLengths.data, (length, row) => {
      const begin = prefixLengths.data[prefixLengths.data.length === 3 ? Math.floor(row / each) : row]!;
      const ids = [...outputIds.data.subarray(row * 24 + begin, row * 24 + length)];
      if (ids.at(-1) !== END) return null;
      return Buffer.concat(ids.slice(0, -1).map((id) => tokens[id]!)).toString();
    });
  } finally {
    await stepper.dispose();
  }
}

const fields = { ...common, constraint: { regex } };
const decoders: Record<string, Config<BaseDecoder>> = {
  greedy: GreedyDecoder.config(fields),
  samples: SampleDecoder.config({ ...fields, numSamples: 3, k: 4 }),
  'guided samples': SampleDecoder.config({
    ...fields,
    numSamples: 2,
    cfGuidanceScale: 1.5,
    minDecodeSteps: 6,
    presencePenalty: 0.5,
  }),
  drafts: SpeculativeDecoder.config({ ...fields, draftTpl: lm, draftCheckpoint: 'none' }),
  beams: BeamSearchDecoder.config({ ...fields, beamSize: 3 }),
  'flat beams': FlatBeamSearchDecoder.config({ ...fields, beamSize: 2, convention: 'transformers' }),
};

test.each(Object.entries(decoders))(
  '%s: every text matches, by programs as by logits',
  async (name, config) => {
    const own = await texts(config, true);
    const whole = own.filter((text) => text !== null);
    for (const text of whole) expect(text).toMatch(new RegExp(`^(?:${regex})$`));
    expect(whole.length).toBeGreaterThan(0);
    // Drafts take other random numbers, and guidance by logits needs programs of whole prompts.
    if (['greedy', 'samples', 'beams'].includes(name)) expect(await texts(config, false)).toEqual(own);
  },
);

test('drafts are cut where the constraint does not allow them: the text is the greedy one', async () => {
  const [greedy, lookup] = [GreedyDecoder, PromptLookupDecoder].map((Decoder) =>
    Decoder.config({ ...common, constraint: { regex: '(abcab){2,9}|(ca0)+' } }),
  );
  expect(await texts(lookup!, true)).toEqual(await texts(greedy!, true));
});

test('a text ends where nothing comes behind it, though no token ends sequences; a decoder needs a vocabulary', async () => {
  const decoder = build(GreedyDecoder.config({ seqlen: 24, eosId: [], constraint: { regex: 'abc|ca' } }));
  const endless = new Constraints(V, (id) => tokens[id], new Set());
  const request = { ...randomPrompts([2], V), key: prngKey(1), extendStep: async () => new Float32Array(V) };
  const { decodeLengths, outputIds } = await decoder.decode({ ...request, constraints: endless });
  const text = Buffer.concat(
    [...outputIds.data.subarray(2, decodeLengths.data[0])].map((id) => tokens[id]!),
  ).toString();
  expect(['abc', 'ca']).toContain(text);
  await expect(decoder.decode(request)).rejects.toThrow(
    'GreedyDecoder.constraint: expected tokens that have texts, and the model continues ids without a vocabulary.',
  );
  const silent = new Constraints(V, (id) => (id === 1 ? undefined : tokens[id]), new Set());
  const odd = build(GreedyDecoder.config({ seqlen: 24, eosId: [], constraint: { regex: 'gbg' } }));
  await expect(odd.decode({ ...request, constraints: silent })).rejects.toThrow(
    'constraint: no token of the vocabulary goes on with the text.',
  );
});
