/** @file Modules that a source file loads when it runs. */
import { expect, test } from 'vitest';
import { parseSource } from '../../../src/registry/names/sourceFile.js';

const loadsIn = (text: string, file = 'a.ts') => {
  const { specifiers, unfollowed } = parseSource(file, text).loads;
  return [specifiers.map((each) => each.text), unfollowed.map(({ line, what }) => `${line} ${what}`)];
};

test('imports that are run, and not those of types', () => {
  const text = `
import { a } from './a.js';
import type { B } from './types.js';
import type from './type.js';
import c, { type D } from "./c.js";
import { type E } from './kept.js';
import './effects.js';
export * from './star.js';
export { e } from './e.js';
export type { F } from './types.js';
type G = import('./types.js').G;
import {
  long,
} from './long.js'; import { same } from './same.js';
import data from './data.json' with { type: 'json' };
const g = await import('./dynamic.js');
export const text = 'import "./text.js"'; // import './comment.js'
`;
  const loaded = ['a', 'type', 'c', 'kept', 'effects', 'star', 'e', 'long', 'same', 'data', 'dynamic'];
  expect(loadsIn(text)).toEqual([loaded.map((name) => `./${name}.${name === 'data' ? 'json' : 'js'}`), []]);
});

test.each([
  "import'./x.js'",
  "export*from'./x.js'",
  "import/* a */{a}/* b */from/* c */'./x.js'",
  "import // a\n'./x.js'",
  "await import(/* a */'./x.js')",
  'await import(`./x.js`)',
  "await import('./' + 'x' + '.js')",
  'await import(`./$' + '{"x"}.js`)',
  "import './\\x78.js'",
  "require('./x.js')",
  "import x = require('./x.js')",
  "const load = createRequire(import.meta.url);\nload('./x.js')",
  "createRequire(import.meta.url)('./x.js')",
  "require.resolve('./x.js')",
  "import.meta.resolve('./x.js')",
  "new Worker(new URL('x.js', import.meta.url))",
  "if (false) { void import('./x.js') }",
  '@decorate(() => import("./x.js")) class A {}',
])('a text loads what it names: %s', (text) => {
  expect(loadsIn(text)).toEqual([['./x.js'], []]);
});

test.each([
  ['await import(name)', 'imports a computed path'],
  ['await import(`./$' + '{name}.js`)', 'imports a computed path'],
  ['require(name)', 'imports a computed path'],
  ['const r = require;', 'imports a computed path'],
  ['import.meta.resolve(name)', 'imports a computed path'],
  ["createRequire(place)('./x.js')", 'imports from a computed place'],
  ['new Worker(file)', 'starts a thread'],
  ["import { fork } from 'node:child_process';", 'starts a process'],
  ['eval(text)', 'evaluates text'],
  ['(0, eval)(text)', 'evaluates text'],
  ["new Function('a', text)", 'evaluates text'],
  ["import vm from 'vm';", 'evaluates text'],
  ["process.getBuiltinModule('vm')", 'loads a module of Node by its name'],
  ["process.dlopen(module, 'x.node')", 'loads native code'],
])('a text that does not name what it loads is told: %s', (text, what) => {
  const [specifiers, unfollowed] = loadsIn(`\n${text}`);
  expect([(specifiers as string[]).includes('./x.js'), unfollowed]).toEqual([false, [`2 ${what}`]]);
});

test('JSX of another package is told', () => {
  expect(loadsIn('/** @jsxImportSource ./own */\nexport const a = <b />;', 'a.tsx')).toEqual([
    [],
    ['2 imports what its JSX asks for'],
  ]);
});

test('60,000 empty lines take no longer than they are long', () => {
  expect(loadsIn(`${'\n'.repeat(60_000)}import './x.js';`)).toEqual([['./x.js'], []]);
});
