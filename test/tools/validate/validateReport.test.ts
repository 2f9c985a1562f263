/** @file Report of `luthier validate` on experiments in each state: verdicts, details, exit codes. */
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import type { FoundExperiment } from '../../../src/registry/names/discovery.js';
import { plain } from '../../../src/system/text/terminalOutput.js';
import type { Checked } from '../../../src/tools/validate/checkAll.js';
import { type Findings, type Problem, parseLevel } from '../../../src/tools/validate/levels.js';
import {
  type Result,
  resultOf,
  resultOfBroken,
  type ValidateRequest,
  validateReport,
} from '../../../src/tools/validate/validateReport.js';

const none: Findings = { problems: [], warnings: [], unread: [], ignored: [] };
const constants = [
  { kind: 'set', name: 'spare', line: 7 },
  { kind: 'declared', name: 'size', line: 8 },
];
const found = { name: 'a.A', place: { file: resolve('experiments/a.ts'), line: 3 }, constants };
const checked = (findings: Partial<Findings>, reached: Checked['reached'] = 'trace') =>
  resultOf({
    ...{ found: found as unknown as FoundExperiment, reached, seconds: 1.25 },
    findings: { ...none, ...findings },
  });

const problem = (fields: Partial<Problem>): Problem => ({ level: 'task', message: 'm', ...fields });
const needs = (...texts: string[]) => texts.map((text) => problem({ message: text, needs: text }));

test('an experiment passes, is incomplete or fails, and tells of constants of its own that nothing reads', () => {
  expect(checked({ unread: ['spare', 'size', 'other'], warnings: ['w'], parameters: 1234 })).toEqual({
    ...{ name: 'a.A', place: 'experiments/a.ts:3', state: 'passed', reached: 'trace', parameters: 1234 },
    ...{ problems: [], seconds: 1.25 },
    warnings: ['experiments/a.ts:7: spare is set, and nothing reads it.', 'w'],
  });
  expect(checked({ problems: needs('--set a=A') })).toMatchObject({ state: 'incomplete' });
  expect(checked({ problems: [...needs('--set a=A'), problem({})] })).toMatchObject({ state: 'failed' });
  const broken = { file: resolve('experiments/b.ts'), line: 4, message: 'Oh.' };
  expect(resultOfBroken({ name: 'b', problem: broken } as never)).toEqual({
    ...{ name: 'b', place: 'experiments/b.ts:4', state: 'failed', reached: undefined },
    problems: [
      { level: 'resolve', message: 'Oh. No experiment can be found in it.', place: 'experiments/b.ts:4' },
    ],
    ...{ warnings: [], seconds: 0 },
  });
});

const asked: ValidateRequest = {
  level: 'trace',
  named: false,
  directories: ['experiments', 'more'],
  seconds: 3.06,
};
const textOf = (results: readonly Result[]) => validateReport(results, asked).text(plain);

test('the text has verdicts from best to worst, with details, and those that several share behind the last', () => {
  const problems = [
    problem({ path: 'task.model', message: 'expected 1', place: 'a.ts:1' }),
    problem({ path: 'task.model', message: '(Model): expected 2 (at a.ts:2)', place: 'a.ts:2' }),
    problem({ level: 'trace', path: 'a', message: 'a is told\nin two lines' }),
  ];
  const failed = { ...checked({ problems }), reached: undefined };
  const results = [
    failed,
    { ...failed, name: 'a.B' },
    checked({ problems: needs('--set a=A', 'a machine') }, 'resolve'),
    checked({ warnings: ['w'], parameters: 1234 }),
  ];
  expect(textOf(results)).toBe(
    [
      '            experiment  place               reached  parameters   time',
      'passed      a.A         experiments/a.ts:3  trace         1.23k  1.3 s',
      '    warning: w',
      'incomplete  a.A         experiments/a.ts:3  resolve           –  1.3 s',
      '    needs --set a=A and a machine',
      'failed      a.A         experiments/a.ts:3  –                 –  1.3 s',
      'failed      a.B         experiments/a.ts:3  –                 –  1.3 s',
      '    task: task.model: expected 1 (at a.ts:1)',
      '    task: task.model (Model): expected 2 (at a.ts:2)',
      '    trace: a is told',
      '    in two lines',
      '',
      '4 experiments up to level trace: 1 passed, 1 incomplete, 2 failed, 1 warning. 3.1 s.',
    ].join('\n'),
  );
  expect(textOf([])).toBe('There is no experiment in experiments and more.');
  expect(validateReport([failed], asked).json()).toEqual({
    ...{ level: 'trace', seconds: 3.06 },
    experiments: [{ ...failed, reached: null }],
  });
});

test('exit codes: 1 for what fails, for none, and for what is named and incomplete', () => {
  const [passed, incomplete, failed] = [{}, { problems: needs('x') }, { problems: [problem({})] }].map(
    (each) => checked(each),
  ) as [Result, Result, Result];
  const codes = (named: boolean) =>
    [[], [passed], [passed, incomplete], [passed, failed]].map(
      (results) => validateReport(results, { ...asked, named }).exitCode,
    );
  expect([codes(false), codes(true)]).toEqual([
    [1, 0, 0, 1],
    [1, 0, 1, 1],
  ]);
});

test('a level is a name or a number', () => {
  expect(['trace', '0', '4'].map((text) => parseLevel(text, '--level'))).toEqual([
    'trace',
    'resolve',
    'step',
  ]);
  for (const text of ['5', '-1', 'tr', ''])
    expect(() => parseLevel(text, '--level')).toThrow(
      `--level: expected one of the levels 0 resolve, 1 task, 2 datasets, 3 trace, 4 step; got '${text}'.`,
    );
});
