/** @file Splits of sources and parts of them: TensorFlow Datasets' ranges, places and digests of records, and errors. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { build } from '../../../src/hparams/index.js';
import {
  BaseRecordSource,
  JsonLinesSource,
  type RecordTable,
  TextFileSource,
  TextLinesSource,
} from '../../../src/inputs/index.js';
import { tableOf } from '../../../src/inputs/records/recordTable.js';
import { openSubSplits } from '../../../src/inputs/records/subSplits.js';
import { temporaryDirectory } from '../../command.js';

const directory = temporaryDirectory();

/** A file of numbers from `from` to `to` − 1, a line each. */
function numbers(name: string, from: number, to: number): string {
  const path = join(directory, name);
  writeFileSync(path, Array.from({ length: to - from }, (_, i) => `${from + i}\n`).join(''));
  return path;
}

const records = (table: RecordTable) =>
  Array.from({ length: table.numRecords }, (_, i) => Number((table.read(i) as { text: string }).text));

/** First and number of the records of a part of a split of `n`. */
function rangeIn(n: number, part: string): readonly [first: number, count: number] {
  const table = openSubSplits(part, ['train'], 'it', () =>
    tableOf(Array.from({ length: n }, (_, i) => ({ text: `${i}` }))),
  );
  return [records(table)[0] ?? -1, table.numRecords];
}

// What tensorflow_datasets 4.9.10 gives: `splits._rel_to_abs_instr(splits._str_to_relative_instruction(part), …)`.
test.each<[number, string, number, number]>([
  [1000, 'train', 0, 1000],
  [1000, 'train[:90%]', 0, 900],
  [1000, 'train[90%:]', 900, 100],
  [1000, 'train[-10%:]', 900, 100],
  [1000, 'train[:-10%]', 0, 900],
  [1000, 'train[10%:30%]', 100, 200],
  [1000, 'train[400:]', 400, 600],
  [1000, 'train[-4:]', 996, 4],
  [1000, 'train[:-1_0]', 0, 990],
  [1000, 'train[5:1000]', 5, 995],
  [5, 'train[:50%]', 0, 2],
  [15, 'train[:10%]', 0, 2],
  [25, 'train[:10%]', 0, 2],
  [25, 'train[90%:]', 22, 3],
  [25, 'train[-10%:]', 23, 2],
  [10, 'train[:33%]', 0, 3],
  [10, 'train[33%:67%]', 3, 4],
  [10, 'train[67%:100%]', 7, 3],
  [3, 'train[:0%]', -1, 0],
  [3, 'train[2:1]', -1, 0],
])('of %i records, %s begins at %i and has %i', (n, part, first, length) => {
  expect(rangeIn(n, part)).toEqual([first, length]);
});

test('parts that cut a split at the same places together have each record once', () => {
  const percent = fc.integer({ min: 0, max: 100 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 300 }), percent, percent, (n, a, b) => {
      const [low, high] = [Math.min(a, b), Math.max(a, b)];
      const parts = `train[:${low}%] + train[${low}%:${high}%]+train[${high}%:]`;
      expect(rangeIn(n, parts)).toEqual([0, n]);
    }),
  );
});

