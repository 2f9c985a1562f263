/** @file Checks of a stranger's report by git and source text. */
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { DiffReport, ExperimentReport } from '../../../src/review/reports/diffReport.js';
import { checkedReport } from '../../../src/review/versions/reportCheck.js';
import { factsMarkdown, sourceFacts } from '../../../src/review/versions/sourceFacts.js';
import { experimentsFile, family, repositoryOf } from '../repository.js';

const { folder, git, write, state } = repositoryOf({
  'experiments/family.ts': family,
  'experiments/small.ts': experimentsFile(
    'export class One extends Family {}',
    'export class Gone extends Family {}',
  ),
  'experiments/other.ts': experimentsFile('export class Two extends Family {}'),
});
write({
  'experiments/small.ts': experimentsFile('export class One extends Family {}', 'process.exit(3);'),
  'experiments/new.ts': experimentsFile('export class New extends Family {}'),
  'README.md': 'It changed.\n',
});
// Followed, it would declare an experiment from a file of the machine.
symlinkSync(join(folder, 'experiments/small.ts'), join(folder, 'experiments/linked.ts'));
git('add', '.');
git('commit', '--quiet', '--message=change');
const commits = { base: git('rev-parse', 'main').trim(), head: git('rev-parse', 'change').trim() };
const notRead = '\nNot read: experiments/linked.ts: It is a symbolic link, which is not followed here.';
const before = state();
const facts = sourceFacts(folder, commits);

const row = (name: string, status: ExperimentReport['status']): ExperimentReport => {
  return { name, status, constants: [], fields: [] };
};
const former = { evidence: [], oldFile: 'a.ts', newFile: 'b.ts', alias: '' };
const rows = [row('small.Gone', 'removed'), row('new.New', 'added')];
const report: DiffReport = {
  format: 'luthier-config-diff',
  version: 1,
  old: { label: 'main', commit: commits.base },
  new: { label: 'working tree', commit: commits.head },
  experiments: rows,
  declarations: [],
  thresholds: [],
  unchanged: 1,
  untouched: 1,
  notes: [],
};

describe('sourceFacts', () => {
  it('tells of both commits, none of which is run or stays', () => {
    expect([...facts.base].sort()).toEqual(['other.Two', 'small.Gone', 'small.One']);
    expect([...facts.head].sort()).toEqual(['new.New', 'other.Two', 'small.One']);
    expect([...facts.reached].sort()).toEqual(['new.New', 'small.Gone', 'small.One']);
    expect(facts.files).toEqual(['experiments/new.ts', 'experiments/small.ts']);
    expect(state()).toBe(before);
  });
});

