/** @file Finding experiments in source text, without running it. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { scan, scanExperiments } from '../../../src/registry/names/discovery.js';

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

test('constants that a class declares by with and sets by preset', () => {
  const directory = project({
    'lm.ts': `
      import { Experiment } from 'luthier';
      export class Small extends Experiment.with({ a: z.int().describe('How many.') }).preset({
        a: 2,
      }) {}
      export class Smaller extends Small.preset({ a: 1 }) {
        override a = 3;
      }
    `,
  });
  const [small, smaller] = scanExperiments([directory]);
  expect(small!.constants).toEqual([
    { name: 'a', kind: 'declared', text: 'z.int()', description: 'How many.', line: 3 },
    { name: 'a', kind: 'set', text: '2', line: 4 },
  ]);
  expect(smaller!.base).toBe('Small');
  expect(smaller!.constants.map(({ kind, text }) => [kind, text])).toEqual([
    ['set', '1'],
    ['set', '3'],
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

test('the first directory wins; a missing one is empty', () => {
  const text = `import { Experiment } from 'luthier'; export class C extends Experiment {}`;
  const [first, second] = [project({ 'x.ts': text }), project({ 'x.ts': text, 'y.ts': text })];
  const found = scanExperiments([first, '/no/such/directory', second]);
  expect(found.map((e) => [e.name, dirname(e.file)])).toEqual([
    ['x.C', first],
    ['y.C', second],
  ]);
});

test('lines, base classes and own constants as they stand in the source', () => {
  const directory = project({
    'lm.ts': `import { z } from 'zod';
import * as luthier from 'luthier';
const size = z.int();

/** A family. */
export abstract class Family extends luthier.Experiment.with({
  size,
  depth: z.int().default(2).describe('How deep.'),
  'wide': z
    .int(),
}).with({ rate: z.number().describe(name) }) {
  static count = 1;
  #secret = 2;
}

