/** @file Sources whose records are lines: text and JSON Lines, read where they are. */
import { resolveFiles } from '../corpusFiles.js';
import { InputError } from '../inputErrors.js';
import { lineTable } from './lineTable.js';
import { BaseRecordSource, sourceFiles } from './recordSources.js';
import { type DataRecord, type RecordTable, recordOf } from './recordTable.js';

/** The lines of text files as records { text }, empty lines too (T5's TextLineDataset). Nothing but an index is kept. */
export class TextLinesSource extends BaseRecordSource.with({ files: sourceFiles }) {
  protected override openSplit(): RecordTable {
    return lineTable(resolveFiles(this.hp.files), false, (text) => ({ text }));
  }
}

/** Objects of JSON Lines files, one a line, read when they are needed. Blank lines are left out. */
export class JsonLinesSource extends BaseRecordSource.with({ files: sourceFiles }) {
  protected override openSplit(): RecordTable {
    return lineTable(resolveFiles(this.hp.files), true, objectOf);
  }
}

function objectOf(line: string, place: () => string): DataRecord {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new InputError(`${place()}: not JSON: ${(error as Error).message}`, { cause: error });
  }
  return recordOf(value, place);
}
