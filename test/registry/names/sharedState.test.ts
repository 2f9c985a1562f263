/** @file Code of a source file that changes what other modules see. */
import { expect, test } from 'vitest';
import { parseSource } from '../../../src/registry/names/sourceFile.js';

const changes = (text: string): boolean => parseSource('a.ts', text).changesOthers;

test.each([
  "import { Line } from './base.js';\nLine.prototype.scale = () => 2;",
  "import { Line } from './base.js';\nexport function install() { Line.defaults.rate = 2; }",
  "import * as base from 'luthier';\n(base.tf as any).relu = null;",
  'export function patch(cls: any) { cls.prototype.scale = () => 2; }',
  '(globalThis as any).RATE ??= 0.01;',
  "process.env.RATE = '1';",
  'process.env.COUNT++;',
  'delete process.env.RATE;',
  'Math.random = () => 0.5;',
  "process.loadEnvFile('.env');",
  "import { Line } from './base.js';\nObject.assign(Line.prototype, { scale: () => 2 });",
  'Object.defineProperty(globalThis, "RATE", { value: 2 });',
  "import { registry } from './registry.js';\nregistry.push(1);",
  "import { registry } from './registry.js';\nexport const add = (each: string) => registry.byName!.set(each, 1);",
  "import 'dotenv/config';",
])('changes others: %s', (text) => {
  expect(changes(text)).toBe(true);
});

test.each([
  "import { Adam } from 'luthier';\nconst task = { train: {} as any };\ntask.train.optimizer = Adam.config();",
  'class Own { static rate = 1; static { Own.rate = 2; } set(x: number) { (this as any).x = x; } }',
  "import { tf } from 'luthier';\nexport const sum = (a: any, b: any) => tf.add(a, b);",
  'export function edit(task: any) { task.train.seed = 3; Object.assign(task, { name: 1 }); }',
  'let made = 0;\nexport const next = () => made++;',
  'const list: number[] = [];\nlist.push(1);',
  "import './effects.js';",
  'module.exports = { rate: 1 };\nexports.other = 2;',
  "type Own = { prototype: number };\nconsole.log('loaded');",
])('changes its own alone: %s', (text) => {
  expect(changes(text)).toBe(false);
});
