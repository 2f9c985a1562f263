/** @file metrics.jsonl and SummaryWriter: lines, non-finite numbers, resuming, torn lines. */

import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MetricsFile, SummaryError, SummaryWriter } from '../../src/summaries/index.js';

let directory: string;
let path: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'luthier-metrics-'));
  path = join(directory, 'run', 'metrics.jsonl');
});
afterEach(() => rmSync(directory, { recursive: true }));

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

test('non-finite numbers are strings that Number() reads', () => {
  const metrics = new MetricsFile(path);
  metrics.write({ a: Number.NaN, b: Number.POSITIVE_INFINITY, c: Number.NEGATIVE_INFINITY });
  metrics.close();
  expect(text()).toBe('{"a":"NaN","b":"Infinity","c":"-Infinity"}\n');
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
    { numRuns: 20 },
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

test('a path that cannot be written is named with the cause', () => {
  writeFileSync(join(directory, 'run'), '');
  expect(() => new MetricsFile(path)).toThrow(SummaryError);
  expect(() => new MetricsFile(path)).toThrow(
    /^\S+\/run\/metrics\.jsonl: summaries cannot be written here: E/,
  );
});

test('SummaryWriter writes scalars to both files, texts to TensorBoard, and nothing before the first', () => {
  const metrics = new MetricsFile(path);
  const events = join(directory, 'summaries', 'train');
  const writer = new SummaryWriter({ directory: events, program: 'train', metrics });
  writer.close();
  expect(existsSync(events)).toBe(false);
  writer.scalars(7, { loss: 2, 'learning/lr': 0.1 }, { peak_source: 'stated' });
  writer.text(7, 'Model', 'lm');
  writer.close();
  metrics.close();
  expect(text()).toBe('{"program":"train","step":7,"loss":2,"learning/lr":0.1,"peak_source":"stated"}\n');
  expect(readdirSync(events).length).toBe(1);
  expect(readFileSync(join(events, readdirSync(events)[0]!)).includes('learning/lr')).toBe(true);
});

test('a program without metrics.jsonl writes events alone', () => {
  const writer = new SummaryWriter({ directory: join(directory, 'events'), program: 'x', metrics: null });
  writer.scalars(1, { a: 1 });
  writer.close();
  expect(readdirSync(directory)).toEqual(['events']);
});
