/** @file Runs and type-checks generated modules. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import type { Modules } from '../../../src/hparams/codegen/imports.js';

/** What the module `text` exports, its imports taken from `modules`. */
export function evaluate(text: string, modules: Modules): Record<string, (...values: any[]) => any> {
  const js = ts.transpile(text, { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2023 });
  const exported = {};
  new Function('require', 'exports', js)((specifier: string) => modules[specifier], exported);
  return exported;
}

/** The folder of generated files; relative specifiers start from here. Git and the linter of the project ignore it. */
const folder = 'out/generated';

/** What the compiler finds in `texts`, each a module of its own in one program. */
export function typeErrorsIn(name: string, texts: readonly string[]): string[] {
  mkdirSync(folder, { recursive: true });
  const directory = mkdtempSync(join(folder, `${name}-`));
  const files = texts.map((text, i) => {
    writeFileSync(join(directory, `generated${i}.ts`), text);
    return `generated${i}.ts`;
  });
  const project = join(directory, 'tsconfig.json');
  writeFileSync(
    project,
    JSON.stringify({ extends: join(process.cwd(), 'tsconfig.json'), files, include: [] }),
  );
  // The compiler in JavaScript takes ten times as long.
  const compiler = join('node_modules', 'typescript-7', 'bin', 'tsc');
  const flags = ['--noEmit', '--pretty', 'false', '--project', project];
  const { stdout, stderr } = spawnSync(process.execPath, [compiler, ...flags], { encoding: 'utf8' });
  rmSync(directory, { recursive: true });
  return `${stdout}${stderr}`.split('\n').filter((line) => line !== '');
}
