/** @file The version of the compiler: another whenever a file of it is, unknown where files are newer than what runs. */
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { compilerVersion, versionOf } from '../../../../src/compiler/native/stored/compilerVersion.js';
import { temporaryDirectory } from '../../../command.js';

const later = (): number => Date.now() + 1000;

function someFolder(): string {
  const folder = temporaryDirectory();
  mkdirSync(join(folder, 'passes'));
  for (const file of ['a.ts', 'passes/b.js', 'passes/c.c']) writeFileSync(join(folder, file), 'one');
  return folder;
}

describe('the version', () => {
  it.each<[string, (folder: string) => void]>([
    ['is written to', (folder) => writeFileSync(join(folder, 'passes/b.js'), 'two')],
    [
      'is written to and dated back',
      (folder) => {
        const file = join(folder, 'a.ts');
        const { atime, mtime } = statSync(file);
        writeFileSync(file, 'two');
        utimesSync(file, atime, mtime);
      },
    ],
    [
      'is exchanged',
      (folder) => {
        writeFileSync(join(folder, 'other'), readFileSync(join(folder, 'a.ts')));
        renameSync(join(folder, 'other'), join(folder, 'a.ts'));
      },
    ],
    ['is added', (folder) => writeFileSync(join(folder, 'passes/d.ts'), '')],
    ['is removed', (folder) => rmSync(join(folder, 'passes/b.js'))],
  ])('is another when a module %s', async (_, change) => {
    const folder = someFolder();
    const before = versionOf(folder, later());
    expect(before).toMatch(/^[0-9a-f]{64}$/);
    // The system counts the time of changes in steps of a few milliseconds.
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(versionOf(folder, later())).toBe(before);
    change(folder);
    expect(versionOf(folder, later())).not.toBe(before);
  });

  it('ignores files that are not modules', () => {
    const folder = someFolder();
    const before = versionOf(folder, later());
    writeFileSync(join(folder, 'passes/c.c'), 'two');
    expect(versionOf(folder, later())).toBe(before);
  });

  it('is not known where a module is newer than the process', () => {
    const folder = someFolder();
    expect(versionOf(folder, Date.now() - 1000)).toBeUndefined();
  });

  it('is not known where modules are served by something that may have older ones', () => {
    expect(compilerVersion()).toBeUndefined();
  });
});
