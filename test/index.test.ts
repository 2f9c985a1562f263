/** @file The package's rooms; the classes of configs: what fromJSON and --set know them by, and which they cannot build. */
import { readFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { globSync } from 'tinyglobby';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { nameOf } from '../src/hparams/fields/classNames.js';
import { type AbstractClass, Configurable } from '../src/hparams/index.js';
import * as luthier from '../src/index.js';
import { registerExports } from '../src/registry/index.js';

test('every class of configs has the name that it is exported by, but schedules that share theirs, and a name in documents of its own', () => {
  registerExports(luthier);
  const classes = Object.entries(luthier as Record<string, unknown>).filter(
    (entry): entry is [string, AbstractClass] =>
      typeof entry[1] === 'function' && entry[1].prototype instanceof Configurable,
  );
  expect(classes.length).toBeGreaterThan(50);
  const others = classes.filter(([name, cls]) => cls.name !== name);
  expect(others.map(([name, cls]) => [name, nameOf(cls)])).toEqual([
    ['ConstantSchedule', 'learners.Constant'],
    ['LinearSchedule', 'learners.Linear'],
    ['TransformerSchedule', 'learners.Transformer'],
  ]);
  expect(classes.filter((entry) => !others.includes(entry)).map(([, cls]) => nameOf(cls))).toEqual(
    classes.filter((entry) => !others.includes(entry)).map(([name]) => name),
  );
});

/** The name of what a class extends: `Base` of `extends Base` and of `extends Base.with(…)`. */
const extended = /\bclass (\w+)(?:<[^{]*?>)?\s+extends\s+(\w+)/g;

test('every abstract class of configs says so to files and flags, which cannot see the keyword', () => {
  const texts = globSync(['src/**/*.ts', 'experiments/**/*.ts']).map((file) => readFileSync(file, 'utf8'));
  const bases = new Map(
    texts.flatMap((text) => [...text.matchAll(extended)].map(([, name, base]) => [name!, base!] as const)),
  );
  const isOfConfigs = (name: string | undefined): boolean =>
    name === 'Configurable' || (name !== undefined && isOfConfigs(bases.get(name)));
  const found: string[] = [];
  const unmarked: string[] = [];
  const look = (node: ts.Node): void => {
    if (ts.isClassDeclaration(node) && isOfConfigs(node.name?.text)) {
      const isMarked = node.members.some((member) => member.name?.getText() === 'isAbstract');
      const isAbstract = node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AbstractKeyword) === true;
      if (isAbstract && node.name?.text !== 'Configurable')
        (isMarked ? found : unmarked).push(node.name!.text);
    }
    ts.forEachChild(node, look);
  };
  for (const text of texts.filter((text) => /\babstract class /.test(text))) {
    look(ts.createSourceFile('file.ts', text, ts.ScriptTarget.Latest, true));
  }
  expect(unmarked).toEqual([]);
  // Bases that are found through `with`, over several lines, and through another abstract class.
  expect(found).toEqual(expect.arrayContaining(['BaseLayer', 'BaseInput', 'BaseModel', 'RowInput']));
});

test('rooms are reached by sub-paths of the package', async () => {
  const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as { exports: Record<string, string> };
  const rooms = globSync('src/*/index.ts').map((file) => `./${file}`);
  const inner = ['./src/files/index.ts', './src/system/index.ts', './src/workers/index.ts'];
  expect(Object.values(exports).sort()).toEqual(
    ['./src/index.ts', ...rooms].filter((file) => !inner.includes(file)).sort(),
  );
  for (const [path, file] of Object.entries(exports)) {
    const found = fileURLToPath(import.meta.resolve(path.replace('.', 'luthier')));
    expect([path, found]).toEqual([path, fileURLToPath(new URL(`../${file}`, import.meta.url))]);
    expect(Object.keys(await import(pathToFileURL(found).href)), path).not.toEqual([]);
  }
});