describe('checkedReport', () => {
  it('takes a report that accounts for every experiment of these commits', () => {
    expect(() => checkedReport(report, commits, facts)).not.toThrow();
    const all = [...rows, row('small.One', 'changed'), row('other.Two', 'changed')];
    expect(() =>
      checkedReport({ ...report, experiments: all, unchanged: 0, untouched: 0 }, commits, facts),
    ).not.toThrow();
  });

  it.each<[string, Partial<DiffReport>, string]>([
    [
      'of another commit',
      { new: { label: 'working tree', commit: commits.base } },
      `report.new.commit: expected ${commits.head}, got ${commits.base}.`,
    ],
    [
      'of no commit',
      { new: { label: 'working tree' } },
      `report.new.commit: expected ${commits.head}, got none.`,
    ],
    [
      'against another base',
      { old: { label: 'main', commit: commits.head } },
      `report.old.commit: expected ${commits.base}, got ${commits.head}.`,
    ],
    [
      'that hides what was added and removed',
      { experiments: [], unchanged: 4, untouched: 0 },
      `report.experiments: no row for names that only one commit declares: small.Gone, new.New.${notRead}`,
    ],
    [
      'that leaves experiments out',
      { unchanged: 0 },
      `report.unchanged: the commits declare 4 experiments, the report has 2 rows; expected 2 unchanged or untouched, got 1.${notRead}`,
    ],
    [
      'that makes experiments up',
      { experiments: [...rows, row('lm.Made', 'added')], unchanged: 0 },
      `report.experiments: neither commit declares: lm.Made.${notRead}`,
    ],
    [
      'that says two things of one',
      { experiments: [...rows, row('new.New', 'failing')] },
      `report.experiments: more than one row for: new.New.${notRead}`,
    ],
    [
      'that calls a removed one the same',
      { experiments: [row('small.Gone', 'unchanged'), row('new.New', 'added')] },
      'report.experiments: small.Gone, which the base alone declares: expected removed, got unchanged.',
    ],
    [
      'that calls a removed one mended',
      { experiments: [row('small.Gone', 'mended'), row('new.New', 'added')] },
      'report.experiments: small.Gone, which the base alone declares: expected removed, got mended.',
    ],
    [
      'that calls an added one failing as before',
      { experiments: [row('small.Gone', 'removed'), row('new.New', 'failing')] },
      'report.experiments: new.New, which the head alone declares: expected added, broken, got failing.',
    ],
    [
      'that calls one of both removed',
      { experiments: [...rows, row('small.One', 'removed')], unchanged: 0 },
      'report.experiments: small.One, which both commits declare: expected broken, changed, mended, renamed, redeclared, uncompared, failing, got removed.',
    ],
    [
      'that calls one of both another name of one',
      {
        experiments: [...rows, { ...row('small.One', 'changed'), former: { ...former, name: 'other.Two' } }],
        unchanged: 0,
      },
      'report.experiments: small.One, which the base declares: expected no other former name, got other.Two.',
    ],
    [
      'that makes a former name up',
      {
        experiments: [rows[0]!, { ...row('new.New', 'moved'), former: { ...former, name: 'lm.Made' } }],
      },
      'report.experiments: new.New, which the head alone declares: expected no other former name, got lm.Made.',
    ],
    [
      'in which a removed one is two others',
      {
        experiments: [rows[0]!, { ...row('new.New', 'moved'), former: { ...former, name: 'small.Gone' } }],
      },
      `report.experiments: more than one row for: small.Gone.${notRead}`,
    ],
  ])('refuses one %s', (_, forged, problem) => {
    expect(() => checkedReport({ ...report, ...forged }, commits, facts)).toThrow(
      expect.objectContaining({ name: 'ReportError', message: problem }),
    );
  });
});

describe("git's word", () => {
  const lie = { base: 'Lie', place: 'lie.ts:1', description: 'It was nothing.', lastCommit: 'none' };

  it('describes a removed experiment', () => {
    const removed = { ...row('small.Gone', 'removed'), was: lie };
    const [told] = checkedReport({ ...report, experiments: [removed, rows[1]!] }, commits, facts).experiments;
    expect(told).toEqual({
      ...row('small.Gone', 'removed'),
      was: {
        base: 'Family',
        place: 'experiments/small.ts:4',
        description: '',
        lastCommit: expect.stringMatching(/^[0-9a-f]+ of \d{4}-\d\d-\d\d: base$/),
      },
    });
  });

  it('keeps an experiment removed whose new name shows in no text', () => {
    const moved = {
      ...row('new.New', 'moved'),
      former: { ...former, name: 'small.Gone', evidence: ['configs'] },
    };
    const { experiments, notes } = checkedReport(
      { ...report, experiments: [moved as ExperimentReport] },
      commits,
      { ...facts, renameOf: (...names) => ({ ...facts.renameOf(...names), evidence: new Set() }) },
    );
    expect(experiments.map(({ name, status }) => [name, status])).toEqual([
      ['small.Gone', 'removed'],
      ['new.New', 'moved'],
    ]);
    expect(notes).toEqual([
      "small.Gone is gone by git. That it is new.New now, only the pull request's own code says.",
    ]);
  });

  it('shows a new name by the text of the class, and says where it was', () => {
    const moved = {
      ...row('new.New', 'moved'),
      former: { ...former, name: 'small.Gone', evidence: ['configs'] },
    };
    const told = checkedReport({ ...report, experiments: [moved as ExperimentReport] }, commits, facts);
    expect(told.experiments.map(({ name, former: was }) => [name, was])).toEqual([
      [
        'new.New',
        {
          name: 'small.Gone',
          evidence: ['configs'],
          oldFile: 'experiments/small.ts',
          newFile: 'experiments/new.ts',
          alias: "export { New as Gone } from './new.js';",
        },
      ],
    ]);
  });

  it('counts as not reached no more experiments than load no changed file', () => {
    const told = checkedReport({ ...report, unchanged: 0, untouched: 2 }, commits, facts);
    expect([told.unchanged, told.untouched]).toEqual([1, 1]);
  });
});

