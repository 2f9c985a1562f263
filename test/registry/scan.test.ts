/** @file Finding experiments in source text, without running it. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { scanExperiments } from '../../src/registry/scan.js';

function project(files: Record<string, string>): string {
  const directory = mkdtempSync(join(tmpdir(), 'luthier-scan-'));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), text);
  }
  return directory;
}

test('exported, concrete descendants of Experiment, across files, with their descriptions', () => {
  const directory = project({
    'base.ts': `
      import { Experiment } from 'luthier';
      throw new Error('scanning runs no code');
      export abstract class Family extends Experiment.with({ a: 1 }) {}
      export class Other extends Map {}
      class Hidden extends Family {}
    `,
    'lm.ts': `
      import { Family as Base } from './base.js';
      /**
       * A small one.
       *
       * More about it.
       */
      export class Small extends Base.with({ b: 2 }).with({}) {}
      export class Smaller extends Small {}
      class Late extends Smaller {}
      export { Late as Renamed };
    `,
    'deep/er/vision.mts': `export { Small as Again } from '../../lm.js';`,
    'types.d.ts': 'export class Declared extends Experiment {}',
    'lm.test.ts': 'export class Tested extends Experiment {}',
  });
  const found = scanExperiments([directory]);
  expect(found.map((e) => [e.name, e.description])).toEqual([
    ['deep.er.vision.Again', 'A small one.'],
    ['lm.Renamed', ''],
    ['lm.Small', 'A small one.'],
    ['lm.Smaller', ''],
  ]);
});

test('a cycle of classes and a file with syntax errors do no harm', () => {
  const directory = project({
    'a.ts': `import { B } from './b.js'; export class A extends B {}`,
    'b.ts': `import { A } from './a.js'; export class B extends A {}`,
    'broken.ts': 'export class extends {{{',
    'good.ts': `import { Experiment } from 'luthier'; export class C extends Experiment {}`,
  });
  expect(scanExperiments([directory]).map((e) => e.name)).toEqual(['good.C']);
});

test('the first directory wins, a missing one is empty', () => {
  const text = `import { Experiment } from 'luthier'; export class C extends Experiment {}`;
  const [first, second] = [project({ 'x.ts': text }), project({ 'x.ts': text, 'y.ts': text })];
  const found = scanExperiments([first, '/no/such/directory', second]);
  expect(found.map((e) => [e.name, dirname(e.file)])).toEqual([
    ['x.C', first],
    ['y.C', second],
  ]);
});
