/** @file Commit of an experiment's sources, and its uncommitted changes, in repositories of git. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { sourceRevision } from '../../src/runs/sourceRevision.js';
import { temporaryDirectory } from '../command.js';

afterEach(() => {
  vi.unstubAllEnvs();
});

/** A repository, and git in it. */
function repository(): { folder: string; git: (...args: string[]) => string } {
  const folder = temporaryDirectory();
  const identity = ['-c', 'user.name=A', '-c', 'user.email=a@example.org', '-c', 'commit.gpgSign=false'];
  const git = (...args: string[]): string =>
    execFileSync('git', [...identity, ...args], { cwd: folder, encoding: 'utf8' }).trim();
  git('init', '--quiet');
  return { folder, git };
}

test('nothing is said outside of a repository, and without git', () => {
  const folder = temporaryDirectory();
  expect(sourceRevision(folder)).toBeUndefined();
  const { folder: known } = repository();
  expect(sourceRevision(known)).toEqual({ gitRevision: null, uncommitted: null });
  vi.stubEnv('PATH', folder);
  expect(sourceRevision(known)).toBeUndefined();
});

test('files that were changed or added since the commit are listed, with the diff of those that git knows', () => {
  const { folder, git } = repository();
  mkdirSync(join(folder, 'experiments'));
  const file = join(folder, 'experiments/ä.ts');
  writeFileSync(file, 'old\n');
  writeFileSync(join(folder, '.gitignore'), 'out/\n');
  expect(sourceRevision(folder)).toMatchObject({ gitRevision: null, uncommitted: { diff: '' } });
  git('add', '.');
  git('commit', '--quiet', '--message=one');
  const gitRevision = git('rev-parse', 'HEAD');
  mkdirSync(join(folder, 'out'));
  writeFileSync(join(folder, 'out/ignored'), '');
  expect(sourceRevision(join(folder, 'experiments'))).toEqual({ gitRevision, uncommitted: null });

  writeFileSync(file, 'new\n');
  writeFileSync(join(folder, 'notes.txt'), 'secret\n');
  // What a hook would be run with.
  vi.stubEnv('GIT_DIR', '/nowhere');
  const { uncommitted } = sourceRevision(join(folder, 'experiments'))!;
  expect(uncommitted!.files).toEqual([' M experiments/ä.ts', '?? notes.txt']);
  expect(uncommitted!.diff).toContain('\n-old\n+new\n');
  expect(uncommitted!.diff).not.toContain('secret');
  expect(uncommitted!.isCut).toBe(false);
});

test('long lists and diffs are cut, and say so', () => {
  const { folder, git } = repository();
  writeFileSync(join(folder, 'big.txt'), 'a\n'.repeat(50_000));
  git('add', '.');
  git('commit', '--quiet', '--message=one');
  for (let i = 0; i < 201; i++) writeFileSync(join(folder, `${i}.txt`), '');
  const many = sourceRevision(folder)!.uncommitted!;
  expect([many.files.length, many.diff, many.isCut]).toEqual([200, '', true]);
  writeFileSync(join(folder, 'big.txt'), 'b\n'.repeat(50_000));
  const { diff } = sourceRevision(folder)!.uncommitted!;
  expect(diff).toMatch(/^diff --git a\/big\.txt b\/big\.txt\n/);
  expect(diff.length).toBeLessThanOrEqual(64 << 10);
  expect(diff.length).toBeGreaterThan(30 << 10);
});
