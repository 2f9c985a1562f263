/** @file Memory of caches: it grows with the tokens that rows have, and shrinks when rows leave. */
import { expect, test } from 'vitest';
import type { Pages } from '../../src/compiler/index.js';
import { DecodeState } from '../../src/decoding/decodeState.js';
import { GREEDY, Stepper } from '../../src/decoding/index.js';
import { build } from '../../src/hparams/index.js';
import { FullCache } from '../../src/layers/index.js';
import { gpt2Lm, LanguageModel } from '../../src/models/index.js';
import { Completion } from '../../src/trained/completion.js';
import { generationOf } from '../../src/trained/generation.js';
import { RowBatch } from '../../src/trained/rowBatch.js';
import { engines } from '../compiler/engines.js';
import { runs } from '../faults/campaign.js';
import { randomParams } from './randomModels.js';

test('a row gives back what it has for tokens behind those that stay, of each layer and head', () => {
  const given: unknown[] = [];
  const pages: Pages = { keepSmall: () => {}, giveBack: (_, ranges) => given.push(ranges) };
  // Two layers that are stacked, of two rows with three heads, and 8 places of tokens of 4 elements.
  const tokens = { shape: [2, 2, 3, 8, 4], dtype: 'float32', rowAxis: 1, isPerToken: true } as const;
  const others = { shape: [2, 5], dtype: 'float32' } as const;
  const arrays = {
    tokens: new Float32Array(2 * 2 * 3 * 8 * 4).fill(1),
    others: new Float32Array(10).fill(1),
  };
  const state = new DecodeState({ tokens, others }, arrays, {}, pages);
  state.release(1, 6);
  expect(given.splice(0)).toEqual([
    { begin: 96 + 24, length: 8, count: 3, step: 32 },
    { begin: 288 + 24, length: 8, count: 3, step: 32 },
  ]);
  state.release(1);
  expect(given.splice(0)).toEqual([
    { begin: 96, length: 96 },
    { begin: 288, length: 96 },
  ]);
  state.release(1, 8);
  expect(given.splice(0)).toEqual([]);
  state.clear();
  expect(given.splice(0)).toEqual([{ begin: 0, length: 384 }]);
  expect([arrays.tokens[0], arrays.others[0]]).toEqual([1, 0]);
  new DecodeState({ tokens, others }, arrays).clear();
  expect(arrays.tokens[0]).toBe(0);
});

const [V, D, LAYERS, ROWS] = [23, 64, 4, 8];

/** Caches by their precision: bytes of a token in a head, places with which all rows have a GiB, and tokens of prompts. */
const caches = [
  { precision: null, bytes: 4 * D, seqlen: 1 << 16, length: 3000 },
  { precision: 8 as const, bytes: D + 4, seqlen: 1 << 18, length: 10_000 },
].slice(0, runs(2, 1));

/** Mebibytes that the process has in memory. */
const resident = (): number => process.memoryUsage.rss() / 2 ** 20;

/** A completion of many tokens, all prompts of which begin alike. */
function completionOf(length: number): Completion {
  const defaults = { maxTokens: 100, temperature: 0, topK: 0, topP: null, stop: [], seed: 1 };
  const model = { decoder: { take: () => '', rest: () => '' }, rule: GREEDY, endIds: new Set<number>() };
  const prompt = Int32Array.from({ length }, (_, i) => (i * i) % V);
  return new Completion(prompt, generationOf(defaults, {}), { ...model, enqueue: () => {} });
}

const [, { engine, available }] = engines.find(([name]) => name === 'native')!;

test.skipIf(!available || process.platform !== 'linux').each(caches)(
  'rows take memory for the tokens that they have, and give it back (precision $precision)',
  async ({ precision, bytes, seqlen, length }) => {
    const lm = gpt2Lm({ vocabSize: V, modelDims: D, numLayers: LAYERS, numHeads: 1, maxSeqLength: seqlen });
    const attention = lm.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl;
    attention.cacheTpl = FullCache.config({ precision });
    const model = build(LanguageModel.config({ lmTpl: lm })) as LanguageModel;
    const stepper = await Stepper.create({
      ...{ model, params: randomParams(model, 1), rows: ROWS, rowsApart: true, seqlen, rule: null },
      compileOptions: (name) => ({ name, engine, numThreads: 2 }),
    });
    const batch = new RowBatch(stepper, seqlen);
    const decode = async (all: readonly Completion[], until: () => boolean): Promise<void> => {
      const waiting = [...all];
      while (!until()) await batch.advance(() => (waiting[0] ? { completion: waiting.shift()! } : undefined));
    };
    const begin = (all: readonly Completion[]) => decode(all, () => all.every(({ tokens }) => tokens > 0));
    const end = async (all: readonly Completion[]): Promise<void> => {
      for (const each of all) each.cancel();
      await decode([], () => batch.completions.every(({ finishReason }) => finishReason === undefined));
    };
    // What the first of a length makes for all others: programs, and the pages of the prompt.
    const first = completionOf(length);
    await begin([first]);
    await end([first]);
    expect(stepper.stateBytes).toBeGreaterThan(2 ** 30);

    const before = resident();
    const each = (2 * LAYERS * bytes * length) / 2 ** 20;
    const all = Array.from({ length: 4 }, () => completionOf(length));
    await begin(all);
    // Each has its row, and the last one is still on its way beside.
    const together = resident() - before;
    expect(together).toBeGreaterThan(4 * each);
    expect(together).toBeLessThan(7 * each);
    await end(all.slice(1));
    const alone = resident() - before;
    expect(alone).toBeLessThan(together - 2 * each);
    await end(all);
    expect(resident() - before).toBeLessThan(Math.min(each, alone));
    expect(batch.completions).toEqual([]);
    await stepper.dispose();
  },
);
