/** @file Completions that join and leave the rows of a batch: no bit of one depends on those beside it. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { GREEDY, Stepper } from '../../src/decoding/index.js';
import { build, type Config } from '../../src/hparams/index.js';
import { FullCache, type TransformerLm, WindowCache } from '../../src/layers/index.js';
import { gpt2Lm, LanguageModel, pretrainedLm } from '../../src/models/index.js';
import { Completion } from '../../src/trained/completion.js';
import { generationOf } from '../../src/trained/generation.js';
import { RowBatch } from '../../src/trained/rowBatch.js';
import { engines } from '../compiler/engines.js';
import { randomIds, randomParams } from '../decoding/randomModels.js';
import { draw, runs, title } from '../faults/campaign.js';
import { publishedFamily } from '../models/presets/published.js';

const [V, SEQLEN, ROWS] = [23, 90, 3];

const small = (): Config<TransformerLm> =>
  gpt2Lm({ vocabSize: V, modelDims: 16, numLayers: 2, numHeads: 2, maxSeqLength: SEQLEN });

/** Networks by the state that they keep, and how their prompts are taken. */
const networks: Record<string, () => Config<TransformerLm>> = {
  'full caches': small,
  'caches of 8 bits': () => {
    const lm = small();
    const attention = lm.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl;
    attention.cacheTpl = FullCache.config({ precision: 8 });
    return lm;
  },
  rings: () => {
    const lm = small();
    const attention = lm.stackedTransformerTpl.transformerLayerParamsTpl.trAttenTpl;
    attention.windowSize = 7;
    attention.cacheTpl = WindowCache.config();
    return lm;
  },
  'prompts whose tokens see each other': () => {
    const lm = small();
    lm.modelType = 'prefix';
    return lm;
  },
  // Its programs take a while to compile.
  ...(process.env.LONG === '1' && {
    'recurrent states and experts': () => pretrainedLm(publishedFamily('qwen3_next')),
  }),
};

/** A request of a mix. */
interface Request {
  /** Tokens of its prompt. */
  readonly length: number;
  readonly seed: number;
  readonly maxTokens: number;
  /** The step before which it comes. */
  readonly comes: number;
  /** Steps after which its reader leaves, if that is before its end. */
  readonly stays: number;
}

const request: fc.Arbitrary<Request> = fc.record({
  length: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: SEQLEN - 1 })),
  seed: fc.nat(5),
  maxTokens: fc.integer({ min: 1, max: 20 }),
  comes: fc.nat(30),
  stays: fc.oneof(fc.constant(1000), fc.nat(15)),
});

/** A completion that keeps the digests of the logits that it draws from. */
class Witness extends Completion {
  readonly digests: string[] = [];

  constructor(
    readonly request: Request,
    vocabulary: number,
  ) {
    const { length, seed, maxTokens } = request;
    const defaults = { maxTokens, temperature: 1, topK: 0, topP: null, stop: [], seed };
    const prompt = Int32Array.from(randomIds(length, vocabulary), (id) => (id + seed) % vocabulary);
    const decoder = { take: () => '', rest: () => '' };
    super(prompt, generationOf(defaults, {}), {
      decoder,
      rule: GREEDY,
      endIds: new Set([1]),
      enqueue: () => {},
    });
  }

  override select(logits: Float32Array): number {
    const id = super.select(logits);
    this.digests.push(`${createHash('md5').update(logits).digest('hex')} ${id}`);
    return id;
  }
}

/** Runs requests through a batch. */
async function decode(batch: RowBatch, requests: readonly Request[], vocabulary: number): Promise<Witness[]> {
  const all = requests.map((each) => new Witness(each, vocabulary));
  const waiting = [...all].sort((a, b) => a.request.comes - b.request.comes);
  for (let step = 0; all.some(({ finishReason }) => finishReason === undefined); step++) {
    for (const one of all) if (step >= one.request.comes + one.request.stays) one.cancel();
    await batch.advance(() => {
      while (waiting[0]?.finishReason !== undefined) waiting.shift();
      const isHere = waiting[0] !== undefined && waiting[0].request.comes <= step;
      return isHere ? { completion: waiting.shift()! } : undefined;
    });
  }
  return all;
}

/** Steppers by network. */
const opened = new Map<string, Stepper>();
afterAll(() => Promise.all([...opened.values()].map((stepper) => stepper.dispose())));

const engine = engines.find(([name]) => name === 'native')![1];

