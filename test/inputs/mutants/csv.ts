/** @file Mutants of CSV files. */
import { CsvSource } from '../../../src/inputs/index.js';
import { recordsOf } from '../oddFiles/oddFile.js';
import { type MutantKind, textSite } from './mutantKind.js';

const TEXT = [
  'id,text,x',
  ...Array.from({ length: 300 }, (_, i) => `${i},"row ""${i}"", of\r\nthem",${i / 8}`),
].join('\n');

export const csv: MutantKind = {
  name: 'CSV',
  seeds() {
    const bytes = Buffer.from(TEXT);
    const sites = [...TEXT.matchAll(/^\d+/gm)].map(({ 0: text, index }, i) =>
      textSite(bytes, `id of row ${i}`, index, index + text.length, true),
    );
    return [{ name: 'a.csv', bytes, sites }];
  },
  read: (path) => recordsOf(CsvSource.config({ files: [path] })),
  problemOf(values) {
    const records = values as readonly Readonly<Record<string, unknown>>[];
    const columns = Object.keys(records[0] ?? {}).join();
    const other = records.find(
      (record) =>
        Object.keys(record).join() !== columns ||
        Object.values(record).some((value) => typeof value !== 'string'),
    );
    return other && `a row is ${JSON.stringify(other)}`;
  },
  tries: 2000,
  short: 150,
};
