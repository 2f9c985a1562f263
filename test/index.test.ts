/** @file The package's rooms and its top index; names of the classes of configs, and which of these are abstract. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { globSync } from 'tinyglobby';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { nameOf } from '../src/hparams/fields/classNames.js';
import { type AbstractClass, Configurable, toJSON } from '../src/hparams/index.js';
import * as luthier from '../src/index.js';
import { Adam } from '../src/learners/index.js';
import { registerLibrary, rooms } from '../src/rooms.js';
import { commandEnvironment } from './loader.js';

test('every class of configs has the name that its room exports it by, and a name in documents of its own', () => {
  registerLibrary();
  const classes = Object.values(rooms)
    .flatMap((room) => Object.entries<unknown>(room))
    .filter(
      (entry): entry is [string, AbstractClass] =>
        typeof entry[1] === 'function' && entry[1].prototype instanceof Configurable,
    );
  expect(classes.length).toBeGreaterThan(50);
  expect(classes.filter(([name, cls]) => cls.name !== name)).toEqual([]);
  const namesInDocuments = classes.map(([, cls]) => nameOf(cls));
  expect(namesInDocuments.filter((name, i) => name !== classes[i]![0]).sort()).toEqual([
    'learners.Constant',
    'learners.Linear',
    'learners.Transformer',
  ]);
  expect(new Set(namesInDocuments).size).toBe(classes.length);
});

test('the top index has at most 100 names, each of which the guide imports and uses', () => {
  const index = ts.createSourceFile(
    'index.ts',
    readFileSync('src/index.ts', 'utf8'),
    ts.ScriptTarget.Latest,
    true,
  );
  const names = index.statements.flatMap((statement) => {
    const clause = ts.isExportDeclaration(statement) ? statement.exportClause : undefined;
    return clause !== undefined && ts.isNamedExports(clause)
      ? clause.elements.map(({ name }) => name.text)
      : [];
  });
  // Nothing is exported in another way.
  expect(names).toEqual(expect.arrayContaining(Object.keys(luthier)));
  expect(names.length).toBeLessThanOrEqual(100);
  const used = new Set(
    ['README.md', ...globSync('docs/guide/*.md')].flatMap((page) => {
      const blocks = readFileSync(page, 'utf8').matchAll(/^```ts.*\n([\s\S]*?)^```$/gm);
      const code = Array.from(blocks, ([, block]) => block!).join('');
      const imported = Array.from(code.matchAll(topImport), ([, list]) => list!.match(/\w+/g)!).flat();
      const others = new Set(code.replace(/^import [^;]*;$/gm, '').match(/\w+/g));
      return imported.filter((name) => others.has(name));
    }),
  );
  expect(names.filter((name) => !used.has(name))).toEqual([]);
});

/** What stands in the braces of an import from the top index. */
const topImport = /^import (?:type )?\{([^}]*)\} from '(?:luthier|\.\.\/src\/index\.js)';$/gm;

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
  const inner = [
    './src/collectives/index.ts',
    './src/files/index.ts',
    './src/system/index.ts',
    './src/workers/index.ts',
  ];
  // For `node --import luthier/typescript`.
  const { './typescript': loader, ...ofRooms } = exports;
  expect(loader).toBe('./src/system/typescript.js');
  expect(Object.values(ofRooms).sort()).toEqual(
    ['./src/index.ts', ...rooms].filter((file) => !inner.includes(file)).sort(),
  );
  for (const [path, file] of Object.entries(ofRooms)) {
    const found = fileURLToPath(import.meta.resolve(path.replace('.', 'luthier')));
    expect([path, found]).toEqual([path, fileURLToPath(new URL(`../${file}`, import.meta.url))]);
    expect(Object.keys(await import(pathToFileURL(found).href)), path).not.toEqual([]);
  }
});

test('documents name the classes of the library where the top index is imported', () => {
  const text = JSON.stringify(toJSON(Adam.config({ learningRate: 0.5 }), { modules: false }));
  const reads = (...imported: string[]) => {
    const lines = imported.map((path) => `await import(${JSON.stringify(path)});`).join('\n');
    const read = `const { fromJSON } = await import('./src/hparams/index.ts');
      console.log(fromJSON(${text}).learningRate);`;
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ['--input-type=module', '-e', `${lines}\n${read}`],
      { encoding: 'utf8', env: commandEnvironment() },
    );
    return stdout.trim() || stderr;
  };
  expect(reads('./src/index.ts')).toBe('0.5');
  expect(reads()).toContain("'Adam'");
});

test('a base name is of one file', () => {
  const named = new Map<string, string[]>();
  for (const file of globSync('src/**/*.ts').sort())
    if (basename(file) !== 'index.ts')
      named.set(basename(file), [...(named.get(basename(file)) ?? []), file]);
  expect([...named.values()].filter((files) => files.length > 1)).toEqual([]);
});

test('inputs load without TensorFlow.js, as the threads that read ahead do', () => {
  const program = (room: string) =>
    `await import('./src/${room}/index.ts'); console.log(globalThis._tfengine === undefined);`;
  const loads = (room: string) =>
    spawnSync(process.execPath, ['--input-type=module', '-e', program(room)], {
      encoding: 'utf8',
      env: commandEnvironment(),
    }).stdout;
  expect([loads('inputs'), loads('learners')]).toEqual(['true\n', 'false\n']);
});
