/** @file Prints the records of files of columns as JSON, for scripts/check_readers.py; its arguments are the files. */
import { build } from '../../src/hparams/index.js';
import { ArrowSource, ParquetSource } from '../../src/inputs/index.js';

/** JSON has neither large integers nor bytes. */
const writable = (_: string, value: unknown): unknown => {
  if (typeof value === 'bigint') return { integer: `${value}` };
  return value instanceof Uint8Array ? { bytes: Buffer.from(value).toString('hex') } : value;
};

const tables = process.argv.slice(2).map((file) => {
  const Source = file.endsWith('.parquet') ? ParquetSource : ArrowSource;
  const table = build(Source.config({ files: [file] })).open();
  return Array.from({ length: table.numRecords }, (_, i) => table.read(i));
});
process.stdout.write(JSON.stringify(tables, writable));
