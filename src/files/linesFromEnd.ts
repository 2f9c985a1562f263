/** @file Lines of a file from its last to its first, in bounded memory. */
import { readFully } from './read.js';

const BLOCK_BYTES = 1 << 16;
/** Longest line that is read; those of our logs are far shorter. */
const LONGEST_LINE = 16 << 20;

/** A line's bytes are [start, end) of the file, its newline included where it has one. */
export interface LineRange {
  readonly start: number;
  readonly end: number;
}

/** A line and its place. A line that is too long to be read has no text. */
export interface PlacedLine extends LineRange {
  readonly text: string | undefined;
}

/** Walks over the lines of an open file of `size` bytes, the last line first. */
export function* linesFromEnd(
  file: number,
  size: number,
  longest: number = LONGEST_LINE,
): Generator<PlacedLine> {
  const block = Buffer.allocUnsafe(BLOCK_BYTES);
  let end = size;
  for (let blockEnd = size; blockEnd > 0; ) {
    const blockStart = Math.max(0, blockEnd - BLOCK_BYTES);
    const bytes = block.subarray(0, blockEnd - blockStart);
    readFully(file, bytes, blockStart);
    // A newline ends the line before the position that is looked at.
    for (let at = bytes.lastIndexOf(10); at >= 0; at = at === 0 ? -1 : bytes.lastIndexOf(10, at - 1)) {
      const start = blockStart + at + 1;
      if (start < end) {
        yield { start, end, text: textOf(file, start, end, longest) };
        end = start;
      }
    }
    blockEnd = blockStart;
  }
  if (end > 0) yield { start: 0, end, text: textOf(file, 0, end, longest) };
}

function textOf(file: number, start: number, end: number, longest: number): string | undefined {
  if (end - start > longest) return undefined;
  const bytes = Buffer.allocUnsafe(end - start);
  return bytes.subarray(0, readFully(file, bytes, start)).toString();
}
