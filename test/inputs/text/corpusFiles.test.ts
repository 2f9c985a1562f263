import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { InputError } from '../../../src/inputs/inputErrors.js';
import { packageDirectory, readFiles, resolveFiles } from '../../../src/inputs/text/corpusFiles.js';
import { corpusDirectory } from '../corpus.js';

const VALID =
  "A corpus is a file's path, a glob such as 'data/**/*.txt', or a glob in an installed package such as 'pkg:typescript/lib/lib.*.d.ts'.";

let directory: string;
const before = process.cwd();

beforeEach(() => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), 'luthier-files-')));
  for (const name of ['b.txt', 'a.txt', 'C.txt', 'sub/d.txt', 'sub/deep/e.txt', 'notes (1).txt', 'f.md']) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), name);
  }
  process.chdir(directory);
});

afterEach(() => process.chdir(before));

const names = (...specs: string[]) => resolveFiles(specs).map((file) => file.name);

test('files come in the order of the specs, by code unit within a glob, each once', () => {
  expect(names('*.txt')).toEqual(['C.txt', 'a.txt', 'b.txt', 'notes (1).txt']);
  expect(names('b.txt', '*.txt')).toEqual(['b.txt', 'C.txt', 'a.txt', 'notes (1).txt']);
  expect(names('**/*.txt')).toEqual([
    'C.txt',
    'a.txt',
    'b.txt',
    'notes (1).txt',
    'sub/d.txt',
    'sub/deep/e.txt',
  ]);
  expect(names('sub/**')).toEqual(['sub/d.txt', 'sub/deep/e.txt']);
  expect(names('{f.md,a.txt}')).toEqual(['a.txt', 'f.md']);
});

test('absolute globs, paths upwards and names that look like globs are found', () => {
  expect(names(`${directory}/*.md`)).toEqual([`${directory}/f.md`]);
  process.chdir(join(directory, 'sub'));
  expect(resolveFiles(['../*.md'])).toEqual([{ path: join(directory, 'f.md'), name: '../f.md' }]);
  expect(names('../notes (1).txt')).toEqual(['../notes (1).txt']);
});

test('files of an installed package are found from any working directory', () => {
  process.chdir(tmpdir());
  const files = resolveFiles(['pkg:typescript/lib/lib.es5.d.ts', 'pkg:@types/node/fs*.d.ts']);
  expect(files[0]!.name).toBe('lib/lib.es5.d.ts');
  expect(files[0]!.path).toBe(join(packageDirectory('typescript'), 'lib/lib.es5.d.ts'));
  expect(files.slice(1).map((file) => file.name)).toEqual(['fs.d.ts']);
});

function messageOf(spec: string): string {
  try {
    resolveFiles([spec]);
  } catch (error) {
    expect(error).toBeInstanceOf(InputError);
    return (error as Error).message;
  }
  throw new Error('nothing was thrown');
}

test('a missing file is an error with where it was looked for, the nearest name and what is valid', () => {
  expect(messageOf('sub/dd.txt')).toBe(
    `No file matches 'sub/dd.txt' (looked in ${directory}). Did you mean 'sub/d.txt'? ${VALID}`,
  );
  expect(messageOf('*.text')).toBe(
    `No file matches '*.text' (looked in ${directory}). Did you mean 'C.txt'? ${VALID}`,
  );
  expect(messageOf('nowhere/*.txt')).toBe(
    `No file matches 'nowhere/*.txt' (looked in ${directory}). There is no directory ${directory}/nowhere. ${VALID}`,
  );
  expect(messageOf('sub')).toBe(
    `No file matches 'sub' (looked in ${directory}). It is a directory. Did you mean 'sub/**'? ${VALID}`,
  );
  expect(messageOf('something-quite-different.bin')).toBe(
    `No file matches 'something-quite-different.bin' (looked in ${directory}). ${VALID}`,
  );
});

test('what is no regular file is never waited for: no glob finds it, and by its name it is an error', () => {
  execFileSync('mkfifo', ['pipe.txt']);
  expect(names('*.txt')).not.toContain('pipe.txt');
  expect(messageOf('pipe.txt')).toBe(
    `No file matches 'pipe.txt' (looked in ${directory}). It is a named pipe, a device or a socket. ${VALID}`,
  );
  const path = join(directory, 'pipe.txt');
  const reading = (path: string) => () => readFiles([{ path, name: path }]);
  expect(reading(path)).toThrow(`${path} cannot be read: ${path} is not a regular file but a named pipe`);
  const folder = join(directory, 'sub');
  expect(reading(folder)).toThrow(
    `${folder} cannot be read: ${folder} is not a regular file but a directory`,
  );
  const gone = join(directory, 'gone.txt');
  expect(reading(gone)).toThrow(`${gone} cannot be read: ENOENT: no such file or directory, open '${gone}'`);
});

test('a package that is not installed, or a spec without a file, is an error', () => {
  const source = dirname(fileURLToPath(new URL('../../../src/inputs/text/corpusFiles.js', import.meta.url)));
  expect(messageOf('pkg:no-such-package/*.d.ts')).toBe(
    `No package 'no-such-package' is installed (looked upwards from ${source} and from ${directory}).`,
  );
  expect(messageOf('pkg:typescript')).toBe(`'pkg:typescript' names no file in a package. ${VALID}`);
});

test('a file that links lead to by several names is read once, and a circle of links is no trap', () => {
  const corpus = corpusDirectory({ 'a/deep/x.txt': 'x', 'b.txt': 'b' });
  symlinkSync('..', join(corpus, 'a/up'));
  symlinkSync('../b.txt', join(corpus, 'a/b.txt'));
  symlinkSync('nowhere.txt', join(corpus, 'dangling.txt'));
  symlinkSync('self.txt', join(corpus, 'self.txt'));
  const names = resolveFiles([`${corpus}/**/*.txt`]).map(({ path }) => relative(corpus, path));
  expect(names).toEqual(['a/deep/x.txt', 'b.txt']);
  expect(messageOf(join(corpus, 'self.txt'))).toBe(
    `${corpus}/self.txt cannot be read: ELOOP: too many symbolic links encountered, stat '${corpus}/self.txt'`,
  );
});
