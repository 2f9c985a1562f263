/** @file Directories are made or refused at once; files are written whole. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeDirectory, writeTogether, writeWhole } from '../../src/files/index.js';
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

test('what stands in the way is named by the system', () => {
  const root = temporaryDirectory();
  const file = join(root, 'file');
  writeFileSync(file, '');
  symlinkSync('nowhere', join(root, 'dangling'));
  expect(() => makeDirectory(file)).toThrow(`EEXIST: file already exists, mkdir '${file}'`);
  expect(() => makeDirectory(join(file, 'below'))).toThrow(
    `ENOTDIR: not a directory, mkdir '${join(file, 'below')}'`,
  );
  expect(() => makeDirectory(join(root, 'dangling'))).toThrow('EEXIST');
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
