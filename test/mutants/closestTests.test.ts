/** @file Order in which tests are asked about a mutant. */
import { expect, test } from 'vitest';
import { root } from '../docs/pages.js';
import { closestTests, importsOf } from './closestTests.js';

test('files of the same name come first, then those that import it in few steps, then those of the folder', () => {
  const imports = new Map([
    ['src/learners/optimizers/adam.ts', []],
    ['src/learners/index.ts', ['src/learners/optimizers/adam.ts']],
    ['src/tasks/task.ts', ['src/learners/index.ts']],
    ['test/learners/transforms/norms.test.ts', []],
    ['test/learners/adam.test.ts', ['src/learners/index.ts']],
    ['test/learners/learner.test.ts', ['src/learners/index.ts']],
    ['test/tasks/task.test.ts', ['src/tasks/task.ts']],
    ['test/summaries/adam.test.ts', []],
  ]);
  expect(closestTests('src/learners/optimizers/adam.ts', imports, 4)).toEqual([
    'test/learners/adam.test.ts',
    'test/learners/learner.test.ts',
    'test/tasks/task.test.ts',
    'test/learners/transforms/norms.test.ts',
  ]);
  // What takes long is asked after files that are nearly as likely to notice it.
  const seconds = new Map([
    ['test/learners/adam.test.ts', 2],
    ['test/learners/learner.test.ts', 100],
  ]);
  expect(closestTests('src/learners/optimizers/adam.ts', imports, 4, seconds)).toEqual([
    'test/learners/adam.test.ts',
    'test/tasks/task.test.ts',
    'test/learners/transforms/norms.test.ts',
    'test/learners/learner.test.ts',
  ]);
  // However long they take, the likeliest are among those that are asked.
  expect(closestTests('src/learners/optimizers/adam.ts', imports, 2, seconds)).toEqual([
    'test/learners/adam.test.ts',
    'test/learners/learner.test.ts',
  ]);
});

test('a program that a test starts counts as an import', () => {
  const imports = importsOf(root);
  expect(imports.get('test/command.ts')).toContain('src/main.ts');
  expect(closestTests('src/main.ts', imports, 40)).toContain('test/main.test.ts');
});
