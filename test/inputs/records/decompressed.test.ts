/** @file Compressed files: the same records as of plain ones, and what is said of damaged ones. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeEach, expect, test, vi } from 'vitest';
import { build } from '../../../src/hparams/index.js';
import { JsonLinesSource, TextLinesSource } from '../../../src/inputs/index.js';
import { temporaryDirectory } from '../../command.js';
import { longTest } from '../../longTest.js';

const directory = temporaryDirectory();
beforeEach(() => {
  vi.stubEnv('XDG_CACHE_HOME', join(directory, 'cache'));
});

const pathOf = (name: string): string => join(directory, name);
const open = (...names: string[]) => build(TextLinesSource.config({ files: names.map(pathOf) })).open();
const lines = Array.from({ length: 2000 }, (_, i) => `line ${i}`);
const text = lines.map((line) => `${line}\n`).join('');

// Two frames that Zstandard's own library wrote, with checksums: 'one\n', and a hundred times 'two\n'.
const zstd = Buffer.from(
  '28b52ffd24042100006f6e650adf1668' + '0928b52ffd6490005d00002074776f0a010089ab8e08defe1a7f',
  'hex',
);

test('plain, gzip of several members: the lines, their places, and the files themselves', () => {
  writeFileSync(pathOf('plain.txt'), 'first\n');
  const packed = Buffer.concat([gzipSync(text.slice(0, 99)), gzipSync(text.slice(99))]);
  writeFileSync(pathOf('some.txt.gz'), packed);
  for (let time = 0; time < 2; time++) {
    const table = open('plain.txt', 'some.txt.gz');
    expect(table.numRecords).toBe(2001);
    for (const i of [2000, 13, 0]) expect(table.read(i)).toEqual({ text: i === 0 ? 'first' : lines[i - 1] });
    expect(table.place(12)).toBe(`${pathOf('some.txt.gz')}:12`);
    expect(table.files.map(({ size }) => size)).toEqual([6, packed.length]);
    table.close();
  }
  expect(readdirSync(join(directory, 'cache/luthier/unpacked'))).toHaveLength(1);
  writeFileSync(pathOf('some.txt.gz'), gzipSync('other\n'));
  expect(open('some.txt.gz').read(0)).toEqual({ text: 'other' });
});

test('gzip data that is cut off, damaged, or none', () => {
  const packed = gzipSync(text);
  const path = pathOf('cut.jsonl.gz');
  const opening = (bytes: Buffer) => {
    writeFileSync(path, bytes);
    return () => build(JsonLinesSource.config({ files: [path] })).open();
  };
  expect(opening(packed.subarray(0, 500))).toThrow(
    `${path}, byte 500: the gzip data is damaged or cut off: unexpected end of file.`,
  );
  const damaged = Buffer.from(packed);
  damaged[damaged.length - 6]! ^= 1;
  expect(opening(damaged)).toThrow(
    /, byte \d+: the gzip data is damaged or cut off: incorrect data check\.$/,
  );
  expect(opening(Buffer.from('{}\n'))).toThrow(
    /, byte \d+: the gzip data is damaged or cut off: incorrect header check\.$/,
  );
  expect(
    readdirSync(join(directory, 'cache/luthier/unpacked')).filter((name) => name.endsWith('.tmp')),
  ).toEqual([]);
});

test('Zstandard: several frames, and data that is cut off or none', () => {
  const path = pathOf('a.txt.zst');
  const opening = (bytes: Buffer) => {
    writeFileSync(path, bytes);
    return () => open('a.txt.zst');
  };
  const table = opening(zstd)();
  expect([table.numRecords, table.read(0), table.read(100)]).toEqual([101, { text: 'one' }, { text: 'two' }]);
  const said = `${path}, byte 30: the zstd data is damaged or cut off: unexpected EOF.`;
  expect(opening(zstd.subarray(0, 30))).toThrow(said);
  expect(opening(Buffer.from('one\ntwo\n'))).toThrow(
    /, byte \d+: the zstd data is damaged or cut off: invalid zstd data\.$/,
  );
});

test('a cache that cannot be written is told, with what to do', () => {
  writeFileSync(pathOf('no folder'), '');
  vi.stubEnv('XDG_CACHE_HOME', pathOf('no folder'));
  writeFileSync(pathOf('a.txt.gz'), gzipSync('a\n'));
  expect(() => open('a.txt.gz')).toThrow(
    /a\.txt\.gz cannot be unpacked: .*no folder.* Files are unpacked into the cache; XDG_CACHE_HOME sets its place\.$/,
  );
});

longTest(
  'files that have more bytes inside than they may are refused: before they are unpacked, if they say so',
  () => {
    const refusal = (bytes: Buffer, name: string, mostUnpackedBytes: number): string => {
      writeFileSync(pathOf(name), bytes);
      try {
        build(TextLinesSource.config({ files: [pathOf(name)], mostUnpackedBytes }))
          .open()
          .close();
      } catch (error) {
        return (error as Error).message.replaceAll(pathOf(name), 'it');
      }
      return 'none';
    };
    const said = (most: number) =>
      `it has more than ${most} bytes when unpacked. Set another bound in the source's field mostUnpackedBytes.`;
    const packed = gzipSync(text);
    expect(refusal(packed, 'large.txt.gz', text.length)).toBe('none');
    // From the cache, too.
    expect(refusal(packed, 'large.txt.gz', text.length - 1)).toBe(said(text.length - 1));
    const longer = gzipSync(text + text);
    expect(refusal(longer, 'longer.txt.gz', 100)).toBe(said(100));
    // A last member that is short, and hides what is before it.
    const hidden = Buffer.concat([longer, gzipSync('')]);
    expect(refusal(hidden, 'hidden.txt.gz', 100)).toBe(said(100));
    // It says 2^40 bytes, and that its window has 2^31.
    const frame = (head: string) => Buffer.from(`28b52ffd${head}`.padEnd(80, '0'), 'hex');
    expect(refusal(frame('e00000000000010000'), 'a.txt.zst', 2 ** 30)).toBe(said(2 ** 30));
    expect(refusal(frame('00a8'), 'b.txt.zst', 2 ** 30)).toBe(
      'it, byte 0: the zstd data is damaged or cut off: a window of 2147483648 bytes; expected at most 134217728.',
    );
    expect(open('large.txt.gz').numRecords).toBe(2000);
  },
);
