/** @file Caches of data: a file that was written to is read anew, whatever its size and time say. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeEach, expect, test, vi } from 'vitest';
import { build } from '../../../src/hparams/index.js';
import {
  AudioInput,
  dataChanges,
  ImageFolder,
  ImageInput,
  LogMel,
  type RecordTable,
  TextLinesSource,
  withDigests,
} from '../../../src/inputs/index.js';
import { cachedFile } from '../../../src/inputs/records/dataCache.js';
import { unpackedTable } from '../../../src/inputs/records/unpackedTable.js';
import { WatchedFile } from '../../../src/inputs/records/watchedFile.js';
import { settledVersion } from '../../../src/system/index.js';
import { temporaryDirectory } from '../../command.js';

const directory = temporaryDirectory();
const cache = join(directory, 'cache');
beforeEach(() => {
  vi.stubEnv('XDG_CACHE_HOME', cache);
});

/** Writes a file in place, with a time of its own, as `cp -p`, `rsync -t` and archives do. */
function write(name: string, contents: string | Uint8Array): string {
  const path = join(directory, name);
  writeFileSync(path, contents);
  utimesSync(path, 1e9, 1e9);
  return path;
}

const linesOf = (path: string): RecordTable => build(TextLinesSource.config({ files: [path] })).open();

/** All that a run records of a table's files. */
const recorded = ({ files, digest }: RecordTable) => withDigests({ files, contents: digest });

test('an index: lines are written over by as many bytes of lines half as long', () => {
  const count = 2 ** 12;
  const lines = (length: number) => `${'x'.repeat(length - 1)}\n`;
  const path = write('lines.txt', lines(4096).repeat(count));
  const before = linesOf(path);
  const past = recorded(before);
  expect(before.numRecords).toBe(count);
  before.close();
  write('lines.txt', lines(2048).repeat(2 * count));
  const after = linesOf(path);
  expect([after.numRecords, after.read(2 * count - 1)]).toEqual([2 * count, { text: lines(2048).trim() }]);
  const matching = (text: string) => expect.stringMatching(RegExp(text));
  expect(dataChanges(past, recorded(after))).toEqual([
    matching(`^${path} has other bytes \\(sha256 [0-9a-f]{16}, was [0-9a-f]{16}\\)$`),
    matching(`^the data is ${2 * count}-[0-9a-f]+, was ${count}-[0-9a-f]+$`),
  ]);
  after.close();
});

test('a copied folder is the same data: digests follow bytes, and are of each file', () => {
  const path = write('some.txt', 'one\ntwo\n');
  mkdirSync(join(directory, 'copy'));
  copyFileSync(path, join(directory, 'copy/some.txt'));
  const [here, there] = [path, join(directory, 'copy/some.txt')].map((each) => recorded(linesOf(each)));
  expect(here!.files).toEqual([
    { name: path, path, size: 8, sha256: 'c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8' },
  ]);
  expect(there!.files![0]!.sha256).toBe(here!.files![0]!.sha256);
  expect(dataChanges(here!, there!)).toEqual([]);
  const [file] = here!.files!;
  // Runs of before have no digests of files.
  const { sha256: _, ...old } = file!;
  const changes = dataChanges({ contents: 'one', files: [old] }, { contents: 'two', files: [file!] });
  expect(changes).toEqual(['the data is two, was one']);
  const unsummed = dataChanges({ files: [{ ...file!, sha256: '0'.repeat(64) }] }, { files: [file!] });
  expect(unsummed).toEqual([`${path} has other bytes (sha256 c3f9c8c283a2b1f2, was ${'0'.repeat(16)})`]);
});

