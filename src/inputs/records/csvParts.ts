/** @file Parts of CSV files that hold whole rows, with the lines on which these begin. */
import { InputError } from '../inputErrors.js';
import { utf8Start } from '../text/utf8.js';
import { LONGEST_RECORD } from './offsetIndex.js';
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

/** A place of a file: an opening quote, or the start of a row. */
interface Place {
  readonly line: number;
  readonly position: number;
}

/**
 * Ends of rows in a stream of bytes: `\r\n`, `\n` and `\r` outside of quotes. A quote opens only at the start of a
 * field: the parser refuses others, and text after them is not quoted.
 */
class RowScanner {
  /** Whether a field begins here, is within quotes, or has a quote that closes it or is the first of two. */
  #state: 'start' | 'plain' | 'quoted' | 'closed' = 'start';
  readonly #delimiter: Uint8Array;
  /** Bytes of a delimiter so far. */
  #numMatched = 0;
  #wasReturn = false;
  #position: number;
  #row: Place | undefined;
  #quote: Place = { line: 0, position: 0 };
  /** The line of the next byte, from 1 on. */
  line = 1;
  lines: number[] = [];

  constructor(delimiter: string, position: number) {
    this.#delimiter = Buffer.from(delimiter);
    this.#position = position;
  }

  /** Scans bytes. @returns how many of them end at a whole row, or at one that is too long */
  scan(bytes: Uint8Array): number {
    const start = this.#position;
    let end = 0;
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]!;
      if (byte === LINE_FEED || byte === CARRIAGE_RETURN) {
        // A pair of both, which two chunks may share, is one end of a line.
        if (byte === CARRIAGE_RETURN || !this.#wasReturn) this.line++;
        this.#wasReturn = byte === CARRIAGE_RETURN;
        if (this.#state === 'quoted') continue;
        end = at + 1;
        this.#position = start + at;
        if (this.isTooLong) return end;
        this.#row = undefined;
        this.#state = 'start';
        this.#numMatched = 0;
        continue;
      }
      this.#wasReturn = false;
      if (this.#row === undefined) {
        this.#row = { line: this.line, position: start + at };
        this.lines.push(this.line);
      }
      if (byte === QUOTE) this.#addQuote(start + at);
      else if (this.#state !== 'quoted') this.#addPlain(byte);
    }
    this.#position = start + bytes.length;
    return end;
  }

  #addQuote(position: number): void {
    this.#numMatched = 0;
    if (this.#state === 'quoted') this.#state = 'closed';
    else if (this.#state === 'closed') this.#state = 'quoted';
    else if (this.#state === 'start') {
      this.#state = 'quoted';
      this.#quote = { line: this.line, position };
    }
  }

  #addPlain(byte: number): void {
    this.#state = 'plain';
    const delimiter = this.#delimiter;
    if (byte !== delimiter[this.#numMatched]) this.#numMatched = 0;
    if (byte === delimiter[this.#numMatched]) this.#numMatched++;
    if (this.#numMatched < delimiter.length) return;
    this.#numMatched = 0;
    this.#state = 'start';
  }

  /** The row that has not ended, or is too long. */
  get row(): Place | undefined {
    return this.#row;
  }

  /** The quote that is not closed. */
  get openQuote(): Place | undefined {
    return this.#state === 'quoted' ? this.#quote : undefined;
  }

  /** Whether the row has more bytes than one may have. */
  get isTooLong(): boolean {
    return this.#row !== undefined && this.#position - this.#row.position > LONGEST_RECORD;
  }
}

/**
 * The parts of a file, each of about `chunkBytes`, or of one row.
 *
 * @throws InputError for text that is UTF-16, a quote that is not closed, and a row that is too long, with their lines
 */
export function* csvParts(file: WatchedFile, delimiter: string, chunkBytes: number): Generator<CsvPart> {
  const start = utf8Start(file.read(0, 4), file.path);
  const scanner = new RowScanner(delimiter, start);
  let [position, line] = [start, 1];
  let endsInReturn = false;
  let waiting: Buffer[] = [];
  for (let at = start; at < file.size; ) {
    const chunk = file.read(at, Math.min(at + chunkBytes, file.size));
    if (chunk.length === 0) break;
    at += chunk.length;
    const whole = scanner.scan(chunk);
    const isLast = at >= file.size;
    checkRow(file, scanner, isLast);
    const end = isLast ? chunk.length : whole;
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
    scanner.lines = end < chunk.length && scanner.row !== undefined ? lines.splice(-1) : [];
    yield { bytes, position, line, lines };
    position += bytes.length;
    line = scanner.lines[0] ?? scanner.line;
  }
}

/** @throws InputError for a row that can't be read, with its line, or that of the quote to blame */
function checkRow({ path }: WatchedFile, scanner: RowScanner, isLast: boolean): void {
  const { openQuote: quote, row, isTooLong } = scanner;
  if (quote !== undefined && (isTooLong || isLast))
    throw new InputError(
      `${path}:${quote.line}: the quote at byte ${quote.position} is not closed ${isTooLong ? `within ${LONGEST_RECORD} bytes` : 'before the end of the file'}. Close it, or write a quote within a text as two.`,
    );
  if (isTooLong)
    throw new InputError(
      `${path}:${row!.line}: the row from byte ${row!.position} on has more than ${LONGEST_RECORD} bytes. Split it, or store the records as TFRecord.`,
    );
}

/** The line of a byte of a part. */
export function lineOf({ bytes, line }: CsvPart, offset: number): number {
  const scanner = new RowScanner(',', 0);
  scanner.line = line;
  scanner.scan(bytes.subarray(0, offset));
  return scanner.line;
}
