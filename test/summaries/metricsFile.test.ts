/** @file metrics.jsonl: lines, non-finite numbers, resuming, torn lines. */

import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MetricsFile, parseMetricsLine, SummaryError } from '../../src/summaries/index.js';
import { runs } from '../faults/campaign.js';

let directory: string;
let path: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'luthier-metrics-'));
  path = join(directory, 'run', 'metrics.jsonl');
});
afterEach(() => rmSync(directory, { recursive: true }));

/** Makes the run's directory. */
function makeRun(): string {
  mkdirSync(join(directory, 'run'), { recursive: true });
  return path;
}

function stepOf(text: string): number | undefined {
  try {
    return (JSON.parse(text) as { step?: number }).step;
  } catch {
    return undefined;
  }
}

const text = () => readFileSync(path, 'utf8');

test('lines are appended in order and can be read at once', () => {
  const metrics = new MetricsFile(path);
  metrics.write({ program: 'train', step: 1, loss: 0.5, note: 'a "b"\n' });
  expect(text()).toBe('{"program":"train","step":1,"loss":0.5,"note":"a \\"b\\"\\n"}\n');
  metrics.write({ step: 2, loss: null });
  metrics.close();
  new MetricsFile(path).close();
  expect(text().split('\n')[1]).toBe('{"step":2,"loss":null}');
});

test('non-finite numbers are null, with the number beside, and are read back as numbers', () => {
  const metrics = new MetricsFile(path);
  const line = { a: Number.NaN, b: Number.POSITIVE_INFINITY, c: Number.NEGATIVE_INFINITY, d: 1, e: null };
  metrics.write(line);
  metrics.write({ a: 2 });
  const numbers = { large: 1e21, whole: 2 ** 53, small: 5e-324, most: Number.MAX_VALUE, third: 1 / 3 };
  metrics.write(numbers);
  metrics.close();
  expect(parseMetricsLine(text().trimEnd().split('\n')[2]!)).toEqual(numbers);
  const [first, second] = text().trimEnd().split('\n');
  expect(first).toBe(
    '{"a":null,"b":null,"c":null,"d":1,"e":null,"nonFinite":{"a":"NaN","b":"Infinity","c":"-Infinity"}}',
  );
  expect(second).toBe('{"a":2}');
  expect(parseMetricsLine(first!)).toEqual(line);
  expect(parseMetricsLine(second!)).toEqual({ a: 2 });
});

test('what is no object is no line, and marks that name no number are left out', () => {
  for (const other of ['', 'null', '[1]', '5', '{"a":']) expect(parseMetricsLine(other)).toBeUndefined();
  expect(parseMetricsLine('{"a":null,"nonFinite":{"a":"NaN","b":"5"}}')).toEqual({ a: Number.NaN });
  expect(parseMetricsLine('{"a":1,"nonFinite":7}')).toEqual({ a: 1 });
});

test('a resumed run removes the lines that it will write again, and only those', () => {
  const first = new MetricsFile(path);
  first.write({ program: 'run', peak: 1 });
  for (const step of [10, 20, 30]) first.write({ program: 'train', step });
  first.close();
  new MetricsFile(path, { resumeStep: 20 }).close();
  expect(text()).toBe(
    '{"program":"run","peak":1}\n{"program":"train","step":10}\n{"program":"train","step":20}\n',
  );
  expect(readdirSync(join(directory, 'run'))).toEqual(['metrics.jsonl']);
});

test('whatever the run did before, no step stands there twice after resuming', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(50), { minLength: 1, maxLength: 8 }), (resumeSteps) => {
      rmSync(path, { force: true });
      let reached = 0;
      for (const wanted of resumeSteps) {
        const resumeStep = Math.min(wanted, reached);
        const metrics = new MetricsFile(path, { resumeStep });
        reached = resumeStep + 5;
        for (let step = resumeStep + 1; step <= reached; step++) metrics.write({ step });
        metrics.close();
      }
      const steps = text()
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).step);
      expect(steps).toEqual(Array.from({ length: reached }, (_, index) => index + 1));
    }),
    { numRuns: runs(20, 6) },
  );
});

test('the torn last line of a killed run goes', () => {
  new MetricsFile(path).close();
  appendFileSync(path, '{"step":1}\n{"step":2,"lo');
  const metrics = new MetricsFile(path);
  metrics.write({ step: 2 });
  metrics.close();
  expect(text()).toBe('{"step":1}\n{"step":2}\n');
});

test('lines of programs that run again at the step go, and others of it stay', () => {
  writeFileSync(
    makeRun(),
    '{"program":"train","step":4}\n{"program":"a","step":4}\n{"program":"b","step":4}\n',
  );
  new MetricsFile(path, { resumeStep: 4, again: ['a'] }).close();
  expect(text()).toBe('{"program":"train","step":4}\n{"program":"b","step":4}\n');
});

test('what is no line of ours goes, a last line without its newline gets one', () => {
  const lines = ['{"program":"train","step":1}', 'null', '\0\0', '', '[', '{"program":"note"}'];
  writeFileSync(makeRun(), lines.join('\n'));
  const metrics = new MetricsFile(path, { resumeStep: 1 });
  metrics.write({ step: 2 });
  metrics.close();
  expect(text()).toBe('{"program":"train","step":1}\n{"program":"note"}\n{"step":2}\n');
});

