/** @file Reports full of hostile text: as a Markdown parser reads the comment, nothing in it is the text's own. */
import fc from 'fast-check';
import MarkdownIt, { type Token } from 'markdown-it';
import { expect, test } from 'vitest';
import { fingerprinted } from '../../src/review/fingerprints/fingerprintedParts.js';
import { type DiffReport, type ExperimentReport, statuses } from '../../src/review/reports/diffReport.js';
import { markdownOf } from '../../src/review/reports/markdownReport.js';
import type { ReviewContext } from '../../src/review/reports/markdownText.js';
import { parseReport } from '../../src/review/reports/parseReport.js';
import { figureKinds } from '../../src/review/reports/reportLines.js';
import { reportWith } from './reports/sampleReport.js';

const fragments = [
  ...[
    '`',
    '``',
    '```\n',
    '~~~',
    '|',
    '\\',
    '\\|',
    '\\\\|',
    '*',
    '_',
    '~~',
    '$',
    '$`',
    '&',
    '&lt;',
    '&#64;',
    '%%',
    ';',
  ],
  ...[
    '@octocat',
    'a@b.example',
    '#12',
    'GH-12',
    'someone/luthier#3',
    '0123456789abcdef0123456789abcdef01234567',
  ],
  ...[
    'https://evil.example/',
    'www.evil.example',
    'ftp://evil.example',
    'mailto:a@b.example',
    'javascript:alert(1)',
  ],
  ...[
    '[x](https://evil.example)',
    '![i](https://evil.example/i.png)',
    '[x]: https://evil.example',
    '<https://evil.example>',
  ],
  ...[
    '<img src=x onerror=alert(1)>',
    '<a href="https://evil.example">',
    '<script>',
    '<!--',
    '-->',
    '<!-- -->',
  ],
  ...['</details>', '<details>', '</summary>', '</code>', '"', "'", ']]>'],
  ...[
    '\n',
    '\r\n',
    '\n\n',
    '\n# Title\n',
    '\n\n| a | b |\n|---|---|\n| c | d |\n',
    '\n> [!NOTE]\n',
    '\n---\n',
    '\n- ',
  ],
  ...[
    '\u202e',
    '\u2066',
    '\u200b',
    '\u0000',
    '\u001b[31m',
    '\u2028',
    '\ufeff',
    '\ud800',
    '\u{e0041}',
    '\u00ad',
  ],
  ...['end', 'click A href', 'x-axis', 'lm.Small', 'experiments/lm.ts:76', ' ', 'x', '1', ':', '/', '..'],
];
const hostile = fc.oneof(
  fc.array(fc.constantFrom(...fragments), { maxLength: 8 }).map((parts) => parts.join('')),
  fc
    .tuple(fc.constantFrom(...fragments), fc.integer({ min: 100, max: 3000 }))
    .map(([part, times]) => part.repeat(times).slice(0, 99_000)),
);
const place = fc.oneof(
  hostile,
  hostile.map((file) => `${file}:7`),
  fc.constantFrom(
    'experiments/lm.ts:76',
    '../../../x.ts:1',
    'a/../b.ts:2',
    'luthier/src/x.ts:3',
    'a b.ts:3',
    './x.ts:3',
  ),
);
const optional = { requiredKeys: [] };
const failure = fc.record({ message: hostile, place }, { requiredKeys: ['message'] });
const side = fc.record({ text: hostile, place });
const defaultSide = fc.record({
  text: hostile,
  isDefault: fc.constant(true as const),
  declaredBy: hostile,
  place,
});
const setSide = fc.record({ text: hostile, place, setBy: hostile });
const figure = fc.record({ old: fc.constantFrom(0, 1, 1e6), new: fc.constantFrom(0, 1, 1e9) }, optional);
const variable = fc.record({ name: hostile, count: fc.nat(9), old: hostile, new: hostile });
const checkpoints = fc.record({
  goesOn: fc.constantFrom('same', 'changed', 'never', 'unknown'),
  changes: fc.array(fc.record({ what: hostile, text: hostile }), { maxLength: 2 }),
  error: hostile,
  forcedBy: fc.array(hostile, { maxLength: 2 }),
  appeared: fc.array(variable, { maxLength: 2 }),
  vanished: fc.array(variable, { maxLength: 2 }),
  reshaped: fc.array(variable, { maxLength: 2 }),
});
const rates = fc.record({
  steps: fc.constantFrom(1, 7, 1e15),
  rates: fc.array(
    fc.oneof(fc.constantFrom(0, 5e-324, 1e-7, 1e30, -1e30), fc.double({ min: -1, max: 1, noNaN: true })),
    {
      minLength: 2,
      maxLength: 100,
    },
  ),
});
const part = fc.constantFrom(...fingerprinted);
const experiment: fc.Arbitrary<ExperimentReport> = fc.record(
  {
    name: hostile,
    status: fc.constantFrom(...statuses),
    against: hostile,
    former: fc.record({
      name: hostile,
      evidence: fc.constant(['class'] as const),
      oldFile: hostile,
      newFile: hostile,
      leadsTo: hostile,
      alias: hostile,
    }),
    was: fc.record({ base: hostile, place, description: hostile, lastCommit: hostile }),
    constants: fc.array(fc.record({ name: hostile, old: setSide, new: setSide }), { maxLength: 2 }),
    fields: fc.array(
      fc.record({
        what: fc.constantFrom('changed', 'moved', 'class'),
        path: hostile,
        newPath: hostile,
        old: fc.oneof(side, defaultSide),
        new: side,
      }),
      { maxLength: 2 },
    ),
    effects: fc.record(
      {
        ...{ parameters: figure, flopsPerToken: figure, tokensPerStep: figure, peakMemory: figure },
        ...{ trainingTokens: figure, trainingFlops: figure, deviceHours: figure, price: figure },
        ...{ precision: fc.constant({ old: 'float32' as const, new: 'bfloat16' as const }) },
      },
      {
        requiredKeys: [
          ...(['parameters', 'flopsPerToken', 'tokensPerStep', 'peakMemory'] as const),
          ...(['trainingTokens', 'trainingFlops', 'deviceHours', 'price', 'precision'] as const),
        ],
      },
    ),
    checkpoints,
    learningRates: fc.record({ old: rates, new: rates }),
    computed: fc.record({
      differs: fc.array(part, { maxLength: 2 }),
      uncompared: fc.array(fc.record({ part, reason: hostile }), { maxLength: 2 }),
      files: fc.array(hostile, { maxLength: 3 }),
    }),
    oldError: failure,
    newError: failure,
  },
  { requiredKeys: ['name', 'status', 'constants', 'fields'] },
);
const declaration = fc.record({
  what: fc.constantFrom('class', 'field', 'constant'),
  of: fc.array(hostile, { maxLength: 2 }),
  old: hostile,
  new: hostile,
  value: hostile,
  experiments: fc.array(hostile, { maxLength: 5 }),
});
const report: fc.Arbitrary<DiffReport> = fc
  .record({
    old: fc.record({ label: hostile, commit: fc.oneof(hostile, fc.constant('a'.repeat(40))) }),
    new: fc.record({ label: hostile }),
    experiments: fc.array(experiment, { maxLength: 12 }),
    declarations: fc.array(declaration, { maxLength: 3 }),
    notes: fc.array(hostile, { maxLength: 12 }),
  })
  .map(({ experiments, ...rest }) => reportWith(experiments, rest));

