/** @file Comments of reviews: what they say first, links to the reviewed repository, folded rows, errors. */
import { expect, test } from 'vitest';
import type { ExperimentReport } from '../../../src/review/reports/diffReport.js';
import { markdownOf } from '../../../src/review/reports/markdownReport.js';
import type { ReviewContext } from '../../../src/review/reports/markdownText.js';
import { Links } from '../../../src/review/reports/markdownText.js';
import { experimentOf, reportWith } from './sampleReport.js';

const context: ReviewContext = {
  repository: 'https://github.com/someone/luthier',
  head: 'fed9876'.padEnd(40, '0'),
  run: 'https://github.com/someone/luthier/actions/runs/77',
  pictures: 'config-review',
};
const changed: ExperimentReport = {
  ...experimentOf('changed'),
  constants: [
    {
      name: 'numHeads',
      old: { text: '4', setBy: 'LmExperiment', place: 'experiments/lm.ts:30' },
      new: { text: '8', setBy: 'Small', place: 'experiments/lm.ts:76' },
    },
  ],
  fields: [
    {
      what: 'changed',
      path: 'task.model.numHeads',
      old: { text: '4', isDefault: true, declaredBy: 'Head', place: 'luthier/src/layers/head.ts:12' },
      new: { text: '8', place: '--set numHeads=8' },
    },
    {
      what: 'changed',
      path: 'task.rate',
      old: { text: '1', place: 'a/../../b.ts:3' },
      new: { text: '2', place: 'b.ts:4' },
    },
  ],
};

test('experiments with new names, and with fields more or less, are listed by themselves', () => {
  const named = (status: ExperimentReport['status'], name: string) => experimentOf(status, { name });
  const report = reportWith([
    named('renamed', 'a.A'),
    named('redeclared', 'b.B'),
    named('renamed', 'a.C'),
    named('changed', 'c.C'),
  ]);
  const details = markdownOf(report)
    .split('<details>')
    .slice(1)
    .map((text) =>
      text
        .replace(/<\/details>[\s\S]*/, '')
        .trim()
        .split('\n'),
    );
  expect(details.filter(([summary]) => summary!.includes('values stay'))).toEqual([
    ['<summary>🏷️ names only: 2 experiments whose values stay the same</summary>', '', '- `a.A`', '- `a.C`'],
    ['<summary>🏷️ fields only: 1 experiment whose values stay the same</summary>', '', '- `b.B`'],
  ]);
});

test('the verdict, the head commit and the run; places are lines of the commit that they are in', () => {
  const thresholds = [{ figure: 'experiments', when: 'removed', needsLabel: 'removes' }] as const;
  const report = reportWith([experimentOf('removed', { name: 'lm.Gone' }), changed], {
    thresholds,
    unchanged: 3,
  });
  expect(markdownOf(report, { ...context, labels: [{ name: 'removes', by: 'ada' }] })).toMatchInlineSnapshot(`
    "### 1 removed, 1 changes, its cost not compared, 3 the same

    [\`main (abc1234)\`](https://github.com/someone/luthier/commit/abc1234000000000000000000000000000000000) → [\`fed9876\`](https://github.com/someone/luthier/commit/fed9876000000000000000000000000000000000) · [the run](https://github.com/someone/luthier/actions/runs/77) · [pictures](https://github.com/someone/luthier/actions/runs/77#artifacts) in \`config-review\`

    - Allowed by the label \`removes\`, which \`ada\` set: 1 experiment is removed.

    | Experiment | Verdict     | Numerics  | Checkpoints | Parameters | FLOPs/token | Tokens/step | Peak memory |
    |------------|-------------|-----------|-------------|------------|-------------|-------------|-------------|
    | \`lm.Gone\`  | 🗑️ removed | –         | –           | –          | –           | –           | –           |
    | \`lm.Small\` | ✏️ changed  | same code | –           | –          | –           | –           | –           |

    <details>
    <summary><code>lm.Small</code>: 1 constant, 2 fields</summary>

    - \`numHeads\`: \`4\` → \`8\` · set by \`Small\` at [\`experiments/lm.ts:76\`](https://github.com/someone/luthier/blob/fed9876000000000000000000000000000000000/experiments/lm.ts#L76) · was set by \`LmExperiment\` at [\`experiments/lm.ts:30\`](https://github.com/someone/luthier/blob/abc1234000000000000000000000000000000000/experiments/lm.ts#L30)
    - \`task.model.numHeads\`: \`4 (default)\` → \`8\` · \`--set numHeads=8\` · was default of \`Head\` at \`luthier/src/layers/head.ts:12\`
    - \`task.rate\`: \`1\` → \`2\` · [\`b.ts:4\`](https://github.com/someone/luthier/blob/fed9876000000000000000000000000000000000/b.ts#L4) · was \`a/../../b.ts:3\`

    </details>"
  `);
  const [verdict, versions, condition] = markdownOf(report).split('\n\n');
  expect([verdict, versions, condition]).toEqual([
    '### ❌ Fails: 1 removed, 1 changes, its cost not compared, 3 the same',
    '`main (abc1234)` → `working tree`',
    '- Fails without the label `removes`: 1 experiment is removed.',
  ]);
  expect(markdownOf(report)).not.toContain('](');
});

