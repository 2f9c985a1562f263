/** @file Numbers of JSON as texts: whole numbers and fractions within bounds. */
import { codePoints } from './codePoints.js';
import { constraintError } from './limits.js';
import {
  character,
  choice,
  type Expression,
  literal,
  optional,
  repeat,
  sequence,
} from './textExpressions.js';

/** Digits that doubles hold exactly. */
const MOST_DIGITS = 15;
/** Largest whole part where only the other bound is given, which leaves digits for fractions. */
const LARGEST_WHOLE = 10 ** 9 - 1;

/** Bounds of numbers; infinite ones are none. */
export interface Bounds {
  readonly least: number;
  readonly most: number;
  /** Whether the bounds themselves are left out. */
  readonly isAbove: boolean;
  readonly isBelow: boolean;
}

const between = (first: number, last: number): Expression => character(codePoints([48 + first, 48 + last]));
const ANY_DIGIT = between(0, 9);

/** As many digits, from `low` to `high`, which have as many. */
function digitsFromTo(low: string, high: string): Expression {
  if (low === '') return sequence();
  const [first, last] = [Number(low[0]), Number(high[0])];
  const rest = low.length - 1;
  const [least, most] = ['0'.repeat(rest), '9'.repeat(rest)];
  if (low.slice(1) === least && high.slice(1) === most)
    return sequence(between(first, last), repeat(ANY_DIGIT, rest, rest));
  if (first === last) return sequence(between(first, last), digitsFromTo(low.slice(1), high.slice(1)));
  const options = [
    sequence(between(first, first), digitsFromTo(low.slice(1), most)),
    sequence(between(last, last), digitsFromTo(least, high.slice(1))),
  ];
  if (last - first > 1) options.push(sequence(between(first + 1, last - 1), repeat(ANY_DIGIT, rest, rest)));
  return choice(...options);
}

/** Whole numbers from `least` to `most`, both from 0. */
function naturals(least: number, most: number): Expression {
  const options: Expression[] = [];
  for (let digits = 1; digits <= MOST_DIGITS; digits++) {
    const low = Math.max(least, digits === 1 ? 0 : 10 ** (digits - 1));
    const high = Math.min(most, 10 ** digits - 1);
    if (low <= high) options.push(digitsFromTo(String(low), String(high)));
  }
  return choice(...options);
}

/** Whole numbers within bounds. @throws ConfigError where there are none of 15 digits or fewer */
export function integers({ least, most, isAbove, isBelow }: Bounds): Expression {
  const low = isAbove && Number.isInteger(least) ? least + 1 : Math.ceil(least);
  const high = isBelow && Number.isInteger(most) ? most - 1 : Math.floor(most);
  const largest = 10 ** MOST_DIGITS - 1;
  if (low > high || low > largest || high < -largest) throw none('integer', { least, most });
  const options: Expression[] = [];
  if (high >= 0) options.push(naturals(Math.max(0, low), Math.min(high, largest)));
  if (low < 0) options.push(sequence(literal('-'), naturals(Math.max(1, -high), Math.min(-low, largest))));
  return choice(...options);
}

const none = (kind: string, { least, most }: Pick<Bounds, 'least' | 'most'>): Error =>
  constraintError(
    `the schema has a ${kind} from ${least} to ${most}, and there is none of ${MOST_DIGITS} digits.`,
  );

/** Whole numbers of digits that doubles hold. */
export const ANY_INTEGER = integers({
  ...{ least: Number.NEGATIVE_INFINITY, most: Number.POSITIVE_INFINITY, isAbove: false, isBelow: false },
});

/** Numbers as JSON writes them, of digits that doubles hold. */
export const ANY_NUMBER = sequence(
  optional(literal('-')),
  naturals(0, 10 ** MOST_DIGITS - 1),
  optional(sequence(literal('.'), repeat(ANY_DIGIT, 1, MOST_DIGITS))),
  optional(
    sequence(
      character(codePoints([69, 69], [101, 101])),
      optional(character(codePoints([43, 43], [45, 45]))),
      between(1, 9),
      optional(ANY_DIGIT),
    ),
  ),
);

