/** @file Lines and JSON Lines read where they are: any bytes, long lines, indexes of the cache, and files that change. */
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { build } from '../../../src/hparams/index.js';
import {
  ByteTokenizer,
  Feature,
  JsonLinesSource,
  NumberFeature,
  RecordInput,
  type RecordTable,
  SeqioInput,
  Task,
  TextLinesSource,
  Tokenize,
} from '../../../src/inputs/index.js';
import { lineTable } from '../../../src/inputs/records/lineTable.js';
import { temporaryDirectory } from '../../command.js';

const directory = temporaryDirectory();

function fileOf(name: string, contents: string | Uint8Array): string {
  const path = join(directory, name);
  writeFileSync(path, contents);
  return path;
}

const linesOf = (...files: string[]) => build(TextLinesSource.config({ files })).open();
const objectsOf = (...files: string[]) => build(JsonLinesSource.config({ files })).open();
const all = (table: RecordTable) => Array.from({ length: table.numRecords }, (_, i) => table.read(i));

test('any lines come back, in any order of reading, from several files, empty ones among them', () => {
  const line = fc
    .string({ unit: 'grapheme', maxLength: 12 })
    .map((text) => text.replace(/[\r\n\uFEFF]/g, ''));
  fc.assert(
    fc.property(fc.array(fc.array(line, { maxLength: 40 }), { minLength: 1, maxLength: 4 }), (parts) => {
      const files = parts.map((lines, f) =>
        fileOf(`part${f}.txt`, lines.map((text) => `${text}\n`).join('')),
      );
      const table = linesOf(...files);
      expect(table.numRecords).toBe(parts.flat().length);
      const wanted = parts.flat().map((text) => ({ text }));
      for (let i = table.numRecords - 1; i >= 0; i--) expect(table.read(i)).toEqual(wanted[i]);
      const places = parts.flatMap((lines, f) => lines.map((_, i) => `${files[f]}:${i + 1}`));
      expect(wanted.map((_, i) => table.place(i))).toEqual(places);
      table.close();
    }),
    { numRuns: 50 },
  );
});

test('a byte order mark, carriage returns, and a last line without an end', () => {
  const table = linesOf(fileOf('dos.txt', '\uFEFFone\r\n\r\nthree\r\nfour'));
  expect(all(table)).toEqual([{ text: 'one' }, { text: '' }, { text: 'three' }, { text: 'four' }]);
  table.close();
});

test('JSON Lines leave blank lines out, and say the line of what is wrong', () => {
  const path = fileOf('some.jsonl', '\n{"x": 1}\n \t\r\n\n{"x": "ü"}\r\n[1]\n{\n\n');
  const table = objectsOf(path);
  expect([table.numRecords, table.read(0), table.read(1), table.place(1)]).toEqual([
    4,
    { x: 1 },
    { x: 'ü' },
    `${path}:5`,
  ]);
  expect(() => table.read(2)).toThrow(`${path}:6: expected an object, { column: value, … }; got [1]`);
  expect(() => table.read(3)).toThrow(`${path}:7: not JSON: `);
  table.close();
});

test('bytes that are not UTF-8 are told by line and byte; other lines can be read', () => {
  const path = fileOf('latin1.txt', Uint8Array.of(97, 10, 233, 10, 98, 10));
  const table = linesOf(path);
  expect(table.read(2)).toEqual({ text: 'b' });
  expect(() => table.read(1)).toThrow(`${path}:2, byte 2: the text is not UTF-8.`);
  table.close();
});

test('the digest follows the contents', () => {
  const digestOf = (contents: string) => {
    const table = linesOf(fileOf('digest.txt', contents));
    table.close();
    return table.digest;
  };
  expect(digestOf('a\nb\n')).toBe(digestOf('a\nb\n'));
  expect(new Set(['a\nb\n', 'b\na\n', 'a\nb\nc\n', ''].map(digestOf)).size).toBe(4);
});