test.each([
  ['experiments/lm.ts:76', 'packages/models/experiments/lm.ts#L76'],
  ['../shared/heads.ts:3', 'packages/shared/heads.ts#L3'],
  ['../../../etc/passwd:1', undefined],
  ['a/../b.ts:3', undefined],
  ['./b.ts:3', undefined],
  ['../..:3', undefined],
])('a project in a folder of its repository: %s', (place, path) => {
  const links = new Links(reportWith([]), { ...context, folder: 'packages/models' });
  const address = `https://github.com/someone/luthier/blob/${context.head}/${path}`;
  expect(links.place(place, 'new')).toBe(path === undefined ? `\`${place}\`` : `[\`${place}\`](${address})`);
});

test('experiments with the same row share one', () => {
  const figure = (now: number) => ({ old: 100, new: now });
  const of = (name: string, parameters: number) =>
    experimentOf('changed', {
      name,
      effects: {
        parameters: figure(parameters),
        flopsPerToken: figure(100),
        tokensPerStep: figure(100),
        trainingTokens: {},
        trainingFlops: {},
        precision: {},
        deviceHours: {},
        price: {},
        peakMemory: figure(100),
      },
      checkpoints: { goesOn: 'same', changes: [], forcedBy: [], appeared: [], vanished: [], reshaped: [] },
    });
  const rows = (experiments: readonly ExperimentReport[]) =>
    markdownOf(reportWith(experiments))
      .split('\n')
      .filter((line) => line.startsWith('|'))
      .map((line) => line.replace(/ +/g, ' '));
  expect(rows([of('a.One', 130), of('a.Two', 200), of('a.Three', 130)]).slice(2)).toEqual([
    '| 2 experiments: `a.One`, `a.Three` | ✏️ changed | same code | same bits | 100 → 130 (**+30%**) | 100 FLOP | 100 | 100 B |',
    '| `a.Two` | ✏️ changed | same code | same bits | 100 → 200 (**+100%**) | 100 FLOP | 100 | 100 B |',
  ]);
  const many = Array.from({ length: 1000 }, (_, i) => of(`a.E${i}`, 110 + i));
  const markdown = markdownOf(reportWith(many));
  expect(markdown.length).toBeLessThan(60_000);
  expect(rows(many).length - 2 + Number(/\n… and (\d+) more experiments/.exec(markdown)![1])).toBe(1000);
});

test('an error that was there before is told with its text, folded, and with what it was before', () => {
  const failing = experimentOf('failing', {
    newError: { message: 'No such file.\nLooked in data.', place: 'experiments/lm.ts:9' },
    oldError: { message: 'No such folder.', place: 'experiments/lm.ts:7' },
  });
  expect(markdownOf(reportWith([failing]), context)).toMatchInlineSnapshot(`
    "### 1 still fails

    [\`main (abc1234)\`](https://github.com/someone/luthier/commit/abc1234000000000000000000000000000000000) → [\`fed9876\`](https://github.com/someone/luthier/commit/fed9876000000000000000000000000000000000) · [the run](https://github.com/someone/luthier/actions/runs/77) · [pictures](https://github.com/someone/luthier/actions/runs/77#artifacts) in \`config-review\`

    <details>
    <summary>⚠️ failing with another error: <code>lm.Small</code></summary>

    \`\`\`text
    No such file.
    Looked in data.
    \`\`\`
    at [\`experiments/lm.ts:9\`](https://github.com/someone/luthier/blob/fed9876000000000000000000000000000000000/experiments/lm.ts#L9)

    Before:

    \`\`\`text
    No such folder.
    \`\`\`
    at [\`experiments/lm.ts:7\`](https://github.com/someone/luthier/blob/abc1234000000000000000000000000000000000/experiments/lm.ts#L7)

    </details>"
  `);
});

