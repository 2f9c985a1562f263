/**
 * @file Mutants of files: kinds of them, each with whole files, the numbers in these that are believed, and the reader that a
 * user would use. A further kind is a file beside this one that exports a `MutantKind`, and an entry in kinds.ts.
 */

/** A number of a file that tells a length, a count or an offset. */
export interface Site {
  /** For messages. */
  readonly name: string;
  /** The bytes that it takes. */
  readonly from: number;
  readonly to: number;
  readonly value: bigint;
  /** Bytes for another number; 'NaN' where numbers are text, and undefined for what can't be written there. */
  encode(value: bigint | 'NaN'): Uint8Array | undefined;
  /** Whether a file with another number there can be whole, of other values. */
  readonly isFree?: boolean;
}

/** A whole file. */
export interface Seed {
  /** The file's name, with the ending that its reader expects. */
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly sites: readonly Site[];
  /** Parts that checksums cover: bytes that are others there are found out. */
  readonly checksummed?: readonly (readonly [from: number, to: number])[];
}

/** A kind of files whose mutants are read. */
export interface MutantKind {
  /** Title of its test. */
  readonly name: string;
  seeds(): Promise<readonly Seed[]> | readonly Seed[];
  /** Reads a whole file, as a user would. @throws an error by `errors` for a file that is damaged */
  read(path: string): unknown;
  /** Names of the errors for damaged files; InputError by default. */
  readonly errors?: readonly string[];
  /** The bytes with checksums that are right again, for the reader to come past them: done to half of the mutants. */
  mend?(bytes: Uint8Array): Uint8Array;
  /** What is wrong with values of a file that may have a meaning of its own; undefined: nothing. */
  problemOf?(values: unknown, whole: unknown): string | undefined;
  /** How many mutants there are, and how many with SHORT=1. */
  readonly tries: number;
  readonly short: number;
}

/** A site of an integer of 1, 2, 4 or 8 bytes, the low one first unless `isBigEndian`. */
export function integerSite(
  bytes: Uint8Array,
  name: string,
  from: number,
  size: 1 | 2 | 4 | 8,
  { isBigEndian = false, isFree = false } = {},
): Site {
  const order = (part: Uint8Array): Uint8Array => (isBigEndian ? part : part.toReversed());
  const part = order(bytes.subarray(from, from + size));
  return {
    name,
    from,
    to: from + size,
    value: BigInt(`0x${Buffer.from(part).toString('hex')}`),
    encode(value) {
      if (value === 'NaN') return undefined;
      const hex = BigInt.asUintN(8 * size, value).toString(16);
      return order(Buffer.from(hex.padStart(2 * size, '0'), 'hex'));
    },
    isFree,
  };
}

/** A site of a number written as text. */
export function textSite(bytes: Uint8Array, name: string, from: number, to: number, isFree = false): Site {
  return {
    name,
    from,
    to,
    value: BigInt(Buffer.from(bytes.subarray(from, to)).toString()),
    encode: (value) => Buffer.from(`${value}`),
    isFree,
  };
}