test.each<[string, (path: string) => void, RegExp]>([
  [
    'vanishes',
    (path) => rmSync(path),
    /the file vanished while it was being read\. Restore the file, or start again to read the changed one\.$/,
  ],
  ['shrinks', (path) => truncateSync(path, 3), /the file shrank from 8 to 3 bytes/],
  ['grows', (path) => appendFileSync(path, 'more'), /the file grew from 8 to 12 bytes/],
  ['changes', (path) => utimesSync(path, 1, 1), /the file changed while/],
  ['is replaced', (path) => renameSync(fileOf('other', 'one\ntwo\n'), path), /the file changed while/],
])('a file that %s is told with the place of reading', (name, change, message) => {
  const path = fileOf(`${name}.txt`, 'one\ntwo\n');
  const table = linesOf(path);
  change(path);
  expect(() => table.read(1)).toThrow(message);
  expect(() => table.read(1)).toThrow(`${path}, byte 4: `);
  table.close();
});

test('a file that is not there, or no file, is told when the source is opened', () => {
  expect(() => linesOf(join(directory, 'none.txt'))).toThrow(/^No file matches /);
  expect(() => linesOf(directory)).toThrow('It is a directory.');
  const pipe = join(directory, 'pipe');
  execFileSync('mkfifo', [pipe]);
  expect(() => linesOf(pipe)).toThrow('It is a named pipe, a device or a socket.');
  const unreadable = fileOf('unreadable.txt', 'one\n');
  const files = [{ path: unreadable, name: 'unreadable.txt' }];
  rmSync(unreadable);
  expect(() => lineTable(files, false, () => ({}))).toThrow(
    `${unreadable} cannot be read: ENOENT: no such file or directory, open '${unreadable}'`,
  );
  mkdirSync(unreadable);
  expect(() => lineTable(files, false, () => ({}))).toThrow(
    `${unreadable} cannot be read: ${unreadable} is not a regular file but a directory`,
  );
  rmdirSync(unreadable);
});

test('files without a record among others are passed over; all of them empty are an error of the input', async () => {
  const empty = fileOf('empty.jsonl', '');
  const blank = fileOf('blank.jsonl', '\n \n');
  const table = objectsOf(
    empty,
    fileOf('one.jsonl', '{"x": 1}\n'),
    blank,
    fileOf('two.jsonl', '{"x": 2}'),
    empty,
  );
  expect(all(table)).toEqual([{ x: 1 }, { x: 2 }]);
  table.close();
  const source = JsonLinesSource.config({ files: [empty, blank] });
  const features = { x: NumberFeature.config({ columns: 'x' }) };
  await expect(build(RecordInput.config({ source, features, batchSize: 1 })).getNext()).rejects.toThrow(
    "RecordInput 'input': there are no records.",
  );
  const tokens = { targets: Feature.config({ tokenizer: ByteTokenizer.config(), addEos: false }) };
  const mixtureOrTask = Task.config({ source, preprocessors: [Tokenize.config()], features: tokens });
  const taskFeatureLengths = { targets: 8 };
  const input = SeqioInput.config({ mixtureOrTask, splitName: 'all', taskFeatureLengths, batchSize: 1 });
  expect(() => build(input).getState()).toThrow(
    /^SeqioInput 'input': split 'all' of task '\w+' has no records\.$/,
  );
});

test('the index of a large file is kept in the cache, and a changed file has another; long lines are read whole', () => {
  vi.stubEnv('XDG_CACHE_HOME', join(directory, 'cache'));
  const kept = () => readdirSync(join(directory, 'cache', 'luthier', 'indexes')).length;
  const long = 'x'.repeat(20 * 2 ** 20);
  const path = fileOf('large.txt', `first\n${long}\n${'line\n'.repeat(50)}`);
  for (let round = 0; round < 2; round++) {
    const table = linesOf(path);
    expect([table.numRecords, table.read(51), table.read(0)]).toEqual([
      52,
      { text: 'line' },
      { text: 'first' },
    ]);
    expect((table.read(1) as { text: string }).text === long).toBe(true);
    table.close();
    expect(kept()).toBe(1);
  }
  appendFileSync(path, 'last');
  const table = linesOf(path);
  expect([table.numRecords, table.read(52), kept()]).toEqual([53, { text: 'last' }, 2]);
  table.close();
  vi.stubEnv('XDG_CACHE_HOME', '/proc/none');
  const uncached = linesOf(path);
  expect(uncached.read(52)).toEqual({ text: 'last' });
  uncached.close();
  vi.unstubAllEnvs();
});