const context: ReviewContext = {
  repository: 'https://github.com/someone/luthier',
  head: 'f'.repeat(40),
  run: 'https://github.com/someone/luthier/actions/runs/77',
  pictures: 'config-review',
  labels: [],
};
const ours =
  /^https:\/\/github\.com\/someone\/luthier\/(?:commit\/[af]{40}|blob\/[af]{40}\/(?:(?!\.\.?\/)[\w.%+-]+\/)*[\w.%+-]+#L\d+|actions\/runs\/77(?:#artifacts)?)$/;

const chart =
  /^%%\{[\w:" {},#]+\}%%\nxychart-beta\n {2}x-axis "step" 0 --> \d+\n {2}y-axis "learning rate, in 1e-?\d+" -?[\d.]+ --> [\d.]+\n(?: {2}line \[-?[\d.]+(?:, -?[\d.]+)+\]\n){2}$/;

// As GitHub reads it: with HTML, tables, and addresses that become links by themselves.
const parser = new MarkdownIt({ html: true, linkify: true });
parser.linkify.set({ fuzzyLink: true, fuzzyEmail: true });

function flat(tokens: readonly Token[]): Token[] {
  return tokens.flatMap((token) => [token, ...flat(token.children ?? [])]);
}

/** What GitHub would make a mention, a reference or a link of; it looks at no code. */
const interpreted = /@\w|#\d|\bGH-\d|https?:|www\.|\b[\da-f]{7,40}\b(?!%)/i;
const code = /<code>(?:[^<>"&]|&(?:amp|lt|gt|quot);)*<\/code>/g;

function expectOurs(markdown: string, experiments: number): void {
  expect(markdown.length).toBeLessThan(60_000);
  expect(markdown).not.toMatch(/[^\P{C}\n]/u);
  const tokens = flat(parser.parse(markdown, {}));
  const of = (type: string) => tokens.filter((token) => token.type === type);
  expect(of('heading_open').map(({ markup }) => markup)).toEqual(['###']);
  for (const link of of('link_open')) expect(link.attrGet('href')).toMatch(ours);
  expect(of('image')).toEqual([]);
  for (const { info, content } of of('fence')) {
    expect(info).toMatch(/^(?:text|mermaid)$/);
    if (info === 'mermaid') expect(content).toMatch(chart);
  }
  for (const type of ['code_block', 'hr', 's_open']) expect(of(type)).toEqual([]);
  for (const { content } of of('text')) expect(content).not.toMatch(interpreted);
  for (const { content } of of('html_inline')) expect(content).toBe('<!-- -->');
  const html = of('html_block').map(({ content }) => content.replace(code, 'CODE'));
  for (const content of html) {
    expect(content).toMatch(/^<details>\n<summary>[^<>@#]*<\/summary>\n$|^<\/details>\n?$/);
    expect(content).not.toMatch(interpreted);
  }
  expect(html.filter((each) => each.startsWith('<details>')).length * 2).toBe(html.length);
  expect(of('table_open').length).toBeLessThanOrEqual(1);
  expect(of('tr_open').length).toBeLessThanOrEqual(1 + experiments);
  // Columns of figures that nothing tells of are left out; no text adds one.
  const header = tokens.filter((_, i) => tokens[i - 1]?.type === 'th_open').map(({ content }) => content);
  const known = [
    'Experiment',
    'Verdict',
    'Numerics',
    'Checkpoints',
    ...figureKinds.map(({ column }) => column),
  ];
  expect(header).toEqual(known.filter((column) => header.includes(column)));
  // A cell too many would be cut off, and one too few be added.
  expect(of('td_open').length).toBe((of('tr_open').length - of('table_open').length) * header.length);
  const names = /^(?:\d+ experiments: |, | and \d+ more|)$/;
  for (const [i, { type }] of tokens.entries()) {
    if (type !== 'tr_open' || tokens[i + 1]!.type !== 'td_open') continue;
    const cell = tokens[i + 2]!.children!;
    for (const each of cell) if (each.type !== 'code_inline') expect(each.content).toMatch(names);
  }
}

test('no text forges a link, a mention, a heading, a row or HTML, nor makes the comment too long', () => {
  fc.assert(
    fc.property(report, (each) => {
      // JSON has one zero.
      expect(parseReport(JSON.stringify(each))).toEqual(JSON.parse(JSON.stringify(each)));
      for (const known of [context, {}]) {
        const markdown = markdownOf(each, known);
        expectOurs(markdown, each.experiments.length);
      }
    }),
    { numRuns: 60 },
  );
});