describe('factsMarkdown', () => {
  const source = "The pull request's own code evaluated its experiments. By git and source text alone, ";

  it('names the changed files that experiments load, as code', () => {
    expect(factsMarkdown(facts)).toBe(
      `${source}3 of 4 experiments load 2 changed files: \`experiments/new.ts\`, \`experiments/small.ts\`. ` +
        'Whether experiments load one of 2 other changed files cannot be told: ' +
        '`experiments/linked.ts: It is a symbolic link, which is not followed here.`.',
    );
    const many = Array.from({ length: 10 }, (_, i) => `src/@${i}\n.ts`);
    expect(factsMarkdown({ ...facts, files: many })).toContain('`src/@7\\u000a.ts`, 2 more.');
    const none = { ...facts, reached: new Set<string>(), files: [], unfollowed: [] };
    expect(factsMarkdown(none)).toBe(`${source}no experiment loads a changed file.`);
    const unfollowed = ['experiments/a.ts:4 imports a computed path'];
    expect(factsMarkdown({ ...none, unfollowed })).toBe(
      `${source}whether experiments load one of 2 other changed files cannot be told: ` +
        '`experiments/a.ts:4 imports a computed path`.',
    );
    expect(
      factsMarkdown({ ...none, unfollowed, others: 0, settings: ['package.json'], named: ['a.json'] }),
    ).toBe(
      `${source}text that they load names \`a.json\`, which changed. All depend on \`package.json\`, which changed.`,
    );
  });
});

describe('experiments that are found by loading', () => {
  const mixed = repositoryOf({
    'experiments/family.ts': family,
    'lib/mixins.ts': 'export const withDropout = (Base: any, rate: number): any => class extends Base {};\n',
    'experiments/mixed.ts': `import { withDropout } from '../lib/mixins.js';
import { Family } from './family.js';
export class Mixed extends withDropout(Family, 0.1) {}
export const rates = withDropout(Family, 0.2).name.split(' ');
export class Plain extends Family {}
`,
  });
  mixed.write({ 'lib/mixins.ts': 'throw new Error("run");\n' });
  mixed.git('commit', '--quiet', '--all', '--message=change');
  const both = { base: mixed.git('rev-parse', 'main').trim(), head: mixed.git('rev-parse', 'change').trim() };
  const checked = (loaded: DiffReport['loaded'], unchanged: number): DiffReport => {
    const known = sourceFacts(mixed.folder, both, loaded);
    const sides = {
      old: { label: 'main', commit: both.base },
      new: { label: 'working tree', commit: both.head },
    };
    const told = { ...report, ...sides, experiments: [], unchanged, untouched: 0, ...(loaded && { loaded }) };
    return checkedReport(told, both, known);
  };

  it('count where source text leaves them open', () => {
    expect(checked(undefined, 1).unchanged).toBe(1);
    const loaded = { old: ['mixed.Mixed'], new: ['mixed.Mixed'] };
    expect(checked(loaded, 2).unchanged).toBe(2);
    const known = sourceFacts(mixed.folder, both, loaded);
    expect([...known.reached].sort()).toEqual(['mixed.Mixed', 'mixed.Plain']);
    expect(factsMarkdown(known)).toContain(
      "Which of `mixed.Mixed`, `mixed.rates` are experiments, only the pull request's own code says.",
    );
  });

  it('have a row where one commit alone has them, and are counted', () => {
    expect(() => checked({ old: ['mixed.Mixed'], new: [] }, 1)).toThrow(
      'report.experiments: no row for names that only one commit declares: mixed.Mixed.',
    );
    expect(() => checked({ old: ['mixed.Mixed'], new: ['mixed.Mixed'] }, 1)).toThrow(
      'the commits declare 2 experiments',
    );
  });

  it.each(['mixed.Plain', 'mixed.Gone', 'family.Family', 'mixed.*', 'mixed'])('are not %s', (name) => {
    expect(() => checked({ old: [], new: [name] }, 1)).toThrow(
      `report.loaded.new: source text tells that these are no experiments, or which ones they are: ${name}.`,
    );
  });
});
