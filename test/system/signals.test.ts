/** @file The first signal asks where there is something to finish; those of the same moment are one; a later one leaves. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { StopSignal } from '../../src/system/signals.js';

class Exit extends Error {}

let exits: unknown[];
let said: string[];
let now: number;

beforeEach(() => {
  [exits, said, now] = [[], [], 5000];
  vi.spyOn(process, 'exit').mockImplementation((code) => {
    exits.push(code);
    throw new Exit();
  });
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => said.push(String(text)) > 0);
  vi.spyOn(performance, 'now').mockImplementation(() => now);
});
afterEach(() => void vi.restoreAllMocks());

function send(name: 'SIGINT' | 'SIGTERM' | 'SIGHUP', atMs: number): void {
  now = 5000 + atMs;
  try {
    process.emit(name, name);
  } catch (error) {
    if (!(error instanceof Exit)) throw error;
  }
}

test('the first is remembered and announced; repeats within a second are the same one; a later one exits', () => {
  const before = process.listeners('SIGTERM');
  const stop = new StopSignal();
  stop.listen();
  stop.postpone('saving a checkpoint, then leaving');
  send('SIGTERM', 0);
  send('SIGTERM', 30);
  send('SIGINT', 999);
  expect([stop.received, said, exits]).toEqual([
    'SIGTERM',
    ['\nSIGTERM: saving a checkpoint, then leaving. Once more leaves at once.\n'],
    [],
  ]);
  // A terminal that is closed after Ctrl-C does not undo the saving.
  send('SIGHUP', 3000);
  expect(exits).toEqual([]);
  send('SIGINT', 3000);
  expect(exits).toEqual([130]);
  stop.close();
  expect(process.listeners('SIGTERM')).toEqual(before);
});

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)('%s leaves with %i where there is nothing to finish', (name, code) => {
  const stop = new StopSignal();
  stop.listen();
  send(name, 0);
  expect([said, exits]).toEqual([[`\n${name}: leaving.\n`], [code]]);
  stop.close();
});

test('who hands signals on is told of the first, and of the second before it leaves', () => {
  const told: string[] = [];
  const stop = new StopSignal({ first: (name) => told.push(name), again: () => told.push('again') });
  stop.listen();
  send('SIGINT', 0);
  send('SIGINT', 10);
  expect([told, said, exits]).toEqual([['SIGINT'], [], []]);
  send('SIGTERM', 1000);
  expect([told, exits]).toEqual([['SIGINT', 'again'], [143]]);
  stop.close();
});

test('output that nobody reads is a signal, which a closed listener no longer hears', () => {
  const stop = new StopSignal();
  stop.listen();
  stop.postpone('saving a checkpoint, then leaving');
  const gone = () => process.stdout.emit('error', Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
  gone();
  expect([stop.received, exits]).toEqual(['SIGPIPE', []]);
  stop.close();
  const later = new StopSignal();
  gone();
  expect(later.received).toBeUndefined();
});