test('a file source has one split of a list, and as many as a map names; `all` is all of them', () => {
  const [a, b, c] = [numbers('a.txt', 0, 4), numbers('b.txt', 4, 4), numbers('c.txt', 4, 10)];
  const files = { train: [a, b], validation: [c] };
  const source = build(TextLinesSource.config({ files }));
  expect([source.splitNames, build(TextLinesSource.config({ files: [a] })).splitNames]).toEqual([
    ['train', 'validation'],
    ['all'],
  ]);
  const opened = (split?: string) => source.open(split);
  expect(records(opened('train'))).toEqual([0, 1, 2, 3]);
  expect(records(opened())).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(records(opened('all[30%:-50%]'))).toEqual([3, 4]);
  const mixed = opened('validation[-50%:]+train[:1]+validation[:2]');
  expect(records(mixed)).toEqual([7, 8, 9, 0, 4, 5]);
  expect(Array.from({ length: 6 }, (_, i) => mixed.place(i))).toEqual([
    `${c}:4`,
    `${c}:5`,
    `${c}:6`,
    `${a}:1`,
    `${c}:1`,
    `${c}:2`,
  ]);
  expect(mixed.files.map(({ path, size }) => [path, size])).toEqual([
    [c, 12],
    [a, 8],
    [b, 0],
  ]);
  const digests = ['train', 'validation', 'all', 'train[:2]', 'train[:3]', 'train+train'].map(
    (split) => opened(split).digest,
  );
  expect(new Set(digests).size).toBe(digests.length);
  expect(opened('train[:100%]').digest).toBe(opened('train').digest);
  mixed.close();
  rmSync(a);
  expect(() => opened('train')).toThrow(/^No file matches /);
  expect(records(opened('validation[:1]'))).toEqual([4]);
});

test('whole files and JSON Lines have splits, too', () => {
  const [a, b] = [numbers('d.jsonl', 0, 2), numbers('e.jsonl', 2, 3)];
  const whole = build(TextFileSource.config({ files: { train: [a], test: [b] } }));
  expect([whole.open('train+test').numRecords, whole.open('test').read(0)]).toEqual([
    2,
    { text: '2\n', file: b },
  ]);
  const lines = build(JsonLinesSource.config({ files: { train: [a], test: [b] } })).open('test+train');
  expect(() => lines.read(2)).toThrow(`${a}:2: expected an object, { column: value, … }; got 1`);
});

test('files are closed once, however many parts there are', () => {
  const closed: string[] = [];
  class Three extends BaseRecordSource.with({}) {
    override get splitNames() {
      return ['a', 'b', 'c'];
    }
    protected override openSplit(name: string) {
      return { ...tableOf(Array(4).fill({ text: '1' })), close: () => void closed.push(name) };
    }
  }
  const source = build(Three.config());
  for (const split of ['a[:1]+a[1:]+b', 'c[1:]', 'all[5:]', 'all+a']) source.open(split).close();
  expect(closed.join('')).toBe('abcabcabc');
});

const WHAT_IS_VALID =
  "A split is a name, a part of one such as 'train[:90%]', 'train[1000:]' or 'train[-10%:]', or several joined by '+'.";

test.each([
  ['trian[:5]', "JsonLinesSource has no split 'trian'. Did you mean 'train'? It has: train, validation."],
  ['train+', `'train+' names no split. ${WHAT_IS_VALID}`],
  ['train[:5', `'train[:5' names no split. ${WHAT_IS_VALID}`],
  ['train[5]', `'train[5]' has no range of records. ${WHAT_IS_VALID}`],
  ['train[:]', `'train[:]' has no range of records. ${WHAT_IS_VALID}`],
  ['train[:0.5%]', `'train[:0.5%]' has no range of records. ${WHAT_IS_VALID}`],
  [
    'train[1:50%]',
    "'train[1:50%]' begins and ends in different units. Give both numbers in percent, or both in records.",
  ],
  ['train[:101%]', "'train[:101%]' reaches beyond 100 %. Percentages are from -100 to 100."],
  ['train+validation[3:]', "'validation[3:]' reaches beyond the split, which has 1 record."],
])('%s: %s', (split, message) => {
  const files = { train: [numbers('f.jsonl', 0, 2)], validation: [numbers('g.jsonl', 0, 1)] };
  const source = build(JsonLinesSource.config({ files }));
  expect(() => source.open(split)).toThrow(message);
});

test('a map of splits has names that parts can have, none of them `all`, and a list each', () => {
  const config = (files: unknown) => () => build(TextLinesSource.config({ files: files as string[] }));
  expect(config({ all: ['a'] })).toThrow("'all' is the name of all splits together");
  expect(config({})).toThrow('expected at least one split');
  expect(config({ 'a b': ['a'] })).toThrow(/files/);
  expect(config({ train: [] })).toThrow(/files\.train|files/);
});
