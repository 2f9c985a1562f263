/** @file Lines of hundreds of megabytes. */
import { appendFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { build } from '../../../src/hparams/index.js';
import { CsvSource, TextLinesSource } from '../../../src/inputs/index.js';
import { temporaryDirectory } from '../../command.js';

const linesOf = (file: string) => build(TextLinesSource.config({ files: [file] })).open();

test('a line of 200 MB is read; one over the limit is an error with line and byte', () => {
  const directory = temporaryDirectory();
  vi.stubEnv('XDG_CACHE_HOME', directory);
  // Zeros that take no space on the disk.
  const zeros = (name: string, length: number): string => {
    const path = join(directory, name);
    writeFileSync(path, 'first\n');
    truncateSync(path, 6 + length);
    appendFileSync(path, '\nlast\n');
    return path;
  };
  const table = linesOf(zeros('long.txt', 200e6));
  expect([table.numRecords, (table.read(1).text as string).length, table.read(2)]).toEqual([
    3,
    200e6,
    { text: 'last' },
  ]);
  table.close();
  const over = zeros('over.txt', 2 ** 28 + 1);
  expect(() => linesOf(over)).toThrow(
    `${over}:2: the line from byte 6 on has 268435457 bytes; expected at most 268435456. Split it, or store the records as TFRecord.`,
  );
  const row = zeros('over.csv', 2 ** 28 + 1);
  expect(() => build(CsvSource.config({ files: [row] })).open()).toThrow(
    `${row}:2: the row from byte 6 on has more than 268435456 bytes. Split it, or store the records as TFRecord.`,
  );
  vi.unstubAllEnvs();
});
