/** @file Decimals and times: a number where that is the decimal again, and its digits elsewhere. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { millisecondsOf, scaled } from '../../../src/inputs/records/decimals.js';

/** The unscaled integer of a value at a scale. */
function unscaledOf(value: number | bigint | string, scale: number): bigint {
  if (typeof value === 'bigint') return value * 10n ** BigInt(scale);
  const text = typeof value === 'number' ? value.toFixed(scale) : value;
  const [whole, fraction = ''] = text.replace('-', '').split('.');
  const digits = BigInt(whole! + fraction.padEnd(scale, '0'));
  return text.startsWith('-') ? -digits : digits;
}

test('any decimal keeps its digits', () => {
  const unscaled = fc.oneof(
    fc.bigInt({ min: -(10n ** 76n), max: 10n ** 76n }),
    fc.bigInt({ min: -(2n ** 54n), max: 2n ** 54n }),
    fc
      .tuple(fc.bigInt({ min: 0n, max: 10n ** 9n }), fc.nat(40))
      .map(([n, zeros]) => n * 10n ** BigInt(zeros)),
  );
  fc.assert(
    fc.property(unscaled, fc.integer({ min: 0, max: 76 }), (n, scale) => {
      const value = scaled(n, scale);
      let [digits, places] = [n, scale];
      for (; places > 0 && digits % 10n === 0n; places--) digits /= 10n;
      expect(unscaledOf(value, places)).toBe(digits);
      if (typeof value === 'bigint') expect(Number.isSafeInteger(Number(value))).toBe(false);
      if (typeof value === 'string')
        expect(Number.isInteger(Number(value)) && !value.includes('.')).toBe(false);
    }),
    { numRuns: 500 },
  );
});

test('those of up to 15 digits are numbers, the closest ones', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: -(10 ** 15), max: 10 ** 15 }),
      fc.integer({ min: 0, max: 30 }),
      (n, scale) => {
        const wanted = Number(`${n}e-${scale}`);
        expect(scaled(BigInt(n), scale)).toBe(wanted === 0 ? 0 : wanted);
        expect(scaled(n, scale)).toBe(wanted === 0 ? 0 : wanted);
      },
    ),
  );
});

test.each([
  [-1234567890107n, 2, -12345678901.07],
  [12345678901234567890n, 2, '123456789012345678.9'],
  [12345678901234567800n, 2, 123456789012345678n],
  [30000000000000000000n, 20, 0.3],
  [-1n, 20, -1e-20],
  [-12345678901234567n, 18, -0.012345678901234567],
  [-12345678901234567891n, 18, '-12.345678901234567891'],
  [5n, -3, 5000],
  [9007199254740993n, -1, 90071992547409930n],
  [0, 5, 0],
])('%s / 10^%s is %s', (unscaled, scale, value) => {
  expect(scaled(unscaled, scale)).toBe(value);
});

test('times are milliseconds, of any unit', () => {
  const time = 1_704_067_200_123_456_789n;
  expect(millisecondsOf('seconds')(1_704_067_200n)).toBe(1_704_067_200_000);
  expect(millisecondsOf('milliseconds')(time / 1_000_000n)).toBe(1_704_067_200_123);
  expect(millisecondsOf('microseconds')(time / 1000n)).toBe(1_704_067_200_123.456);
  expect(millisecondsOf('nanoseconds')((time / 1000n) * 1000n)).toBe(1_704_067_200_123.456);
  expect(millisecondsOf('nanoseconds')(time)).toBe('1704067200123.456789');
  expect(millisecondsOf('nanoseconds')(86_399_999_999_999n)).toBe(86_399_999.999999);
});
