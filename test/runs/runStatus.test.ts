/** @file status.json: what a new, a refused, a failed and a resumed run record of themselves. */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { durationOf, readStatus, StatusRecord } from '../../src/runs/runStatus.js';
import { temporaryDirectory } from '../command.js';

/** A directory whose run has written its description. */
function begun(): string {
  const directory = temporaryDirectory();
  new StatusRecord(directory).end({ state: 'stopped', reason: 'SIGINT' });
  writeFileSync(join(directory, 'experiment.json'), '{}');
  return directory;
}

test('a new run is recorded before it begins, and its failure with the first line of the error', () => {
  const directory = temporaryDirectory();
  const record = new StatusRecord(directory);
  expect(readStatus(directory)).toMatchObject({ state: 'running', secondsBefore: 0 });
  record.fail(new Error('No file.\nHere is more.'));
  expect(readStatus(directory)).toMatchObject({ state: 'failed', reason: 'No file.' });
  new StatusRecord(directory).fail(new TypeError());
  expect(readStatus(directory)).toMatchObject({ state: 'failed', reason: 'TypeError' });
});

test('a command that is refused leaves the record of an earlier one; one that goes on adds its duration', () => {
  const directory = begun();
  const stopped = readStatus(directory);
  const refused = new StatusRecord(directory);
  refused.fail(new Error('Another tokenizer.'));
  expect(readStatus(directory)).toEqual(stopped);

  // A record of before durations were noted.
  const hour = {
    ...stopped,
    seconds: undefined,
    startedAt: '2026-01-01T00:00:00.000Z',
    endedAt: '2026-01-01T01:00:00.000Z',
  };
  writeFileSync(join(directory, 'status.json'), JSON.stringify(hour));
  const resumed = new StatusRecord(directory);
  resumed.begin();
  resumed.end({ state: 'finished' });
  const status = readStatus(directory);
  expect(status).toMatchObject({ state: 'finished', secondsBefore: 3600 });
  expect(status.reason).toBeUndefined();
  expect(durationOf(status)).toBeGreaterThanOrEqual(3600);
});

test('a clock that is set while a process trains, or between two, changes no duration', () => {
  vi.useFakeTimers({
    now: Date.parse('1974-01-01'),
    toFake: ['Date', 'performance', 'setInterval', 'clearInterval'],
  });
  try {
    const directory = temporaryDirectory();
    new StatusRecord(directory);
    // Killed after its third sign of life.
    vi.advanceTimersByTime(35_000);
    expect(readStatus(directory)).toMatchObject({ state: 'running', seconds: 30, secondsBefore: 0 });
    vi.clearAllTimers();

    vi.setSystemTime(Date.parse('2026-01-01'));
    const resumed = new StatusRecord(directory);
    resumed.begin();
    vi.setSystemTime(Date.parse('2078-01-01'));
    vi.advanceTimersByTime(5000);
    resumed.end({ state: 'finished' });
    const status = readStatus(directory);
    expect(status).toMatchObject({ state: 'finished', seconds: 5, secondsBefore: 30 });
    expect(durationOf(status)).toBe(35);
    // Nothing is written after the end.
    vi.advanceTimersByTime(60_000);
    expect(readStatus(directory)).toEqual(status);
  } finally {
    vi.useRealTimers();
  }
});

test('a run whose directory was removed does not make it again', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const directory = temporaryDirectory();
    new StatusRecord(directory);
    rmSync(directory, { recursive: true });
    vi.advanceTimersByTime(60_000);
    expect(existsSync(directory)).toBe(false);
  } finally {
    vi.useRealTimers();
  }
});

test('a damaged record does not stop a run', () => {
  const directory = begun();
  writeFileSync(join(directory, 'status.json'), '{"state":"lost"}');
  const record = new StatusRecord(directory);
  record.begin();
  record.end({ state: 'finished' });
  expect(readStatus(directory)).toMatchObject({ state: 'finished', secondsBefore: 0 });
});
