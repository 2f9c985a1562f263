/** @file Slices of code: what of changed files a class may run, and what it may not. */
import { realpathSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CodeSlices } from '../../../src/review/changes/codeSlices.js';
import { Sources } from '../../../src/review/versions/sources.js';
import { temporaryDirectory } from '../../command.js';
import { writeFiles } from '../../tools/scratch.js';

const base = {
  'lib/schedules.ts': `import { half } from './numbers.js';
import * as more from './more.js';
import type { Step } from './types.js';
import './effects.js';

/** A slow descent. */
export class Slow extends Base {
  valueAt(step: Step): number {
    return half(step) + more.third(step);
  }
}
export class Other extends Base {
  valueAt(): number {
    return 1;
  }
}
`,
  'lib/numbers.ts': `export const unused = 1;
const [two, ten] = [2, 10];
export function half(step: number): number {
  return step / two;
}
`,
  'lib/more.ts': "export * from './thirds.js';\n",
  'lib/thirds.ts': 'export const third = (step: number): number => step / 3;\n',
  'lib/effects.ts': 'globalThis.loaded = 1;\n',
  'lib/types.ts': 'export type Step = number;\n',
  'lib/handed.ts': "export { Slow as Handed } from './schedules.js';\nexport default class Own {}\n",
  'lib/mixed.ts': 'const make = () => class Made { value = 1; };\nexport const Mixed = make();\n',
};

/** The slice of a class with a file's text in the place of another one, all files changed. */
function slice(
  file: string,
  name: string,
  edits: Readonly<Record<string, readonly [string, string]>> = {},
): string {
  const root = realpathSync(temporaryDirectory());
  const files = Object.fromEntries(
    Object.entries(base).map(([path, text]) => {
      const [old, now] = edits[path] ?? ['', ''];
      expect(text).toContain(old);
      return [path, text.replace(old, now)];
    }),
  );
  writeFiles(root, { 'package.json': '{ "type": "module" }', ...files });
  const changed = new Set(Object.keys(base));
  const slices = new CodeSlices(
    new Sources({ root, project: root, library: root }, changed),
    changed,
    '/home',
  );
  return slices.textOf([{ name, file: `/home/${file}` }]);
}

const slow = (edits: Parameters<typeof slice>[2] = {}): string => slice('lib/schedules.ts', 'Slow', edits);

test.each<[string, Parameters<typeof slice>[2]]>([
  ['itself', { 'lib/schedules.ts': ['half(step) +', 'half(step) -'] }],
  ['a function that it calls', { 'lib/numbers.ts': ['step / two', 'two / step'] }],
  ['a constant of that, among several', { 'lib/numbers.ts': ['[2, 10]', '[2, 11]'] }],
  ['a function of a namespace, behind a star', { 'lib/thirds.ts': ['/ 3', '/ 4'] }],
  ['a module that is loaded for what it does', { 'lib/effects.ts': ['= 1', '= 2'] }],
])('a class may run %s', (_, edits) => {
  expect(slow(edits)).not.toBe(slow());
});

test.each<[string, Parameters<typeof slice>[2]]>([
  ['comments', { 'lib/schedules.ts': ['/** A slow', '/** A steep'] }],
  ['another class', { 'lib/schedules.ts': ['return 1', 'return 2'] }],
  ['what nobody uses', { 'lib/numbers.ts': ['unused = 1', 'unused = 2'] }],
  ['types', { 'lib/types.ts': ['= number', '= 1 | 2'] }],
  ['types of its own', { 'lib/numbers.ts': ['(step: number): number', '(step: 1 | 2): any'] }],
])('it does not run %s', (_, edits) => {
  expect(slow(edits)).toBe(slow());
});

test('a class by another name, by default, and by an expression', () => {
  const edited: Parameters<typeof slice>[2] = { 'lib/schedules.ts': ['half(step) +', 'half(step) -'] };
  expect(slice('lib/handed.ts', 'Handed', edited)).not.toBe(slice('lib/handed.ts', 'Handed'));
  expect(slice('lib/handed.ts', 'default')).toContain('class Own');
  // Made of the whole file, as the name is none of its own.
  expect(slice('lib/mixed.ts', 'Made', { 'lib/mixed.ts': ['value = 1', 'value = 2'] })).not.toBe(
    slice('lib/mixed.ts', 'Made'),
  );
});
