/** @file What differs by itself: causes of differences, settled documents, parts by a second look. */
import { describe, expect, test } from 'vitest';
import type { Compared } from '../../../src/review/changes/computed.js';
import { causeOf, settledExperiment } from '../../../src/review/changes/varying.js';
import { withoutVaryingParts } from '../../../src/review/changes/varyingParts.js';
import {
  type FingerprintedPart,
  fingerprinted,
} from '../../../src/review/fingerprints/fingerprintedParts.js';
import type {
  FingerprintDocument,
  JsonValue,
  MadeExperiment,
} from '../../../src/review/versions/protocol.js';

const revisions = { old: 'abc1234'.padEnd(40, '0'), now: 'def5678'.padEnd(40, '0') };

test.each([
  ['a change', ['1', '1', '2', '2'], 'change'],
  ['a change to chance', ['1', '1', '2', '3'], 'change'],
  ['chance', ['1', '2', '3', '4'], 'chance'],
  ['a counter', ['1', '0', '5', '0'], 'state'],
  ['a revision', ['"at abc1234"', '"at abc1234"', '"at def5678"', '"at def5678"'], 'revision'],
  [
    'a description',
    ['"v1-3-gabc1234"', '"v1-3-gabc1234"', '"v1-4-gdef5678-dirty"', '"v1-4-gdef5678-dirty"'],
    'revision',
  ],
  ['a revision and a change', ['"abc1234/a"', '"abc1234/a"', '"def5678/b"', '"def5678/b"'], 'change'],
  ['other revisions', ['"1234567"', '"1234567"', '"7654321"', '"7654321"'], 'change'],
] as const)('%s', (_, [old, oldAgain, now, nowAgain], cause) => {
  expect(causeOf({ old, oldAgain, now, nowAgain }, revisions)).toBe(cause);
});

const experiment = (values: Readonly<Record<string, JsonValue>>, constant: number): MadeExperiment => ({
  name: 'a.A',
  constants: [{ name: 'count', value: constant, setBy: 'A' }],
  formerConstants: {},
  config: {
    root: { $config: 1 },
    configs: [
      { class: 'Inner', values, defaults: [], places: {} },
      { class: 'Outer', values: { one: { $config: 0 }, same: { $config: 0 } }, defaults: [], places: {} },
    ],
    classes: {},
  },
});

test('a document keeps its changes, and has the old values of what differs by itself', () => {
  const found = settledExperiment(
    {
      old: experiment({ seeds: [1, 2], width: 4, at: 'abc1234', fresh: 0 }, 1),
      oldAgain: experiment({ seeds: [3, 2], width: 4, at: 'abc1234', fresh: 0 }, 0),
      now: experiment({ seeds: [5, 2], width: 8, at: 'def5678', fresh: 6, more: 1 }, 4),
      nowAgain: experiment({ seeds: [7, 2], width: 8, at: 'def5678', fresh: 9, more: 2 }, 0),
    },
    revisions,
  );
  expect(found.now).toEqual(experiment({ seeds: [1, 2], width: 8, at: 'abc1234', fresh: 6, more: 1 }, 1));
  expect(found.varying).toEqual([
    { what: 'one.seeds[0]', cause: 'chance' },
    { what: 'one.at', cause: 'revision' },
    { what: 'count', cause: 'state' },
  ]);
  expect(found.begun).toEqual(['one.fresh']);
});

describe('parts', () => {
  const document = (
    name: string,
    hashes: Partial<Record<FingerprintedPart, string>>,
  ): FingerprintDocument => ({
    name,
    fingerprint: Object.fromEntries(
      fingerprinted.map((part) => [part, { hash: hashes[part] ?? 'same' }]),
    ) as never,
  });
  const looked = (first: Readonly<Record<string, string>>, again: Readonly<Record<string, string>>) => {
    const asked: string[][] = [];
    const documents = (hashes: Readonly<Record<string, string>>) =>
      new Map(Object.entries(hashes).map(([name, input]) => [name, document(name, { input })]));
    return {
      asked,
      first: documents(first),
      again: async (names: readonly string[]) => {
        asked.push([...names]);
        return new Map([...documents(again)].filter(([name]) => names.includes(name)));
      },
    };
  };
  const differs: Compared = { differs: ['input'], uncompared: [], isAlike: true, sampled: [] };

  test('of two examples of a change, nothing more is asked where both are as they were', async () => {
    const old = looked({ a: '1', b: '1', c: '1' }, {});
    const now = looked({ a: '2', b: '2', c: '2' }, { a: '2', b: '2', c: '2' });
    const computed = new Map(['a', 'b', 'c'].map((name) => [name, differs]));
    expect(await withoutVaryingParts(computed, old, now)).toEqual({ computed, varying: new Map() });
    expect([old.asked, now.asked]).toEqual([[], [['a', 'c']]]);
  });

  test('a part that varies is asked of all, and left out where both versions vary', async () => {
    const old = looked({ a: '1', b: '1', c: '1' }, { a: '3', b: '1', c: '1' });
    const now = looked({ a: '2', b: '2', c: '2' }, { a: '4', b: '2', c: '5' });
    const found = await withoutVaryingParts(
      new Map(['a', 'b', 'c'].map((name) => [name, differs])),
      old,
      now,
    );
    expect([...found.computed].map(([name, each]) => [name, each.differs])).toEqual([
      ['a', []],
      ['b', ['input']],
      ['c', ['input']],
    ]);
    expect([...found.varying]).toEqual([['a', [{ what: 'input', cause: 'chance' }]]]);
    expect([old.asked, now.asked]).toEqual([[['a', 'b', 'c']], [['a', 'c'], ['b']]]);
  });

  test('one of other code of its own is looked at, though its neighbors change', async () => {
    const old = looked({ a: '1', b: '1', c: '1' }, { a: '1', b: '3', c: '1' });
    const now = looked({ a: '2', b: '2', c: '2' }, { a: '2', b: '4', c: '2' });
    const computed = new Map(['a', 'b', 'c'].map((name) => [name, differs]));
    const found = await withoutVaryingParts(computed, old, now, (name) => (name === 'b' ? 'Drawn' : ''));
    expect([...found.varying]).toEqual([['b', [{ what: 'input', cause: 'chance' }]]]);
    expect([...found.computed].map(([name, each]) => [name, each.differs])).toEqual([
      ['a', ['input']],
      ['b', []],
      ['c', ['input']],
    ]);
  });
});
