/** @file Runs and type-checks generated modules. */
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

/** What the TypeScript compiler finds in `texts`, each a module of its own in one program. */
export function typeErrorsIn(name: string, texts: readonly string[]): string[] {
  mkdirSync(folder, { recursive: true });
  const directory = mkdtempSync(join(folder, `${name}-`));
  const files = texts.map((text, i) => {
    const file = join(directory, `generated${i}.ts`);
    writeFileSync(file, text);
    return file;
  });
  const found = typeErrors(files);
  rmSync(directory, { recursive: true });
  return found;
}

function typeErrors(files: readonly string[]): string[] {
  const { config } = ts.readConfigFile('tsconfig.json', ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, process.cwd());
  const program = ts.createProgram(files, options);
  return files.flatMap((file) => {
    const source = program.getSourceFile(file)!;
    const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
    return found.map(({ messageText, start }) => {
      const line = source.text.slice(0, start).split('\n').length;
      return `${line}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}\n${source.text}`;
    });
  });
}
