/** @file Checks of a stranger's report by git and source text. */
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { DiffReport, ExperimentReport } from '../../../src/review/reports/diffReport.js';
import { checkReport, factsMarkdown, sourceFacts } from '../../../src/review/versions/reportCheck.js';
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
    expect([...facts.experiments].sort()).toEqual(['new.New', 'other.Two', 'small.Gone', 'small.One']);
    expect([...facts.unpaired].sort()).toEqual(['new.New', 'small.Gone']);
    expect(facts.reached).toBe(3);
    expect(facts.files).toEqual(['experiments/new.ts', 'experiments/small.ts']);
    expect(state()).toBe(before);
  });
});

describe('checkReport', () => {
  it('takes a report that accounts for every experiment of these commits', () => {
    expect(() => checkReport(report, commits, facts)).not.toThrow();
    const moved = { ...row('new.New', 'moved'), former: { ...former, name: 'small.Gone' } } as const;
    expect(() => checkReport({ ...report, experiments: [moved] }, commits, facts)).not.toThrow();
    const all = [...rows, row('small.One', 'changed'), row('other.Two', 'changed')];
    expect(() =>
      checkReport({ ...report, experiments: all, unchanged: 0, untouched: 0 }, commits, facts),
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
      'report.experiments: no row for names that only one commit declares: small.Gone, new.New.',
    ],
    [
      'that leaves experiments out',
      { unchanged: 0 },
      'report.unchanged: the commits declare 4 experiments, the report has 2 rows; expected 2 unchanged or untouched, got 1.',
    ],
    [
      'that makes experiments up',
      { experiments: [...rows, row('lm.Made', 'added')], unchanged: 0 },
      'report.experiments: neither commit declares: lm.Made.',
    ],
    [
      'that says two things of one',
      { experiments: [...rows, row('new.New', 'failing')] },
      'report.experiments: more than one row for: new.New.',
    ],
  ])('refuses one %s', (_, forged, problem) => {
    expect(() => checkReport({ ...report, ...forged }, commits, facts)).toThrow(
      expect.objectContaining({ name: 'ReportError', message: problem }),
    );
  });
});

describe('factsMarkdown', () => {
  const source = "The pull request's own code evaluated its experiments. By git and source text alone, ";

  it('names the changed files that experiments load, as code', () => {
    expect(factsMarkdown(facts)).toBe(
      `${source}3 of 4 experiments load 2 changed files: \`experiments/new.ts\`, \`experiments/small.ts\`.`,
    );
    const many = Array.from({ length: 10 }, (_, i) => `src/@${i}\n.ts`);
    expect(factsMarkdown({ ...facts, files: many })).toContain('`src/@7\\u000a.ts`, 2 more.');
    expect(factsMarkdown({ ...facts, reached: 0, files: [] })).toBe(
      `${source}no experiment loads a changed file.`,
    );
  });
});
