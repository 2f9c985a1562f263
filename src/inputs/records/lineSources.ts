/** @file Sources whose records are lines: text and JSON Lines, read where they are. */

import { InputError } from '../inputErrors.js';
import type { CorpusFile } from '../text/corpusFiles.js';
import { parseJson } from './jsonText.js';
import { lineTable } from './lineTable.js';
import { BaseFileSource } from './recordSources.js';
import { type DataRecord, type RecordTable, recordOf } from './recordTable.js';

/** The lines of text files as records { text }, empty lines too (T5's TextLineDataset). Nothing but an index is kept. */
export class TextLinesSource extends BaseFileSource.with({}) {
  protected override openFiles(files: readonly CorpusFile[]): RecordTable {
    return lineTable(files, false, (text) => ({ text }));
  }
}

/**
 * Objects of JSON Lines files, one a line, read when they are needed. Blank lines are left out. Integers beyond 2^53 are
 * bigints.
 */
export class JsonLinesSource extends BaseFileSource.with({}) {
  protected override openFiles(files: readonly CorpusFile[]): RecordTable {
    return lineTable(files, true, objectOf);
  }
}

function objectOf(line: string, place: () => string): DataRecord {
  let value: unknown;
  try {
    value = parseJson(line);
  } catch (error) {
    throw new InputError(`${place()}: not JSON: ${(error as Error).message}`, { cause: error });
  }
  return recordOf(value, place);
}
