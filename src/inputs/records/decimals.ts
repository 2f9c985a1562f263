/** @file Decimals and times of column files, which are integers with a scale. */

/** Powers of ten that a number holds exactly. */
const POWERS = Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`));
/** Up to here the quotient of an integer and a power of ten is rounded to the integer's own digits. */
const MOST_EXACT = 2 ** 52;

/**
 * `unscaled` / 10^`scale`: a number where that one, rounded to `scale` digits behind the point, is the decimal again; else
 * a bigint, or the decimal's text where it has a fraction.
 */
export function scaled(unscaled: number | bigint, scale: number): number | bigint | string {
  const number = Number(unscaled);
  if (Math.abs(number) <= MOST_EXACT && scale >= 0 && scale < POWERS.length) return number / POWERS[scale]!;
  return exactly(BigInt(unscaled), scale);
}

function exactly(unscaled: bigint, scale: number): number | bigint | string {
  if (scale < 0) return exactly(unscaled * 10n ** BigInt(-scale), 0);
  if (scale === 0) return Number.isSafeInteger(Number(unscaled)) ? Number(unscaled) : unscaled;
  if (unscaled % 10n === 0n) return scaled(unscaled / 10n, scale - 1);
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0');
  const text = `${unscaled < 0n ? '-' : ''}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
  return Number(text).toFixed(scale) === text ? Number(text) : text;
}

/** Units of times and durations. */
export type TimeUnit = 'seconds' | 'milliseconds' | 'microseconds' | 'nanoseconds';

const SCALES: Readonly<Record<TimeUnit, number>> = {
  seconds: -3,
  milliseconds: 0,
  microseconds: 3,
  nanoseconds: 6,
};

/** Converts a number of units to milliseconds, as `scaled`. */
export const millisecondsOf = (unit: TimeUnit): ((count: number | bigint) => number | bigint | string) => {
  const scale = SCALES[unit];
  return (count) => scaled(count, scale);
};
