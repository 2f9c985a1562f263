/** @file Diff reports read from JSON that anybody may have written. */
import { describe, expect, it } from 'vitest';
import type { DiffReport } from '../../../src/review/reports/diffReport.js';
import { parseReport } from '../../../src/review/reports/parseReport.js';

const report: DiffReport = {
  format: 'luthier-config-diff',
  version: 1,
  old: { label: 'main (3f9c2d1)', commit: '3f9c2d1' },
  new: { label: 'working tree' },
  experiments: [
    {
      name: 'lm.Small',
      status: 'changed',
      constants: [{ name: 'numHeads', new: { text: '8', setBy: 'Small', place: 'experiments/lm.ts:4' } }],
      fields: [{ what: 'added', path: 'task.x', new: { text: '1', isDefault: true, declaredBy: 'Task' } }],
      effects: {
        parameters: { old: 1, new: 2 },
        flopsPerToken: { new: 2.5 },
        tokensPerStep: {},
        trainingTokens: { old: 1e9, new: 2e9 },
        trainingFlops: { new: 3e18 },
        precision: { old: 'float32', new: 'bfloat16' },
        deviceHours: {},
        price: {},
        peakMemory: { old: 0, new: 0 },
      },
      checkpoints: {
        goesOn: 'never',
        changes: [],
        error: 'not compatible with this model, 1 difference:',
        forcedBy: ['task.model.dims: 1 → 2'],
        loads: { count: 0, keeps: ['w'] },
        appeared: [],
        vanished: [],
        reshaped: [{ name: 'w', count: 1, old: '[1] float32', new: '[2] float32' }],
      },
    },
    {
      name: 'lm.Large',
      status: 'uncompared',
      constants: [],
      fields: [],
      computed: { differs: [], uncompared: [{ part: 'input', reason: 'no data' }], files: ['src/a.ts'] },
      newError: { message: 'No data.' },
    },
  ],
  declarations: [{ what: 'field', of: ['Task'], new: 'x', experiments: ['lm.Small'] }],
  thresholds: [{ figure: 'parameters', moreThan: '10%', needsLabel: 'costs-more' }],
  unchanged: 3,
  untouched: 0,
  notes: ['The compiler changed.'],
};

/** What is wrong with the report with another value at a path. */
function problemWith(path: readonly (string | number)[], value: unknown): string {
  const changed = structuredClone(report) as unknown;
  let at = changed as Record<string | number, unknown>;
  for (const step of path.slice(0, -1)) at = at[step] as typeof at;
  at[path.at(-1)!] = value;
  try {
    parseReport(JSON.stringify(changed));
    return 'nothing';
  } catch (error) {
    return (error as Error).message;
  }
}

describe('parseReport', () => {
  it('gives back what was printed', () => {
    expect(parseReport(JSON.stringify(report, null, 2))).toEqual(report);
  });

  it.each([
    [['format'], 'terraform', "report.format: expected 'luthier-config-diff', got 'terraform'"],
    [['version'], 2, 'report.version: expected 1, got 2'],
    [
      ['experiments', 0, 'status'],
      'fine',
      "report.experiments[0].status: expected one of 'broken', 'removed', 'added', 'changed', 'mended', 'moved', " +
        "'renamed', 'redeclared', 'uncompared', 'failing', 'unchanged', got 'fine'",
    ],
    [
      ['experiments', 0, 'name'],
      7,
      'report.experiments[0].name: expected a string of length at most 100000, got 7',
    ],
    [['experiments', 0, 'effects', 'parameters', 'new'], -1, 'new: expected a non-negative number, got -1'],
    [['unchanged'], 1.5, 'report.unchanged: expected a non-negative integer, got 1.5'],
    [['unchanged'], undefined, 'report.unchanged: expected a non-negative integer, got undefined'],
    [['experiments', 1, 'link'], 'https://example.org', "report.experiments[1]: no field 'link'."],
    [
      ['experiments', 1, 'newError', 'place'],
      null,
      'newError.place: expected a string of length at most 100000, got null',
    ],
    [
      ['experiments', 0, 'constants', 0],
      { name: 'numHeads' },
      "report.experiments[0].constants[0]: expected old, new or both, got {name: 'numHeads'}",
    ],
    [['notes', 0], 'x'.repeat(100_001), 'report.notes[0]: expected a string of length at most 100000, got '],
    [
      ['notes'],
      Array(100_001).fill(''),
      'report.notes: expected an array of length at most 100000 of strings',
    ],
  ])('refuses another value at %j', (path, value, problem) => {
    const message = problemWith(path, value);
    expect(message).toMatch(/^The report has another version's format: report[.[].*\.$/s);
    expect(message).toContain(problem);
    expect(message.length).toBeLessThan(500);
  });

  it.each([
    ['', 'The report is no JSON: Unexpected end of JSON input'],
    [
      '[]',
      "The report has another version's format: report: expected an object with format, version, old, new, experiments, declarations, loaded, thresholds, unchanged, untouched, notes, got [].",
    ],
  ])('refuses the text %j', (text, message) => {
    expect(() => parseReport(text)).toThrow(message);
  });

  it('takes neither keys of prototypes nor deep nesting for a report', () => {
    const text = JSON.stringify(report).replace('"notes":', '"__proto__":{"unchanged":0},"notes":');
    expect(() => parseReport(text)).toThrow("report: no field '__proto__'.");
    expect(() => parseReport(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)).toThrow(
      'report: expected an object with',
    );
  });
});
