/** @file Preprocessors, on examples whose results can be read off. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { build, type ConfigValues, configurable } from '../../../src/hparams/index.js';
import {
  AppendEos,
  type Example,
  Filter,
  FilterByLength,
  FlatMap,
  MaskTokens,
  PrefixLm,
  ReduceConcatTokens,
  Rekey,
  SelectRandomChunk,
  SpanCorruption,
  SplitTokens,
  spanCorruptionLengths,
  Task,
  Tokenize,
  Trim,
} from '../../../src/inputs/index.js';
import { ExampleDraws } from '../../../src/inputs/seqio/exampleDraws.js';
import { iidNoiseMask, randomSpansNoiseMask } from '../../../src/inputs/seqio/noiseMasks.js';
import { Pipeline } from '../../../src/inputs/seqio/pipeline.js';
import { features, Numbers } from './corpora.js';

/** What the preprocessors make of examples. */
function made(
  preprocessors: ConfigValues<Task>['preprocessors'],
  examples: readonly Example[],
  { lengths = { targets: 4 } as Record<string, number>, seed = 0 } = {},
): Example[] {
  const task = build(
    Task.config({ source: Numbers.config({ count: 1 }), preprocessors, features: features() }),
  );
  const results: Example[] = [];
  const given = { features: task.hp.features, lengths };
  const pipeline = new Pipeline(task.stages, given, ({ example }) => results.push(plain(example)));
  for (const [i, example] of examples.entries())
    pipeline.push({ example, key: [seed, i], place: () => `record ${i}` });
  pipeline.flush();
  return results;
}

const plain = (example: Example): Example =>
  Object.fromEntries(
    Object.entries(example).map(([k, v]) => [k, ArrayBuffer.isView(v) ? [...(v as Int32Array)] : v]),
  );

const ids = (count: number, from = 10) => Int32Array.from({ length: count }, (_, i) => from + i);

test('texts are renamed and tokenized; an end is appended, and stays where ids are trimmed', () => {
  const renamed = [Rekey.config({ keyMap: { targets: 'text', inputs: null } })];
  expect(made(renamed, [{ text: '1 2', rest: 0 }])).toEqual([{ targets: '1 2', inputs: '' }]);
  expect(() => made(renamed, [{ txt: '1' }])).toThrow(
    "record 0: the example has no 'text'. Did you mean 'txt'? It has: txt.",
  );
  const tokenized = Tokenize.config({ copyPretokenized: true });
  const text = { targets: '1 2 3 4 5' };
  expect(made([tokenized, AppendEos.config()], [text])).toEqual([
    { targets: [3, 4, 5, 6, 7, 1], targetsPretokenized: '1 2 3 4 5' },
  ]);
  expect(made([Tokenize.config(), AppendEos.config({ afterTrim: true })], [text])).toEqual([
    { targets: [3, 4, 5, 1] },
  ]);
  expect(made([Tokenize.config(), AppendEos.config(), Trim.config()], [text])).toEqual([
    { targets: [3, 4, 5, 1] },
  ]);
  expect(made([Tokenize.config(), Trim.config()], [text])).toEqual([{ targets: [3, 4, 5, 6] }]);
});

const longerThan = configurable(
  function longerThan({ ids: count }: { ids: number }) {
    return (example: Example) => (example.targets as Int32Array).length > count;
  },
  { ids: z.int() },
);
const twice = configurable(() => (example: Example) => [example, example], {}, { name: 'twice' });
const plusOne = configurable(
  () => (example: Example) => ({ ...example, n: (example.n as number) + 1 }),
  {},
  { name: 'plusOne' },
);

test('functions of ones own change, keep and multiply examples', () => {
  const examples = [
    { targets: ids(1), n: 0 },
    { targets: ids(3), n: 1 },
  ];
  expect(made([plusOne.config({})], examples).map(({ n }) => n)).toEqual([1, 2]);
  expect(made([Filter.config({ keep: longerThan.config({ ids: 2 }) })], examples).map(({ n }) => n)).toEqual([
    1,
  ]);
  expect(made([FilterByLength.config({ max: 2 })], examples).map(({ n }) => n)).toEqual([0]);
  expect(made([FlatMap.config({ make: twice.config({}) })], examples).map(({ n }) => n)).toEqual([
    0, 0, 1, 1,
  ]);
});

test('ids are cut and joined', () => {
  const split = [SplitTokens.config()];
  expect(made(split, [{ targets: ids(9), n: 1 }])).toEqual([
    { targets: [10, 11, 12, 13], n: 1 },
    { targets: [14, 15, 16, 17], n: 1 },
    { targets: [18], n: 1 },
  ]);
  expect(() => made(split, [{ targets: ids(1) }], { lengths: {} })).toThrow(
    "record 0: SplitTokens.maxTokensPerSegment is null, and taskFeatureLengths has no 'targets'. Set one of them.",
  );
  const joined = made(
    [ReduceConcatTokens.config({ batchSize: 2 })],
    [1, 2, 3].map((n) => ({ targets: ids(n), n })),
  );
  expect(joined).toEqual([{ targets: [10, 10, 11] }, { targets: [10, 11, 12] }]);
  const random = [SplitTokens.config({ minTokensPerSegment: 2, maxTokensPerSegment: 5 })];
  const sizes = Array.from({ length: 40 }, (_, i) => ({ targets: ids(30, i) })).map(
    (example, i) =>
      made(random, [example], { seed: i }).map(({ targets }) => (targets as number[]).length)[0],
  );
  expect([...new Set(sizes)].sort()).toEqual([2, 3, 4]);
  const chunks = Array.from({ length: 20 }, (_, seed) =>
    made([SelectRandomChunk.config({ maxLength: 4 })], [{ targets: ids(9) }], { seed }).map(
      ({ targets }) => targets,
    ),
  );
  expect(new Set(chunks.map(String))).toEqual(new Set(['10,11,12,13', '14,15,16,17', '18']));
});