test('a comment: numerics before checkpoints before parameters, and details in the same order', () => {
  const figures = (parameters: readonly [number, number]) => ({
    parameters: { old: parameters[0], new: parameters[1] },
    unit: 'tokens',
    flopsPerToken: { old: 200, new: 200 },
    tokensPerStep: { old: 16, new: 16 },
    ...{ trainingTokens: {}, trainingFlops: {}, precision: {}, deviceHours: {}, price: {} },
    peakMemory: { old: 4096, new: 4096 },
  });
  const none = { changes: [], forcedBy: [], appeared: [], vanished: [], reshaped: [] } as const;
  const report = reportWith(
    [
      experimentOf('changed', {
        name: 'lm.Forced',
        fields: [
          {
            what: 'changed',
            path: 'task.model.modelDims',
            old: { text: '16', place: 'experiments/lm.ts:3' },
            new: { text: '32', place: 'experiments/lm.ts:3' },
            forcesNewRun: true,
          },
        ],
        effects: figures([100, 130]),
        checkpoints: {
          ...none,
          goesOn: 'never',
          error: 'checkpoint: 1 variable has another shape:\nlm/w',
          forcedBy: ['task.model.modelDims: 16 → 32'],
          loads: { count: 3, keeps: ['lm/w'] },
          reshaped: [{ name: 'lm/w', count: 1, old: '[16] float32', new: '[32] float32' }],
        },
      }),
      experimentOf('changed', {
        name: 'lm.Other',
        computed: {
          differs: ['training step', 'input'],
          places: [
            { part: 'training step', text: 'Mul of lm/head' },
            { part: 'input', text: "datasets[0] 'train' row 7: label 1 → label 0" },
          ],
          data: ['data/points.json'],
          uncompared: [],
          files: ['lib/head.ts'],
        },
        checkpoints: { ...none, goesOn: 'changed', changes: [{ what: 'loss or gradients' }] },
      }),
      experimentOf('uncompared', {
        name: 'lm.Unread',
        computed: {
          ...{ differs: [], files: ['lib/rows.ts'] },
          uncompared: [{ part: 'input', reason: 'the code that reads it changed' }],
        },
        checkpoints: { ...none, goesOn: 'unknown', changes: [{ what: 'data', text: 'No such file.' }] },
      }),
    ],
    {
      thresholds: (['incompatible', 'changed', 'uncompared'] as const).map((when) => ({
        ...{ figure: 'checkpoints', when, needsLabel: `checkpoints-${when}` },
      })),
      unchanged: 2,
    },
  );
  expect(markdownOf(report)).toMatchInlineSnapshot(`
    "### ❌ Fails: 1 can't go on from its checkpoints, 1 computes something else, 1 not compared in full, 2 the same

    \`main (abc1234)\` → \`working tree\`

    - Fails without the label \`checkpoints-incompatible\`: 1 experiment can't go on from its checkpoints.
    - Fails without the label \`checkpoints-changed\`: 1 experiment goes on changed from its checkpoints.
    - Fails without the label \`checkpoints-uncompared\`: 1 experiment has checkpoints that were not compared.

    | Experiment  | Verdict                | Numerics                                        | Checkpoints                | Parameters           | FLOPs/token | Tokens/step | Peak memory |
    |-------------|------------------------|-------------------------------------------------|----------------------------|----------------------|------------:|------------:|------------:|
    | \`lm.Forced\` | ✏️ changed             | same code                                       | cannot go on: 1 reshaped   | 100 → 130 (**+30%**) |    200 FLOP |          16 |     4.10 kB |
    | \`lm.Other\`  | ✏️ changed             | differs: training step, input, data/points.json | changed: loss or gradients | –                    |           – |           – |           – |
    | \`lm.Unread\` | ❔ not compared in full | not compared: input                             | not compared               | –                    |           – |           – |           – |

    <details>
    <summary>Computes something else: <code>lm.Other</code></summary>

    - \`config same, the training step computes different values (Mul of lm/head), the input gives different rows (datasets[0] 'train' row 7: label 1 → label 0), data/points.json differs: lib/head.ts\`

    </details>

    <details>
    <summary>Runs cannot go on: 1 experiment</summary>

    - \`lm.Forced\`
      - \`forced by task.model.modelDims: 16 → 32\`
      - \`checkpoint: 1 variable has another shape\`
      - \`initFromCheckpoint would load 3 of 4 variables, not lm/w\`
      - \`lm/w [16] float32 → [32] float32\`

    </details>

    <details>
    <summary>Runs go on changed: 1 experiment</summary>

    - \`lm.Other\`
      - \`loss or gradients\`

    </details>

    <details>
    <summary>Checkpoints not compared: 1 experiment</summary>

    - \`lm.Unread\`
      - \`data: No such file.\`

    </details>

    <details>
    <summary><code>lm.Forced</code>: 1 field</summary>

    - \`task.model.modelDims\`: \`16\` → \`32\` · \`experiments/lm.ts:3\` · forces a new run

    </details>

    <details>
    <summary>Not compared</summary>

    - \`lm.Unread\`: \`input: the code that reads it changed\`

    </details>"
  `);
});