/** A bound as whole number and digits behind the point. */
function decimal(bound: number): { readonly whole: number; readonly digits: string } {
  const text = String(bound);
  const parts = /^(\d+)(?:\.(\d+))?$/.exec(text);
  if (!parts || text.length > MOST_DIGITS)
    throw constraintError(
      `the schema has the bound ${bound} of a number, and expected one of ${MOST_DIGITS - 1} digits at most, without an exponent.`,
    );
  return { whole: Number(parts[1]), digits: parts[2] ?? '' };
}

/** What comes behind the digits of a whole number, none included: a fraction of `size` digits at most, within bounds of digits. */
function fraction(
  low: string | null,
  high: string | null,
  size: number,
  { isAbove, isBelow }: Bounds,
): Expression {
  const parts =
    size > 0 ? [sequence(literal('.'), digitsBetween(low, high, size, true, { isAbove, isBelow }))] : [];
  // Without a fraction the number is whole: the lower bound must be too, and the upper one not be this number.
  const isWithin =
    (low === null || (!isAbove && /^0*$/.test(low))) && (high === null || !isBelow || !/^0*$/.test(high));
  return choice(...(isWithin ? [sequence()] : []), ...parts);
}

/** Digits behind a point; `low` and `high` are what is left of the bounds, null where the digits before are within already. */
function digitsBetween(
  low: string | null,
  high: string | null,
  size: number,
  isFirst: boolean,
  sides: Pick<Bounds, 'isAbove' | 'isBelow'>,
): Expression {
  if (low === null && high === null) return repeat(ANY_DIGIT, isFirst ? 1 : 0, size);
  const options: Expression[] = [];
  const isLow = low === null || (/^0*$/.test(low) && !sides.isAbove);
  const isHigh = high === null || !sides.isBelow || !/^0*$/.test(high);
  if (!isFirst && isLow && isHigh) options.push(sequence());
  if (size === 0) return choice(...options);
  const [least, most] = [Number(low?.[0] ?? 0), high === null ? 9 : Number(high[0] ?? 0)];
  for (let digit = least; digit <= most; digit++) {
    const nextLow = low !== null && digit === least ? low.slice(1) : null;
    const nextHigh = high !== null && digit === most ? high.slice(1) : null;
    options.push(sequence(between(digit, digit), digitsBetween(nextLow, nextHigh, size - 1, false, sides)));
  }
  return choice(...options);
}

/** Numbers from `least` to `most`, both from 0. */
function positives(bounds: Bounds): Expression {
  const { least, most } = bounds;
  const low = decimal(least);
  const isOpen = most === Number.POSITIVE_INFINITY;
  const high = isOpen ? { whole: Math.max(LARGEST_WHOLE, low.whole + 1), digits: null } : decimal(most);
  const digits = Math.max(3, low.digits.length, high.digits?.length ?? 0) + 3;
  const whole = (first: number, last: number, from: string | null, to: string | null): Expression[] => {
    const size = Math.min(MOST_DIGITS - String(last).length, digits);
    return first > last ? [] : [sequence(naturals(first, last), fraction(from, to, size, bounds))];
  };
  if (low.whole === high.whole) return choice(...whole(low.whole, low.whole, low.digits, high.digits));
  return choice(
    ...whole(low.whole, low.whole, low.digits, null),
    ...whole(low.whole + 1, high.whole - 1, null, null),
    ...whole(high.whole, high.whole, null, high.digits),
  );
}

/** Numbers within bounds. @throws ConfigError where there are none, or for bounds of too many digits */
export function numbers(bounds: Bounds): Expression {
  const { least, most, isAbove, isBelow } = bounds;
  if (least > most || (least === most && (isAbove || isBelow))) throw none('number', bounds);
  const options: Expression[] = [];
  if (most >= 0)
    options.push(positives({ ...bounds, least: Math.max(0, least), isAbove: isAbove && least >= 0 }));
  const mirrored = {
    least: Math.max(0, -most),
    most: -least,
    isAbove: isBelow || most >= 0,
    isBelow: isAbove,
  };
  if (least < 0) options.push(sequence(literal('-'), positives(mirrored)));
  return choice(...options);
}
