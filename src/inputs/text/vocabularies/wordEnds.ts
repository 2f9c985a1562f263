/** @file GPT-2's pre-tokenization of UTF-8 bytes: the words in which byte pairs are merged. */

const [OTHER, LETTER, NUMBER, SPACE] = [0, 1, 2, 3];

/** Unicode's White_Space: JavaScript's \s lacks U+0085, and has U+FEFF. */
const patterns = [
  [LETTER, /\p{L}+/gu],
  [NUMBER, /\p{N}+/gu],
  [SPACE, /\p{White_Space}+/gu],
] as const;

const PLANE = 1 << 16;
const planes: (Uint8Array | undefined)[] = [];

/** The classes of a plane's code points. Surrogates, which UTF-8 cannot hold, are left out. */
function classesOf(plane: number): Uint8Array {
  const codePoints = Array.from({ length: PLANE }, (_, i) => plane * PLANE + i);
  const width = plane === 0 ? 1 : 2;
  const text = codePoints
    .map((code) => (code >= 0xd800 && code < 0xe000 ? ' ' : String.fromCodePoint(code)))
    .join('');
  const classes = new Uint8Array(PLANE);
  for (const [name, pattern] of patterns)
    for (const { index, 0: run } of text.matchAll(pattern))
      classes.fill(name, index / width, (index + run.length) / width);
  return classes;
}

function classOf(codePoint: number): number {
  const plane = codePoint >> 16;
  let classes = planes[plane];
  if (classes === undefined) {
    classes = classesOf(plane);
    planes[plane] = classes;
  }
  return classes[codePoint & (PLANE - 1)]!;
}

const ascii = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code);
  if (/[A-Za-z]/.test(character)) return LETTER;
  if (/[0-9]/.test(character)) return NUMBER;
  return /\s/.test(character) ? SPACE : OTHER;
});

/** Lengths of UTF-8 sequences by their first byte; 1 for bytes that begin none. */
const sequenceLength = (first: number): number =>
  first >= 0xc2 && first < 0xe0
    ? 2
    : first >= 0xe0 && first < 0xf0
      ? 3
      : first >= 0xf0 && first < 0xf5
        ? 4
        : 1;

/** Class and length of the character at `at`, as class + 4 · length; an invalid byte is a character of class OTHER. */
function characterAt(bytes: Uint8Array, at: number, end: number): number {
  const first = bytes[at]!;
  if (first < 128) return ascii[first]! + 4;
  const length = sequenceLength(first);
  if (length === 1 || at + length > end) return OTHER + 4;
  let codePoint = first & (0xff >> (length + 1));
  for (let i = 1; i < length; i++) {
    const next = bytes[at + i]!;
    if ((next & 0xc0) !== 0x80) return OTHER + 4;
    codePoint = (codePoint << 6) | (next & 0x3f);
  }
  return codePoint > 0x10ffff ? OTHER + 4 : classOf(codePoint) + 4 * length;
}

/** End of the run of characters of a class that begins at `at`. */
function runEnd(bytes: Uint8Array, at: number, end: number, wanted: number): number {
  let i = at;
  while (i < end) {
    const byte = bytes[i]!;
    if (byte < 128) {
      if (ascii[byte] !== wanted) return i;
      i++;
    } else {
      const found = characterAt(bytes, i, end);
      if ((found & 3) !== wanted) return i;
      i += found >> 2;
    }
  }
  return end;
}

/** Beginning of the last character before `at`, which is white space. */
function lastSpace(bytes: Uint8Array, at: number): number {
  let i = at - 1;
  while ((bytes[i]! & 0xc0) === 0x80) i--;
  return i;
}

const [APOSTROPHE, BLANK] = [0x27, 0x20];
const contractions = ['s', 't', 'm', 'd', 're', 've', 'll'].map((end) => [...Buffer.from(end)]);

/** Length of the English contraction after an apostrophe: 's, 've …; 0 for none. */
function contractionLength(bytes: Uint8Array, at: number, end: number): number {
  for (const letters of contractions)
    if (at + letters.length <= end && letters.every((letter, i) => bytes[at + i] === letter))
      return letters.length;
  return 0;
}

/**
 * End of the word that begins at `start` of the text `bytes[0]` … `bytes[end − 1]`, by GPT-2's pattern:
 * `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`. Together, words are the text.
 */
export function wordEnd(bytes: Uint8Array, start: number, end: number): number {
  const first = bytes[start]!;
  if (first === APOSTROPHE) {
    const length = contractionLength(bytes, start + 1, end);
    if (length > 0) return start + 1 + length;
  }
  const found = characterAt(bytes, start, end);
  if ((found & 3) !== SPACE) return runEnd(bytes, start + (found >> 2), end, found & 3);
  const after = start + (found >> 2);
  if (after === end) return end;
  const next = characterAt(bytes, after, end);
  if ((next & 3) !== SPACE)
    return first === BLANK ? runEnd(bytes, after + (next >> 2), end, next & 3) : after;
  const spaceEnd = runEnd(bytes, after + (next >> 2), end, SPACE);
  return spaceEnd === end ? end : lastSpace(bytes, spaceEnd);
}
