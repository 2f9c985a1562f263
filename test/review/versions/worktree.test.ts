/** @file Temporary worktrees: what they hold, and that they leave nothing. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { repositoryOf as gitOf } from '../../../src/review/versions/gitQueries.js';
import { changedFiles } from '../../../src/review/versions/heldApart.js';
import { ImportGraph } from '../../../src/review/versions/importGraph.js';
import { treeAt } from '../../../src/review/versions/versionTree.js';
import { addWorktree } from '../../../src/review/versions/worktree.js';
import { writeFiles } from '../../tools/scratch.js';
import { repositoryOf } from '../repository.js';

const workspace = {
  'package.json': '{ "name": "app", "type": "module" }\n',
  'parts/package.json': '{ "name": "parts", "type": "module", "exports": "./index.ts" }\n',
  'parts/index.ts': "export * from './inner.js';\n",
  'parts/inner.ts': 'export const size = 1;\n',
  'experiments/a.ts':
    "import { size } from 'parts';\nimport { z } from 'zod';\nimport type { T } from './types.js';\n",
  'experiments/types.ts': 'export type T = 1;\n',
  'experiments/b c.ts': '',
};

test('a worktree has the packages of a workspace as they were, and what git ignores', () => {
  const user = repositoryOf(workspace);
  const folder = realpathSync(user.folder);
  symlinkSync('../parts', join(folder, 'node_modules/parts'));
  mkdirSync(join(folder, 'data'));
  user.write({
    'data/a.txt': 'ignored',
    'parts/inner.ts': 'export const size = 2;\n',
    'experiments/new é.ts': '',
  });
  rmSync(join(folder, 'experiments/b c.ts'));
  user.git('add', 'parts');
  const state = user.state();
  const repository = gitOf(folder);
  const worktree = addWorktree(repository, 'HEAD', folder);
  const { root } = worktree;
  expect(readFileSync(join(root, 'node_modules/parts/inner.ts'), 'utf8')).toBe('export const size = 1;\n');
  expect(readFileSync(join(root, 'data/a.txt'), 'utf8')).toBe('ignored');
  expect(readlinkSync(join(root, 'node_modules/zod'))).toBe(join(folder, 'node_modules/zod'));
  expect(existsSync(join(root, 'experiments/new é.ts'))).toBe(false);
  expect(treeAt(root, { root: folder, project: folder }).library).toBe(
    treeAt(folder, { root: folder, project: folder }).library,
  );
  const imported = [...new ImportGraph(root).closureOf(join(root, 'experiments/a.ts'))];
  expect(imported.map((file) => file.slice(root.length + 1))).toEqual([
    'experiments/a.ts',
    'parts/index.ts',
    'parts/inner.ts',
  ]);
  worktree.remove();
  expect(existsSync(root)).toBe(false);
  const bare = addWorktree(repository, 'HEAD', folder, 'none');
  expect([existsSync(join(bare.root, 'node_modules')), existsSync(join(bare.root, 'data/a.txt'))]).toEqual([
    false,
    true,
  ]);
  bare.linkPackages();
  expect(readlinkSync(join(bare.root, 'node_modules/zod'))).toBe(join(folder, 'node_modules/zod'));
  bare.remove();
  expect(readFileSync(join(folder, 'data/a.txt'), 'utf8')).toBe('ignored');
  expect(user.state()).toBe(state);
  expect([...changedFiles(repository, 'HEAD')].sort()).toEqual([
    'experiments/b c.ts',
    'experiments/new é.ts',
    'parts/inner.ts',
  ]);
});

test('what is around the repository is around its worktree, and stays', () => {
  const user = repositoryOf({ 'parts/a.txt': 'a' });
  const folder = realpathSync(user.folder);
  const outside = `${folder}-outside`;
  try {
    writeFiles(outside, { 'rate.txt': '0.01' });
    const worktree = addWorktree(gitOf(folder), 'HEAD', folder);
    const found = join(worktree.root, 'parts/../..', basename(outside), 'rate.txt');
    expect(readFileSync(found, 'utf8')).toBe('0.01');
    expect(realpathSync(found)).toBe(join(outside, 'rate.txt'));
    expect(treeAt(worktree.root, { root: folder, project: folder }).around).toBe(
      worktree.root.slice(0, -folder.length),
    );
    worktree.remove();
    expect(readdirSync(outside)).toEqual(['rate.txt']);
    expect(existsSync(worktree.root)).toBe(false);
  } finally {
    rmSync(outside, { recursive: true });
  }
});

test('hooks of the user are not run, and a failure leaves nothing', () => {
  const user = repositoryOf({ 'a.txt': 'a' });
  user.write({ '.git/hooks/post-checkout': '#!/bin/sh\ntouch ran\n' });
  const folder = realpathSync(user.folder);
  chmodSync(join(folder, '.git/hooks/post-checkout'), 0o755);
  user.git('config', 'core.hooksPath', '.git/hooks');
  const repository = gitOf(folder);
  const worktree = addWorktree(repository, 'HEAD', folder);
  expect(existsSync(join(worktree.root, 'ran'))).toBe(false);
  worktree.remove();
  expect(() => addWorktree(repository, 'nothing', folder)).toThrow(/^git worktree add .* failed: /);
  expect(user.git('worktree', 'list').trim().split('\n')).toHaveLength(1);
});
