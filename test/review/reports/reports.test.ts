/** @file Reports of random changes: nothing breaks them, and a comment stays short and whole. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compareExperiment } from '../../../src/review/changes/compare.js';
import { changedDeclarations } from '../../../src/review/changes/declarations.js';
import { inOrder } from '../../../src/review/reports/changeGroups.js';
import { collapse } from '../../../src/review/reports/collapse.js';
import type { DiffReport } from '../../../src/review/reports/diffReport.js';
import { markdownOf } from '../../../src/review/reports/markdownReport.js';
import { parseReport } from '../../../src/review/reports/parseReport.js';
import { textOf } from '../../../src/review/reports/textReport.js';
import { applyAliases } from '../../../src/review/versions/appliedAliases.js';
import type {
  ConfigEntry,
  ConstantEntry,
  ExperimentDocument,
  JsonValue,
} from '../../../src/review/versions/protocol.js';
import { plain } from '../../../src/system/text/terminalOutput.js';
import { runs } from '../../faults/campaign.js';

const hostile = fc.constantFrom(
  '</details><script>alert(1)</script>',
  '@somebody #12 GH-12 https://example.org',
  '```\n# title\n```',
  '`|`` | a | \\| ',
  '![x](y) <img src=x> &lt;',
  '\u202e\u0000\u001b[31m\r\n\t',
  '<!-- ',
  '$config',
);
const text = fc.oneof(
  fc.string(),
  hostile,
  fc.string().map((each) => each.repeat(200)),
);
const leaf: fc.Arbitrary<JsonValue> = fc.oneof(
  text,
  fc.integer(),
  fc.boolean(),
  fc.constant(null),
  fc.constant({ $number: 'NaN' }),
  fc.constant({ $undefined: true }),
  text.map((each) => ({ $text: each })),
);
const fieldName = fc.constantFrom('alpha', 'beta', 'gamma', 'items', 'inner', 'outer');

/** An entry that refers to earlier ones. */
function entryAt(index: number): fc.Arbitrary<ConfigEntry> {
  const reference = index === 0 ? leaf : fc.nat(index - 1).map((number): JsonValue => ({ $config: number }));
  const value = fc.oneof(leaf, reference, fc.array(fc.oneof(leaf, reference), { maxLength: 4 }));
  return fc
    .record({
      class: fc.constantFrom('Layer', 'Block', 'Model', '__proto__', 'Head'),
      values: fc.dictionary(fieldName, value, { maxKeys: 5 }),
      byDefault: fc.array(fieldName, { maxLength: 3 }),
      place: fc.oneof(text, fc.constant('experiments/a.ts:3')),
    })
    .map(({ class: cls, values, byDefault, place }) => {
      const names = Object.keys(values);
      const defaults = names.filter((name) => (byDefault as string[]).includes(name));
      const places = names.filter((name) => !defaults.includes(name)).map((name) => [name, place]);
      return { class: cls, values, defaults, places: Object.fromEntries(places) };
    });
}

const configs = fc.integer({ min: 1, max: 6 }).chain((length) =>
  fc.tuple(...Array.from({ length }, (_, i) => entryAt(i))).map((entries) => ({
    root: { $config: length - 1 } as JsonValue,
    configs: entries,
    classes: {},
  })),
);
const constant: fc.Arbitrary<ConstantEntry> = fc.record({
  name: fc.constantFrom('numHeads', 'numLayers', 'path'),
  value: leaf,
  setBy: fc.constantFrom('Base', 'One', '--set path=`x`'),
});
const good = (name: string): fc.Arbitrary<ExperimentDocument> =>
  fc.record({
    name: fc.constant(name),
    constants: fc.uniqueArray(constant, { selector: ({ name: own }) => own, maxLength: 3 }),
    formerConstants: fc.constant({}),
    config: configs,
  });
const document = (name: string): fc.Arbitrary<ExperimentDocument | undefined> =>
  fc.oneof(
    { weight: 6, arbitrary: good(name) },
    fc.constant(undefined),
    text.map((message): ExperimentDocument => ({ name, error: { message } })),
  );
const versions = fc
  .integer({ min: 1, max: 30 })
  .chain((count) =>
    fc.tuple(...Array.from({ length: count }, (_, i) => fc.tuple(document(`e.E${i}`), document(`e.E${i}`)))),
  );

function reportOf(
  pairs: readonly (readonly [ExperimentDocument | undefined, ExperimentDocument | undefined])[],
): DiffReport {
  const both = pairs.flatMap(([old, now]) =>
    old !== undefined && now !== undefined && 'config' in old && 'config' in now ? [{ old, now }] : [],
  );
  const { pairs: aliased, renames } = applyAliases(both);
  const oldByName = new Map(aliased.map(({ old }) => [old.name, old]));
  const declarations = [...renames, ...changedDeclarations(aliased)];
  const reports = pairs.flatMap(([old, now], i) =>
    old === undefined && now === undefined
      ? []
      : [
          compareExperiment(
            `e.E${i}`,
            { document: oldByName.get(`e.E${i}`) ?? old },
            { document: now },
            declarations,
          ),
        ],
  );
  return {
    format: 'luthier-config-diff',
    version: 1,
    old: { label: 'main', commit: 'abc' },
    new: { label: 'working tree' },
    experiments: inOrder(reports.filter(({ status }) => status !== 'unchanged')),
    declarations,
    thresholds: [],
    unchanged: 0,
    untouched: 0,
    notes: ['A note about @somebody.'],
  };
}

