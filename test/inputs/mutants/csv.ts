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
  tries: 2000,
  short: 300,
};
