/** @file Prints the records of files as JSON, for scripts/check_readers.py; its arguments are the files. */
import { build } from '../../src/hparams/index.js';
import { ArrowSource, type BaseRecordSource, ParquetSource, TfRecordSource } from '../../src/inputs/index.js';

/** JSON has neither large integers nor bytes. */
const writable = (_: string, value: unknown): unknown => {
  if (typeof value === 'bigint') return { integer: `${value}` };
  return value instanceof Uint8Array ? { bytes: Buffer.from(value).toString('hex') } : value;
};

/** The features of the examples that the check writes. */
const features = {
  text: { dtype: 'string' },
  image: { dtype: 'bytes', shape: null },
  weights: { dtype: 'float32', shape: [2] as number[] },
  ids: { dtype: 'int64', shape: null },
} as const;

const tables = process.argv.slice(2).map((file) => {
  const files = [file];
  const source = file.includes('.tfrecord')
    ? TfRecordSource.config({ files, features })
    : file.endsWith('.parquet')
      ? ParquetSource.config({ files })
      : ArrowSource.config({ files });
  const table = build<BaseRecordSource>(source).open();
  return Array.from({ length: table.numRecords }, (_, i) => table.read(i));
});
process.stdout.write(JSON.stringify(tables, writable));
