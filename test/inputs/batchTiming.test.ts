/** @file When making batches takes so much of the time that a thread is worth it. */
import { expect, test } from 'vitest';
import { BatchTiming } from '../../src/inputs/batchTiming.js';

/** Batches that take `making` milliseconds each, in bursts of ten, with `between` milliseconds after each burst. */
function paced(making: number, between: number) {
  let now = 0;
  const timing = new BatchTiming(() => now);
  const make = (milliseconds: number): void => {
    timing.begin();
    now += milliseconds;
    timing.end();
  };
  const bursts = (count: number): boolean[] =>
    Array.from({ length: count }, () => {
      for (let i = 0; i < 10; i++) make(making);
      now += between;
      return timing.isSlow;
    });
  return { timing, make, bursts };
}

test('batches are slow where they take more than a fiftieth of the time', () => {
  expect(paced(0.05, 100).bursts(50)).not.toContain(true);
  expect(paced(0.5, 100).bursts(50).slice(10)).not.toContain(false);
  expect(paced(1, 0).bursts(50).slice(40)).not.toContain(false);
});

test('the first batch, which reads the data, does not count, and a few say nothing', () => {
  const { timing, make } = paced(0, 0);
  make(5000);
  for (let i = 0; i < 7; i++) make(100);
  expect([timing.made, timing.isSlow]).toEqual([8, false]);
  make(100);
  expect([timing.made, timing.isSlow]).toEqual([9, true]);
});

test('batches that become quick are no longer slow', () => {
  const { timing, make, bursts } = paced(0.05, 100);
  for (let i = 0; i < 20; i++) make(50);
  expect(timing.isSlow).toBe(true);
  expect(bursts(20).at(-1)).toBe(false);
});
