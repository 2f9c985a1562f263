/** @file Directories are made or refused at once; files are written whole. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  explain,
  linesFromEnd,
  makeDirectory,
  readRegularFile,
  writeTogether,
  writeWhole,
} from '../../src/files/index.js';
import { temporaryDirectory } from '../command.js';

test('a directory is made with everything above it, and may be there already', () => {
  const root = temporaryDirectory();
  for (const path of ['a', 'b/c/d', 'b/c/d', 'e/f/', 'g/../h', 'b/./i']) {
    makeDirectory(join(root, path));
    makeDirectory(`${root}/${path}`);
  }
  expect(readdirSync(root).sort()).toEqual(['a', 'b', 'e', 'g', 'h']);
  expect(readdirSync(join(root, 'b')).sort()).toEqual(['c', 'i']);
  expect(existsSync(join(root, 'b', 'c', 'd'))).toBe(true);
});

test('a directory behind a link is a directory', () => {
  const root = temporaryDirectory();
  mkdirSync(join(root, 'real'));
  symlinkSync('real', join(root, 'link'));
  makeDirectory(join(root, 'link'));
  makeDirectory(join(root, 'link', 'below'));
  expect(readdirSync(join(root, 'real'))).toEqual(['below']);
});

test('what stands in the way is named', () => {
  const root = temporaryDirectory();
  const file = join(root, 'file');
  writeFileSync(file, '');
  symlinkSync('nowhere', join(root, 'dangling'));
  expect(() => makeDirectory(file)).toThrow(`${file} is not a directory`);
  expect(() => makeDirectory(join(file, 'below'))).toThrow(
    `ENOTDIR: not a directory, mkdir '${join(file, 'below')}'`,
  );
  const dangling = join(root, 'dangling');
  for (const path of [dangling, join(dangling, 'below')])
    expect(() => makeDirectory(path)).toThrow(
      `${dangling} is not a directory but a link to nowhere, which is none or not there`,
    );
});

test.runIf(existsSync('/proc/self'))('a system that has no room for a directory says so, at once', () => {
  expect(() => makeDirectory('/proc/luthier/job')).toThrow(
    "ENOENT: no such file or directory, mkdir '/proc/luthier'",
  );
});

test('a file is replaced whole, without leftovers', () => {
  const root = temporaryDirectory();
  const path = join(root, 'text');
  writeWhole(path, 'first, and longer\n');
  writeWhole(path, 'second\n');
  expect(readFileSync(path, 'utf8')).toBe('second\n');
  expect(readdirSync(root)).toEqual(['text']);
});

test('what a link leads to is replaced, and the link stays', () => {
  const root = temporaryDirectory();
  writeFileSync(join(root, 'real'), 'first');
  symlinkSync('real', join(root, 'link'));
  writeWhole(join(root, 'link'), 'second');
  expect(readFileSync(join(root, 'real'), 'utf8')).toBe('second');
  expect(readdirSync(root).sort()).toEqual(['link', 'real']);
});

test('a file that cannot be replaced leaves nothing behind', () => {
  const root = temporaryDirectory();
  mkdirSync(join(root, 'path', 'below'), { recursive: true });
  expect(() => writeWhole(join(root, 'path'), 'text')).toThrow('EISDIR');
  expect(readdirSync(root)).toEqual(['path']);
});

test('only regular files are read, of a length that is asked for', () => {
  const root = temporaryDirectory();
  const [pipe, large] = [join(root, 'pipe'), join(root, 'large')];
  execFileSync('mkfifo', [pipe]);
  expect(() => readRegularFile(pipe)).toThrow(`${pipe} is not a regular file but a named pipe`);
  expect(() => readRegularFile(root)).toThrow(`${root} is not a regular file but a directory`);
  writeFileSync(large, 'abc');
  expect(readRegularFile(large, 3).toString()).toBe('abc');
  expect(() => readRegularFile(large, 2)).toThrow(`${large} has 3 bytes; expected at most 2`);
});

test('system errors are told with what to do, those too that Node has no name for', () => {
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  expect(explain(full)).toBe('ENOSPC: no space left on device, write (free some space on that disk)');
  const errno = -constants.errno.EDQUOT;
  const quota = Object.assign(new Error('UNKNOWN: unknown error, write'), { code: 'UNKNOWN', errno });
  expect(explain(quota)).toBe(
    'EDQUOT: disk quota exceeded (UNKNOWN: unknown error, write) (free some of your quota on that disk, or have it raised)',
  );
  expect(explain(new Error('another'))).toBe('another');
});

test('lines come from the end, whatever their length and the size of the blocks that are read', () => {
  const root = temporaryDirectory();
  const path = join(root, 'lines');
  const length = fc.oneof(fc.nat(5), fc.constantFrom(65_534, 65_535, 65_536, 65_537, 140_000));
  fc.assert(
    fc.property(fc.array(length, { maxLength: 6 }), fc.boolean(), (lengths, isOpen) => {
      const lines = lengths.map((size, at) => `${String(at).repeat(size)}\n`);
      if (isOpen) lines.push('open');
      writeFileSync(path, lines.join(''));
      const file = openSync(path, 'r');
      const found = [...linesFromEnd(file, statSync(path).size)];
      closeSync(file);
      expect(found.map(({ text }) => text).reverse()).toEqual(lines);
      const longest = openSync(path, 'r');
      const short = [...linesFromEnd(longest, statSync(path).size, 65_536)].map(({ text }) => text);
      closeSync(longest);
      expect(short.reverse()).toEqual(lines.map((line) => (line.length > 65_536 ? undefined : line)));
    }),
    { numRuns: 50 },
  );
});

test('several files are written together, or none is; permissions stay', () => {
  const root = temporaryDirectory();
  const [script, page, missing] = ['run.sh', 'page.md', 'gone.md'].map((name) => join(root, name));
  writeFileSync(script!, 'old\n');
  chmodSync(script!, 0o755);
  writeFileSync(page!, 'old page\n');
  const first = { path: script!, before: 'old\n', text: 'new\n' };
  const second = { path: page!, before: 'old page\n', text: 'new page\n' };
  writeTogether([first, second]);
  expect([readFileSync(script!, 'utf8'), readFileSync(page!, 'utf8')]).toEqual(['new\n', 'new page\n']);
  expect(statSync(script!).mode & 0o777).toBe(0o755);
  const again = { path: script!, before: 'new\n', text: 'newer\n' };
  expect(() => writeTogether([again, second])).toThrow(`${page} was changed meanwhile`);
  expect(() => writeTogether([again, { path: missing!, before: '', text: '' }])).toThrow('ENOENT');
  expect(readFileSync(script!, 'utf8')).toBe('new\n');
  expect(readdirSync(root).sort()).toEqual(['page.md', 'run.sh']);
});