const texts = fc.record({ length: fc.integer({ min: 2, max: 200 }), seed: fc.nat(1000) });

test('span corruption: T5’s numbers of tokens and spans, and both sides together are the text', () => {
  fc.assert(
    fc.property(texts, ({ length, seed }) => {
      const [example] = made([SpanCorruption.config()], [{ targets: ids(length) }], { seed });
      const { inputs, targets } = example as { inputs: number[]; targets: number[] };
      const isSentinel = (id: number) => id > 900;
      const noise = Math.min(Math.max(1, halfEven(length * 0.15)), length - 1);
      const spans = Math.min(Math.max(1, halfEven(noise / 3)), length - noise);
      // Sentinels count down from the last id; the text begins with a visible token.
      const sentinels = Array.from({ length: spans }, (_, i) => 1001 - i);
      expect(inputs.filter(isSentinel)).toEqual(sentinels);
      expect(targets.filter(isSentinel)).toEqual(sentinels);
      expect(targets.length).toBe(noise + spans);
      expect(isSentinel(inputs[0]!)).toBe(false);
      expect(isSentinel(targets[0]!)).toBe(true);
      const hidden = new Map(sentinels.map((s) => [s, spanAfter(targets, s, isSentinel)]));
      expect(inputs.flatMap((id) => hidden.get(id) ?? [id])).toEqual([...ids(length)]);
    }),
  );
});

const halfEven = (x: number) => (x % 1 === 0.5 ? 2 * Math.round(x / 2) : Math.round(x));

function spanAfter(
  targets: readonly number[],
  sentinel: number,
  isSentinel: (id: number) => boolean,
): number[] {
  const rest = targets.slice(targets.indexOf(sentinel) + 1);
  const end = rest.findIndex(isSentinel);
  return end < 0 ? rest : rest.slice(0, end);
}

test('span corruption: every segmentation is about as likely', () => {
  const starts = new Map<string, number>();
  for (let i = 0; i < 3000; i++) {
    const mask = String(randomSpansNoiseMask(6, 0.5, 1.5, new ExampleDraws([7, i])));
    starts.set(mask, (starts.get(mask) ?? 0) + 1);
  }
  // Three hidden and three visible tokens in two spans each: two partitions of either.
  expect([...starts.keys()].sort()).toEqual(['0,0,1,0,1,1', '0,0,1,1,0,1', '0,1,0,0,1,1', '0,1,1,0,0,1']);
  for (const count of starts.values()) expect(Math.abs(count - 750)).toBeLessThan(120);
});

test('the lengths of T5: 568 tokens make 512 inputs and 114 targets', () => {
  expect(spanCorruptionLengths(512)).toEqual({ tokensLength: 568, targetsLength: 114 });
});

test('a prefix LM cuts anywhere but before the first token', () => {
  const cuts = Array.from({ length: 60 }, (_, seed) => {
    const [example] = made([PrefixLm.config()], [{ targets: ids(4) }], { seed });
    const { inputs, targets } = example as { inputs: number[]; targets: number[] };
    expect([...inputs, ...targets]).toEqual([...ids(4)]);
    return inputs.length;
  });
  expect([...new Set(cuts)].sort()).toEqual([1, 2, 3]);
});

test('masked tokens: most are masks, some random, some as they were; the others are negative in the targets', () => {
  const [example] = made([MaskTokens.config({ noiseDensity: 0.3 })], [{ targets: ids(900) }]);
  const { inputs, targets } = example as { inputs: number[]; targets: number[] };
  expect(targets.map(Math.abs)).toEqual([...ids(900)]);
  const chosen = [...targets.keys()].filter((i) => targets[i]! > 0);
  const share = (which: (i: number) => boolean) => chosen.filter(which).length / chosen.length;
  expect(chosen.length / 900).toBeCloseTo(0.3, 1);
  expect(share((i) => inputs[i] === 1001)).toBeCloseTo(0.8, 1);
  expect(share((i) => inputs[i] === targets[i])).toBeCloseTo(0.1, 1);
  for (const i of targets.keys()) if (targets[i]! < 0) expect(inputs[i]).toBe(-targets[i]!);
  // -2^31 stands for the negative of id 0.
  const [zeros] = made([MaskTokens.config({ noiseDensity: 0.3 })], [{ targets: new Int32Array(100) }]);
  const marks = new Set((zeros as { targets: number[] }).targets);
  expect(marks).toEqual(new Set([0, -(2 ** 31)]));
  expect(iidNoiseMask(4, 0.999999, new ExampleDraws([0, 0]))).toEqual(Uint8Array.of(1, 1, 1, 1));
});