test('a file above 512 MB, with a line longer than any buffer, is cut at its end, in place', () => {
  // A hole of 600 MB counts as one line; it takes no room on the disk.
  const hole = 600 << 20;
  writeFileSync(makeRun(), '{"program":"train","step":1}\n');
  truncateSync(path, hole);
  appendFileSync(path, '\n{"program":"train","step":2}\n{"program":"eval","step":2}\n');
  const { size, ino } = statSync(path);
  appendFileSync(path, '{"program":"train","step":3}\n{"program":"train","st');
  new MetricsFile(path, { resumeStep: 2 }).close();
  expect(statSync(path)).toMatchObject({ size, ino });
  // Where no line of training stays, the hole goes: it is no line.
  new MetricsFile(path, { resumeStep: 0 }).close();
  expect(text()).toBe('');
});

test('whatever stands in the file, what is left is what a reader of all lines would keep', () => {
  const line = fc.oneof(
    fc.record({ program: fc.constantFrom('eval', 'note'), step: fc.nat(9) }).map((l) => JSON.stringify(l)),
    fc.constantFrom('{"program":"note"}', '', 'torn {', '5', '"x"'),
    fc.nat(200_000).map((length) => JSON.stringify({ note: 'x'.repeat(length) })),
  );
  const training = fc.array(fc.array(line, { maxLength: 4 }), { maxLength: 9 });
  fc.assert(
    fc.property(training, fc.nat(10), fc.boolean(), (between, resumeStep, isTorn) => {
      const all = between.flatMap((lines, step) => [`{"program":"train","step":${step}}`, ...lines]);
      // Nothing of a later step stands before a line of training: training would have removed it.
      let reached = -1;
      const valid = all.filter((text) => {
        const step = stepOf(text);
        if (text.includes('"train"')) reached = step!;
        return step === undefined || step <= reached;
      });
      writeFileSync(makeRun(), valid.map((text) => `${text}\n`).join('') + (isTorn ? '{"st' : ''));
      new MetricsFile(path, { resumeStep }).close();
      const last = valid.findLastIndex((text) => text.includes('"train"') && stepOf(text)! <= resumeStep);
      const expected = valid.filter((text, at) => {
        if (at <= last) return true;
        const step = stepOf(text);
        return text.startsWith('{') && (step === undefined || step <= resumeStep);
      });
      expect(text()).toBe(expected.map((kept) => `${kept}\n`).join(''));
    }),
    { numRuns: runs(60, 12) },
  );
});

test('a file that is removed while the run goes on is told and made anew', () => {
  const told: string[] = [];
  const metrics = new MetricsFile(path, { notify: (message) => told.push(message) });
  metrics.write({ step: 1 });
  rmSync(join(directory, 'run'), { recursive: true });
  metrics.write({ step: 2 });
  metrics.write({ step: 3 });
  expect(text()).toBe('{"step":2}\n{"step":3}\n');
  expect(told).toEqual([`${path} was removed or replaced meanwhile; writing continues in a new file.`]);
  metrics.close();
});

test('lines that cannot be written wait, and what never could is an error at the end', () => {
  const told: string[] = [];
  const metrics = new MetricsFile(path, { notify: (message) => told.push(message) });
  const block = () => {
    rmSync(path);
    mkdirSync(path);
  };
  // As much as may wait; it is written, and counts no longer.
  metrics.write({ step: 0, text: 'x'.repeat(4 << 20) });
  block();
  metrics.write({ step: 1 });
  metrics.write({ step: 2 });
  expect(told).toEqual([
    expect.stringMatching(/metrics\.jsonl cannot be written: .*\. Its data is kept in memory\.$/),
  ]);
  rmdirSync(path);
  metrics.write({ step: 3 });
  expect(text()).toBe('{"step":1}\n{"step":2}\n{"step":3}\n');
  expect(told.slice(1)).toEqual([
    `${path} was removed or replaced meanwhile; writing continues in a new file.`,
    `${path} is writable again.`,
  ]);
  block();
  metrics.write({ step: 4 });
  expect(told).toHaveLength(4);
  expect(() => metrics.close()).toThrow(/metrics\.jsonl ends early, without 1 record: /);
});

test('a named pipe is refused, not waited for; a link stays one', () => {
  execFileSync('mkfifo', [makeRun()]);
  expect(() => new MetricsFile(path)).toThrow(
    `${path}: summaries cannot be written here: ${path} is not a regular file`,
  );
  rmSync(path);
  const elsewhere = join(directory, 'elsewhere');
  writeFileSync(
    elsewhere,
    '{"program":"eval","step":1}\n{"program":"x","step":9}\n{"program":"eval","step":2}\n',
  );
  symlinkSync(elsewhere, path);
  new MetricsFile(path, { resumeStep: 5 }).close();
  expect(lstatSync(path).isSymbolicLink()).toBe(true);
  expect(readFileSync(elsewhere, 'utf8')).toBe('{"program":"eval","step":1}\n{"program":"eval","step":2}\n');
});

test('a path that cannot be written is named with the cause', () => {
  writeFileSync(join(directory, 'run'), '');
  expect(() => new MetricsFile(path)).toThrow(SummaryError);
  const run = join(directory, 'run');
  expect(() => new MetricsFile(path)).toThrow(
    `${run}/metrics.jsonl: summaries cannot be written here: ${run} is not a directory`,
  );
});

test.skipIf(process.platform !== 'linux')('a resumed file is open once', () => {
  writeFileSync(makeRun(), '{"program":"train","step":1,"loss":2}\n{"program":"train","step":2,"loss":1}\n');
  const open = () => readdirSync('/proc/self/fd').length;
  const before = open();
  for (let i = 0; i < 3; i++) new MetricsFile(path, { resumeStep: 1 }).close();
  expect(open()).toBe(before);
});