test.skipIf(!engine.available).each(Object.entries(networks))(
  title('%s: a completion in any mix has the bits that it has alone'),
  async (name, lmOf) => {
    const model = build(LanguageModel.config({ lmTpl: lmOf() })) as LanguageModel;
    const vocabulary = model.vocabSize;
    const stepper = await Stepper.create({
      ...{ model, params: randomParams(model, 1), rows: ROWS, rowsApart: true, seqlen: SEQLEN, rule: null },
      compileOptions: (program) => ({ name: program, engine: 'native', numThreads: 2 }),
    });
    opened.set(name, stepper);
    const batch = new RowBatch(stepper, SEQLEN);
    const alone = new Map<string, readonly string[]>();
    const expectedOf = async (one: Request): Promise<readonly string[]> => {
      const key = [one.length, one.seed, one.maxTokens].join();
      const found = alone.get(key);
      if (found) return found;
      const [witness] = await decode(batch, [{ ...one, comes: 0, stays: 1000 }], vocabulary);
      alone.set(key, witness!.digests);
      return witness!.digests;
    };
    const mixes = draw(fc.array(request, { minLength: 1, maxLength: 12 }), runs(1000, 3), 5);
    let tokens = 0;
    for (const mix of mixes) {
      for (const { request: given, digests, finishReason } of await decode(batch, mix, vocabulary)) {
        const expected = await expectedOf(given);
        const isWhole = finishReason !== 'cancelled';
        expect(digests).toEqual(isWhole ? expected : expected.slice(0, digests.length));
        tokens += digests.length;
      }
      expect(batch.completions.every(({ finishReason }) => finishReason !== undefined)).toBe(true);
    }
    expect(tokens).toBeGreaterThan(10);
  },
);

test.skipIf(!engine.available)('a prompt that begins as one before computes what follows alone', async () => {
  const rows = { ids: new Int32Array(ROWS), positions: new Int32Array(ROWS) };
  const blocksOf = async (stepper: Stepper, prompt: readonly number[]): Promise<number[]> => {
    const fill = stepper.fillRow(0, Int32Array.from(prompt));
    const steps: number[] = [];
    for (let isLast = false; !isLast; ) {
      const taken = await fill.take(rows);
      steps.push(taken.steps);
      isLast = taken.isLast;
    }
    return steps;
  };
  const prompt = Array.from({ length: 75 }, (_, i) => (i * i) % V);
  const other = [...prompt.slice(0, 70), ...prompt.slice(0, 10)];
  const blocks = async (name: string) => {
    const stepper = opened.get(name)!;
    return [await blocksOf(stepper, prompt), await blocksOf(stepper, prompt), await blocksOf(stepper, other)];
  };
  expect(await blocks('full caches')).toEqual([
    [64, 8, 8],
    [8, 8],
    [8, 8],
  ]);
  // A ring has no parts that belong to tokens.
  expect(await blocks('rings')).toEqual([
    [64, 8, 8],
    [64, 8, 8],
    [64, 8, 8],
  ]);
});

test.skipIf(!engine.available)(
  'a completion waits until there is room for its longest continuation',
  async () => {
    const batch = new RowBatch(opened.get('full caches')!, SEQLEN, 100);
    // Of 30, 60 and 30 tokens at most; the last of as many as there are places.
    const requests = [20, 50, 20, 80].map((length, seed) => ({
      ...{ length, seed, comes: 0, stays: 1000 },
      maxTokens: 10,
    }));
    const waiting = requests.map((one) => new Witness(one, V));
    const all = [...waiting];
    const together = new Set<string>();
    while (all.some(({ finishReason }) => finishReason === undefined)) {
      await batch.advance(() =>
        waiting[0] && batch.hasRoom(waiting[0]) ? { completion: waiting.shift()! } : undefined,
      );
      together.add(batch.completions.map((each) => all.indexOf(each as Witness)).join());
    }
    expect([...together].filter((some) => /0.*2|1.*2|2.*1|3/.test(some) && some !== '3')).toEqual(['1,2']);
    for (const witness of all) {
      const [alone] = await decode(batch, [witness.request], V);
      expect(witness.digests).toEqual(alone!.digests);
    }
  },
);

test('what rows under a constraint may draw next is found while their step is computed', async () => {
  const events: string[] = [];
  class Noting extends Completion {
    override prepare(): void {
      events.push('prepared');
    }
    override select(logits: Float32Array): number {
      events.push('drawn');
      return super.select(logits);
    }
  }
  const stepped = async (): Promise<Float32Array> => {
    events.push('begun');
    // As a program does, it ends in a later turn of the event loop.
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
    return Float32Array.of(0, 1);
  };
  const fillRow = () => ({ take: async () => ({ steps: 1, isLast: true }) });
  const memory = { releaseRow: () => {}, releaseAll: () => {} };
  const stepper = { rows: 1, fillRow, extendRows: stepped, ...memory } as unknown as Stepper;
  const batch = new RowBatch(stepper, SEQLEN);
  const settings = generationOf({ temperature: 0, topK: 0, topP: null, seed: 0 }, { maxTokens: 2 });
  const completion = new Noting(Int32Array.of(0), settings, {
    ...{ decoder: { take: () => '', rest: () => '' }, rule: GREEDY, endIds: new Set() },
    enqueue: () => {},
  });
  const waiting = [{ completion }];
  while (completion.finishReason === undefined) await batch.advance(() => waiting.shift());
  expect(events.slice(-6)).toEqual(['begun', 'prepared', 'drawn', 'begun', 'prepared', 'drawn']);
});
