/** @file A review of a project with links to nowhere, folders and pipes that have the names of source files. */
import { execFileSync } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runLuthier } from '../command.js';
import { oddProject } from './oddFiles.js';

test('diff passes over what is no source file, on both sides', async () => {
  const directory = oddProject();
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b.c', ...args], { cwd: directory });
  git('init', '--quiet');
  git('add', '--all');
  git('commit', '--quiet', '--message=Odd files');
  appendFileSync(join(directory, 'experiments/fine.ts'), '\nexport class Finer extends Fine {}\n');
  const { code, stdout, stderr } = await runLuthier(['diff', '--base=HEAD'], directory);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('fine.Finer');
  expect(stdout).not.toContain('nested');
});