export class Small extends Family {
  override depth = 4;
  override readonly rate = 1e-3 * 2;
  override size!: number;
  get more() {
    return 1;
  }
}
`,
    'again.ts': `export { Small as Again } from './lm.js';`,
  });
  const { experiments, problems } = scan([directory]);
  expect(problems).toEqual([]);
  expect(
    experiments.map(({ name, base, abstract, file, place }) => [name, base, abstract, file, place]),
  ).toEqual([
    [
      'again.Again',
      'Family',
      false,
      join(directory, 'again.ts'),
      { file: join(directory, 'lm.ts'), line: 16, lastLine: 23 },
    ],
    [
      'lm.Family',
      'luthier.Experiment',
      true,
      join(directory, 'lm.ts'),
      { file: join(directory, 'lm.ts'), line: 6, lastLine: 14 },
    ],
    [
      'lm.Small',
      'Family',
      false,
      join(directory, 'lm.ts'),
      { file: join(directory, 'lm.ts'), line: 16, lastLine: 23 },
    ],
  ]);
  expect(experiments[1]!.constants).toEqual([
    { name: 'size', kind: 'declared', text: 'size', line: 7 },
    { name: 'depth', kind: 'declared', text: 'z.int().default(2)', description: 'How deep.', line: 8 },
    { name: 'wide', kind: 'declared', text: 'z\n    .int()', line: 9 },
    { name: 'rate', kind: 'declared', text: 'z.number().describe(name)', line: 11 },
  ]);
  expect(experiments[2]!.constants).toEqual([
    { name: 'depth', kind: 'set', text: '4', line: 17 },
    { name: 'rate', kind: 'set', text: '1e-3 * 2', line: 18 },
  ]);
});

test('default exports, namespaces of files, and files that hand on all of another', () => {
  const directory = project({
    'base.ts': `import { Experiment } from 'luthier'; export abstract class Base extends Experiment {}`,
    'barrel.ts': `export * from './nothing.js'; export * from './base.js';`,
    'one.ts': `import { Base } from './barrel.js'; export default class One extends Base {}`,
    'two.ts': `import * as all from './barrel.js'; class Two extends all.Base {} export default Two;`,
    'three.ts': `import One from './one.js'; export class Three extends One {} export default class extends One {}`,
    'nothing.ts': `export * from './barrel.js';`,
  });
  expect(scanExperiments([directory]).map((e) => [e.name, e.exportName, e.base])).toEqual([
    ['one.default', 'default', 'Base'],
    ['three.Three', 'Three', 'One'],
    ['three.default', 'default', 'One'],
    ['two.default', 'default', 'all.Base'],
  ]);
});

test('files with syntax errors are reported with the first bad line', () => {
  const directory = project({
    'good.ts': `import { Experiment } from 'luthier'; export class C extends Experiment {}`,
    'half.ts': `import { C } from './good.js';\nexport class D extends C {}\nexport class E extends C { x = = 1; }`,
    'none.ts': 'export class extends {{{',
  });
  const { experiments, problems } = scan([directory]);
  expect(experiments.map((e) => e.name)).toEqual(['good.C', 'half.D', 'half.E']);
  expect(problems).toEqual([
    { file: join(directory, 'half.ts'), line: 3, message: 'Expression expected.' },
    { file: join(directory, 'none.ts'), line: 1, message: expect.any(String) },
  ]);
});

const families = {
  'base.ts': `import { Experiment } from 'luthier';
    export abstract class Family extends Experiment.with({ width: 1 }) { task() {} }
    export class Small extends Family {}`,
  'lib.ts': `export function withDropout(Base, rate) { return class extends Base {}; }
    export const mixins = { one: withDropout };`,
};

test('constants that hold classes, by what they are made from', () => {
  const directory = project({
    ...families,
    'lm.ts': `import { Experiment, ParameterizedExperiment } from 'luthier';
      import { Family, Small } from './base.js';
      /** Wider. */
      export const Wide = Small.preset({
        width: 2,
      });
      export const Same = Small, Expression = class extends Small { override width = 3; };
      export const Frame = Experiment.with({}), More = Family.with({ depth: 1 }), Deep = (Small as any).with({ depth: 1 });
      export const Narrow = Family.preset({ width: 1 });
      export const Configs = ParameterizedExperiment.of({ task });
      export class Plain extends ParameterizedExperiment.of({ task }) {}
      export class Sized extends Family.sized(3) {}
      export default Small.preset({ width: 4 });`,
    'all.ts': `export * from './base.js';`,
  });
  const { experiments, unclassified } = scan([directory]);
  expect(unclassified).toEqual([]);
  expect(
    experiments.map(({ name, base, abstract }) => `${name} ${base}${abstract ? ' abstract' : ''}`),
  ).toEqual([
    'all.Family Experiment abstract',
    'all.Small Family',
    'base.Family Experiment abstract',
    'base.Small Family',
    'lm.Configs ParameterizedExperiment',
    'lm.Deep Small',
    'lm.Expression Small',
    'lm.Frame Experiment abstract',
    'lm.More Family abstract',
    'lm.Narrow Family',
    'lm.Plain ParameterizedExperiment',
    'lm.Same Family',
    'lm.Sized Family.sized',
    'lm.Wide Small',
    'lm.default Small',
  ]);
  expect(experiments.find(({ name }) => name === 'lm.Wide')).toMatchObject({
    description: 'Wider.',
    place: { file: join(directory, 'lm.ts'), line: 4, lastLine: 6 },
    declared: 'Wide',
    constants: [{ name: 'width', kind: 'set', text: '2', line: 5 }],
  });
});

test('exports that only their values can tell, and no others', () => {
  const directory = project({
    ...families,
    'lm.ts': `import { configurable, Linear } from 'luthier';
      import { z } from 'zod';
      import { Foreign } from 'elsewhere';
      import { Family, Small } from './base.js';
      import { Gone } from './gone.js';
      import { mixins, withDropout } from './lib.js';
      /** With dropout. */
      export class Mixed extends withDropout(Small, 0.1) {}
      export class Below extends Mixed {}
      export abstract class Frame extends withDropout(Family, 0.1) {}
      export class Method extends mixins.one(Small) {}
      export class Packaged extends Foreign {}
      export class Lost extends Gone {}
      export const made = withDropout(Small,
        0.2), [first, { second }] = list();
      export const chosen = flag ? Small : Family, frozen = Object.freeze(Small), text = Small.name;
      export { Foreign as Other };
      export let later;
      export default withDropout(Small, 0.3);
      export const rate = 3 + 4, sizes = { small: 1 }, rows = [Small], make = () => Small, id = \`x\`, seen = new Map();
      export const schema = z.object({}), layer = Linear.config({}), order = configurable(() => 1, {});
      export const home = process.env.HOME ?? '.', keys = Object.keys(sizes), count: number = list(), frozenSizes = Object.freeze({});
      class Layer extends Linear.with({}) {}
      export const own = Layer.config({});
      export { Layer };
      export function list() {}
      export enum Kind { one }
      export type { Tensor } from '@tensorflow/tfjs-core';`,
    'handed.ts': `export { Mixed as Handed } from './lm.js';`,
    'open.ts': `export * from 'elsewhere';`,
    'closed.ts': `export * from 'luthier';`,
    'old.js': `module.exports = { Small };`,
  });
  const { experiments, unclassified } = scan([directory]);
  expect(experiments.map(({ name }) => name)).toEqual(['base.Family', 'base.Small']);
  expect(unclassified.map(({ name, place, text }) => `${name}:${place.line} ${text}`.trim())).toEqual([
    'handed.Handed:8 withDropout(Small, 0.1)',
    'lm.Below:9 Mixed',
    'lm.Lost:13 Gone',
    'lm.Method:11 mixins.one(Small)',
    'lm.Mixed:8 withDropout(Small, 0.1)',
    'lm.Other:17',
    'lm.Packaged:12 Foreign',
    'lm.chosen:16 flag ? Small : Family',
    'lm.default:19 withDropout(Small, 0.3)',
    'lm.first:15 list()',
    'lm.frozen:16 Object.freeze(Small)',
    'lm.later:18 later',
    'lm.made:14 withDropout(Small, 0.2)',
    'lm.second:15 list()',
    'lm.text:16',
    'old.*:1',
    'open.*:1',
  ]);
  expect(unclassified[0]).toMatchObject({ description: 'With dropout.', declared: 'Mixed' });
});
