/** @file Sources of files of columns: Parquet and Arrow. */
import { z } from 'zod';
import type { CorpusFile } from '../text/corpusFiles.js';
import { openArrow } from './arrowFile.js';
import { columnTable } from './columnTable.js';
import { openParquet } from './parquetFile.js';
import { BaseFileSource } from './recordSources.js';
import type { RecordTable } from './recordTable.js';

const columns = z
  .array(z.string())
  .min(1)
  .nullable()
  .default(null)
  .describe('The columns to read; null: all. Other columns cost nothing.');

/** The rows of Parquet files, one record each. */
export class ParquetSource extends BaseFileSource.with({ columns }) {
  protected override openFiles(files: readonly CorpusFile[]): RecordTable {
    return columnTable(files, this.hp.columns, openParquet);
  }
}

/** The rows of Arrow files, one record each: the IPC stream format, such as Hugging Face's datasets have, and the file format (Feather 2). */
export class ArrowSource extends BaseFileSource.with({ columns }) {
  protected override openFiles(files: readonly CorpusFile[]): RecordTable {
    return columnTable(files, this.hp.columns, openArrow);
  }
}