test.each(['png', 'wav'])('folders of classes have one digest of all names and bytes: %s', (extension) => {
  const folder = join(directory, extension);
  const source = ImageFolder.config({ directory: folder });
  const images = ImageInput.config({ source, height: 1, width: 1, channels: 1, batchSize: 1 });
  const features = LogMel.config({ sampleRate: 8000, windowSize: 80, hopSize: 40, numMels: 2 });
  const sounds = AudioInput.config({ directory: folder, features, numSamples: 80, batchSize: 1 });
  const identity = () =>
    withDigests(build<ImageInput | AudioInput>(extension === 'png' ? images : sounds).dataIdentity());
  for (const name of ['cat', 'dog']) mkdirSync(join(folder, name), { recursive: true });
  write(`${extension}/cat/1.${extension}`, 'one');
  const path = write(`${extension}/dog/1.${extension}`, 'two');
  const before = identity();
  expect(before.folders).toEqual([
    { name: folder, path: folder, numFiles: 2, size: 6, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) },
  ]);
  const copy = join(directory, `copy-${extension}`);
  cpSync(folder, copy, { recursive: true });
  rmSync(folder, { recursive: true });
  cpSync(copy, folder, { recursive: true });
  expect(dataChanges(before, identity())).toEqual([]);
  write(`${extension}/dog/1.${extension}`, 'Two');
  const after = identity();
  const digests = [after, before].map(({ folders }) => folders![0]!.sha256!.slice(0, 16));
  expect(dataChanges(before, after)).toEqual([
    `${folder} has other bytes in 2 files (sha256 ${digests[0]}, was ${digests[1]})`,
  ]);
  // Inputs may pass over files that cannot be read; runs of before have no digest.
  rmSync(path);
  execFileSync('mkfifo', [path]);
  expect(identity().folders![0]).toMatchObject({ size: 3, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) });
  const { folders: _, ...old } = after;
  expect(dataChanges(old, after)).toEqual([]);
});

test('unpacked files and tables', () => {
  const packed = (text: string) => gzipSync(text, { level: 0 });
  const path = write('text.txt.gz', packed('one\n'));
  expect(linesOf(path).read(0)).toEqual({ text: 'one' });
  write('text.txt.gz', packed('two\n'));
  expect(linesOf(path).read(0)).toEqual({ text: 'two' });

  const csv = write('table.csv', 'a\n1\n');
  const read = (value: string) => {
    const file = new WatchedFile({ name: csv, path: csv });
    const table = unpackedTable(file, [], () => [[{ a: value }, 1]], String)!;
    const record = table.read(0);
    table.close();
    return record;
  };
  expect([read('1'), read('not read')]).toEqual([{ a: '1' }, { a: '1' }]);
  write('table.csv', 'a\n2\n');
  expect(read('2')).toEqual({ a: '2' });
});

test('a file that is written to while it is cached is not kept, not even within a step of the clock', () => {
  const path = write('changing.txt', 'one');
  const of = (contents: string) => {
    writeFileSync(path, contents);
    utimesSync(path, 1e9, 1e9);
    return { path, version: settledVersion(path) };
  };
  const versions = Array.from({ length: 5 }, (_, i) => of(`${i}`).version);
  expect(new Set(versions).size).toBe(5);
  const kept = { name: 'changing', mostBytes: 1e6 };
  expect(() =>
    cachedFile(kept, of('1'), [], (to) => {
      writeFileSync(to, 'made');
      of('2');
    }),
  ).toThrow(`${path} changed while it was being read. Start again when it is no longer written to.`);
  expect(readdirSync(join(cache, 'luthier/changing'))).toEqual([]);
});

test('while a file is open, permissions may change, and bytes may not', () => {
  const big = 'line\n'.repeat(2 ** 18);
  const path = write('open.txt', big);
  const table = linesOf(path);
  recorded(table);
  chmodSync(path, 0o600);
  expect(table.read(7)).toEqual({ text: 'line' });
  write('open.txt', big.replace('line', 'LINE'));
  expect(() => table.read(7)).toThrow(`${path}, byte 35: the file changed while it was being read.`);
  table.close();
});

test('folders of the cache are their owner’s alone', () => {
  const umask = process.umask(0o022);
  vi.stubEnv('XDG_CACHE_HOME', join(directory, 'new/cache'));
  linesOf(write('other.txt.gz', gzipSync('a\n'))).close();
  process.umask(umask);
  for (const folder of ['', 'luthier', 'luthier/unpacked'])
    expect(statSync(join(directory, 'new/cache', folder)).mode & 0o777).toBe(0o700);
  expect(execFileSync('ls', ['-A', join(directory, 'new/cache/luthier')], { encoding: 'utf8' })).toBe(
    'unpacked\n',
  );
});
