/** @file The first signal asks, the second one ends the process. */
import { afterEach, expect, test, vi } from 'vitest';
import { StopSignal } from '../../src/programs/signals.js';

afterEach(() => void vi.restoreAllMocks());

test('the first signal is remembered and announced once; the second exits with its code', () => {
  const exit = vi.spyOn(process, 'exit').mockImplementation(() => undefined as never);
  const notices: string[] = [];
  const stop = new StopSignal((signal) => void notices.push(signal));
  const before = process.listeners('SIGTERM');
  stop.listen();
  process.emit('SIGTERM', 'SIGTERM');
  expect([stop.received, notices, exit.mock.calls]).toEqual(['SIGTERM', ['SIGTERM'], []]);
  process.emit('SIGINT', 'SIGINT');
  expect(exit.mock.calls).toEqual([[130]]);
  stop.close();
  expect(process.listeners('SIGTERM')).toEqual(before);
});