/** What is left of Markdown once all code is taken out: what GitHub would interpret. */
function withoutCode(markdown: string): string {
  const lines = markdown.split('\n');
  const kept: string[] = [];
  let fence: string | undefined;
  for (const line of lines) {
    const mark = /^(`{3,})/.exec(line)?.[1];
    if (fence === undefined && mark !== undefined) fence = mark;
    else if (fence !== undefined && mark !== undefined && mark.length >= fence.length && line.trim() === mark)
      fence = undefined;
    else if (fence === undefined)
      kept.push(line.replace(/(?<!`)(`+)(?!`)(?:(?!\1(?!`))[\s\S])*?(?<!`)\1(?!`)/g, 'CODE'));
  }
  expect(fence).toBeUndefined();
  return kept.join('\n');
}

function expectWhole(markdown: string): void {
  expect(markdown.length).toBeLessThan(60_000);
  // What escapes a mention is a comment.
  const outside = withoutCode(markdown).replaceAll('<!-- -->', '\u200b');
  expect(outside.match(/<details>/g)?.length ?? 0).toBe(outside.match(/<\/details>/g)?.length ?? 0);
  const tags = outside.replace(/<\/?(?:details|summary|code)>/g, '').replace(/<code>[^<]*<\/code>/g, '');
  expect(tags).not.toMatch(/<[a-z!/]/i);
  expect(outside.replace(/<code>[^<]*<\/code>/g, '')).not.toMatch(/(?<!\\)@\w|https?:|#\d|!\[/);
  const rows = outside.split('\n').filter((line) => line.startsWith('|'));
  for (const row of rows) expect(row.replace(/\\\|/g, '').split('|')).toHaveLength(10);
}

describe('random versions of experiments', () => {
  test('never throw, and make whole comments of less than 60,000 characters', () => {
    fc.assert(
      fc.property(versions, (pairs) => {
        const report = reportOf(pairs);
        expect(() => textOf(report, plain)).not.toThrow();
        expectWhole(markdownOf(report));
        expect(parseReport(JSON.stringify(report))).toEqual(report);
      }),
      { numRuns: runs(150, 25) },
    );
  });

  test('are unchanged where nothing changed', () => {
    fc.assert(
      fc.property(good('e.E0'), (same) => {
        const report = reportOf([[same, structuredClone(same)]]);
        expect(report.experiments).toEqual([]);
        expect(report.declarations).toEqual([]);
      }),
      { numRuns: runs(150, 25) },
    );
  });
});

test('a comment on a thousand experiments says how many it leaves out', () => {
  const make = (i: number, value: JsonValue): ExperimentDocument => ({
    name: `e.E${i}`,
    constants: [{ name: 'path', value, setBy: `Class${i}` }],
    formerConstants: {},
    config: {
      classes: {},
      root: { $config: 0 },
      configs: [{ class: 'Model', values: { alpha: value }, defaults: [], places: {} }],
    },
  });
  const report = reportOf(
    Array.from({ length: 1000 }, (_, i) => [
      make(i, `${i} ${'x'.repeat(100)}`),
      make(i, `${i} ${'y'.repeat(100)}`),
    ]),
  );
  const markdown = markdownOf(report);
  expectWhole(markdown);
  expect(markdown).toContain('| 1000 experiments: `e.E0`, `e.E1`, ');
  expect(markdown).toMatch(/`e\.E11` and 988 more +\| ✏️ changed/);
  expect(markdown).toMatch(
    /\n_\d+ lines left out to keep this comment short: `npx luthier diff --base=REF` shows all of them\._$/,
  );
});

test('items of lists that changed alike are one line', () => {
  const change = (path: string, text = '2') =>
    ({ what: 'changed', path, old: { text: '1' }, new: { text } }) as const;
  const paths = (changes: readonly { path: string; count?: number }[]) =>
    changes.map(({ path, count }) => [path, count]);
  expect(paths(collapse([0, 1, 2, 5].map((i) => change(`a[${i}].b`))))).toEqual([['a[0…2,5].b', 4]]);
  expect(paths(collapse([change('a[0].b'), change('c'), change('a[1].b', '3')]))).toEqual([
    ['a[0].b', undefined],
    ['c', undefined],
    ['a[1].b', undefined],
  ]);
  const grid = [0, 1].flatMap((i) => [0, 1].map((j) => change(`a[${i}].b[${j}].c`)));
  expect(paths(collapse(grid))).toEqual([['a[0…1].b[0…1].c', 4]]);
});
