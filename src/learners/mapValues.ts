/** @file Records with the same names and other values. */

/** A record with `f` of each value. */
export const mapValues = <T, U>(
  record: Readonly<Record<string, T>>,
  f: (value: T, name: string) => U,
): Record<string, U> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, f(value, name)]));
