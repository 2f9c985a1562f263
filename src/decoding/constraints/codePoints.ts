/** @file Sets of Unicode code points, and the UTF-8 that spells them. */

/** Ranges [first, last] in ascending order that neither touch nor overlap. */
export type CodePoints = readonly (readonly [first: number, last: number])[];

const LAST = 0x10_ffff;
/** Halves of pairs in UTF-16, which UTF-8 does not spell. */
const SURROGATES = [0xd800, 0xdfff] as const;

/** The set of some ranges in any order. */
export function codePoints(...ranges: readonly (readonly [number, number])[]): CodePoints {
  const sorted = ranges.filter(([first, last]) => first <= last).sort(([a], [b]) => a - b);
  const merged: [number, number][] = [];
  for (const [first, last] of sorted) {
    const before = merged.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else merged.push([first, last]);
  }
  return merged;
}

/** The sets of single ASCII characters: constraints spell long texts of them. */
const SINGLE: readonly CodePoints[] = Array.from({ length: 128 }, (_, point) => [[point, point]]);

/** The set of the characters of a text. */
export function charactersOf(text: string): CodePoints {
  const single = text.length === 1 ? SINGLE[text.charCodeAt(0)] : undefined;
  return (
    single ??
    codePoints(
      ...Array.from(text, (character) => [character.codePointAt(0)!, character.codePointAt(0)!] as const),
    )
  );
}

/** All code points outside of a set, surrogates aside. */
export function complement(set: CodePoints): CodePoints {
  const taken = codePoints(...set, SURROGATES);
  const starts = [0, ...taken.map(([, last]) => last + 1)];
  const ends = [...taken.map(([first]) => first - 1), LAST];
  return codePoints(...starts.map((start, i) => [start, ends[i]!] as const));
}

/** The code points that both sets have. */
export const intersection = (a: CodePoints, b: CodePoints): CodePoints =>
  complement(codePoints(...complement(a), ...complement(b)));

/** Every character. */
export const ANY = complement([]);

/** A range of bytes at one place. */
export type ByteRange = readonly [low: number, high: number];

const utf8 = new TextEncoder();
const encoded = (point: number): Uint8Array => utf8.encode(String.fromCodePoint(point));

/** Last code points of one, two, three and four bytes. */
const SIZES = [0x7f, 0x7ff, 0xffff, LAST];

/** Sequences of byte ranges that together spell the code points of a set, and nothing else. */
export function utf8Ranges(set: CodePoints): readonly (readonly ByteRange[])[] {
  const sequences: ByteRange[][] = [];
  const spelled = set.flatMap(([first, last]) => [
    [first, Math.min(last, SURROGATES[0] - 1)] as const,
    [Math.max(first, SURROGATES[1] + 1), last] as const,
  ]);
  for (const [first, last] of spelled) {
    for (const [i, most] of SIZES.entries()) {
      const [low, high] = [Math.max(first, i === 0 ? 0 : SIZES[i - 1]! + 1), Math.min(last, most)];
      if (low <= high) sequences.push(...split(low, high, i));
    }
  }
  return sequences;
}

/** Splits a range of code points of one size until every byte ranges on its own. @param rest bytes after the first */
function split(low: number, high: number, rest: number): ByteRange[][] {
  for (let bytes = 1; bytes <= rest; bytes++) {
    const below = 2 ** (6 * bytes) - 1;
    if (Math.floor(low / (below + 1)) === Math.floor(high / (below + 1))) continue;
    if (low % (below + 1) !== 0) {
      const end = low - (low % (below + 1)) + below;
      return [...split(low, end, rest), ...split(end + 1, high, rest)];
    }
    if (high % (below + 1) !== below) {
      const begin = high - (high % (below + 1));
      return [...split(low, begin - 1, rest), ...split(begin, high, rest)];
    }
  }
  if (rest === 0) return [[[low, high]]];
  const to = encoded(high);
  return [Array.from(encoded(low), (byte, i) => [byte, to[i]!] as const)];
}
