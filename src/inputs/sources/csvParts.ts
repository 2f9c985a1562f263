/** @file Parts of CSV files that hold whole rows, with the lines on which these begin. */
import { utf8Start } from '../utf8.js';
import type { WatchedFile } from './watchedFile.js';

const [QUOTE, LINE_FEED, CARRIAGE_RETURN] = [34, 10, 13];

/** Consecutive rows of a file. */
export interface CsvPart {
  readonly bytes: Buffer;
  /** Position of the first byte in the file, and its line. */
  readonly position: number;
  readonly line: number;
  /** The line on which each row begins; empty lines are no rows. */
  readonly lines: readonly number[];
}

/** Where rows end, in bytes that follow one another: `\r\n`, `\n` and `\r` each end one outside quotes. */
class RowScanner {
  #isQuoted = false;
  #isInRow = false;
  #wasReturn = false;
  /** The line of the next byte, from 1 on. */
  line = 1;
  lines: number[] = [];

  /** Scans bytes. @returns how many of them end at a whole row */
  scan(bytes: Uint8Array): number {
    let end = 0;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]!;
      if (byte === LINE_FEED || byte === CARRIAGE_RETURN) {
        // A pair of both, which two chunks may share, is one end of a line.
        if (byte === CARRIAGE_RETURN || !this.#wasReturn) this.line++;
        this.#wasReturn = byte === CARRIAGE_RETURN;
        if (this.#isQuoted) continue;
        end = at + 1;
        this.#isInRow = false;
        continue;
      }
      this.#wasReturn = false;
      if (!this.#isInRow) {
        this.#isInRow = true;
        this.lines.push(this.line);
      }
      if (byte === QUOTE) this.#isQuoted = !this.#isQuoted;
    }
    return end;
  }

  /** Whether the last row has not ended. */
  get isInRow(): boolean {
    return this.#isInRow;
  }
}

/** The parts of a file, each of about `chunkBytes`, or of one row. @throws InputError for text that is UTF-16 */
export function* csvParts(file: WatchedFile, chunkBytes: number): Generator<CsvPart> {
  const scanner = new RowScanner();
  const start = utf8Start(file.read(0, 4), file.path);
  let [position, line] = [start, 1];
  let endsInReturn = false;
  let waiting: Buffer[] = [];
  for (let at = start; at < file.size; ) {
    const chunk = file.read(at, Math.min(at + chunkBytes, file.size));
    if (chunk.length === 0) break;
    at += chunk.length;
    const whole = scanner.scan(chunk);
    const end = at >= file.size ? chunk.length : whole;
    if (end === 0) {
      waiting.push(chunk);
      continue;
    }
    let bytes = Buffer.concat([...waiting, chunk.subarray(0, end)]);
    if (endsInReturn && bytes[0] === LINE_FEED) [bytes, position] = [bytes.subarray(1), position + 1];
    endsInReturn = bytes.at(-1) === CARRIAGE_RETURN;
    waiting = end < chunk.length ? [chunk.subarray(end)] : [];
    const { lines } = scanner;
    // The row that has begun belongs to the next part.
    scanner.lines = end < chunk.length && scanner.isInRow ? lines.splice(-1) : [];
    yield { bytes, position, line, lines };
    position += bytes.length;
    line = scanner.lines[0] ?? scanner.line;
  }
}

/** The line of a byte of a part. */
export function lineOf({ bytes, line }: CsvPart, offset: number): number {
  const scanner = new RowScanner();
  scanner.line = line;
  scanner.scan(bytes.subarray(0, offset));
  return scanner.line;
}
