/** @file Projects of the tests' own, in temporary folders, that use this library as a package. */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../', import.meta.url));

const tsconfig = {
  compilerOptions: {
    target: 'ES2023',
    lib: ['ES2023'],
    types: [],
    module: 'NodeNext',
    moduleResolution: 'NodeNext',
    strict: true,
    noUncheckedIndexedAccess: true,
    noImplicitOverride: true,
    skipLibCheck: true,
    noEmit: true,
  },
  include: ['src', 'experiments', 'test'],
};

/** A package of the library's configs alone: the compiler takes half of the time that it takes with all of the library. */
const configsAlone = JSON.stringify({
  name: 'luthier',
  type: 'module',
  exports: { '.': './src/hparams/index.ts', './hparams': './src/hparams/index.ts' },
});

/** A folder with these files, and the library's configs as a package. */
export function project(files: Readonly<Record<string, string>>): string {
  return folderOf({ 'node_modules/luthier/package.json': configsAlone, ...files }, (packages) =>
    symlinkSync(join(root, 'src'), join(packages, 'luthier/src')),
  );
}

/** A folder with these files, and the library as a package. */
export function experimentProject(files: Readonly<Record<string, string>>): string {
  return folderOf(files, (packages) => symlinkSync(root, join(packages, 'luthier')));
}

/** A folder with these files, packages of one file each that are linked, and the least of the language's library. */
export function bareProject(
  files: Readonly<Record<string, string>>,
  packages: Readonly<Record<string, string>>,
): string {
  const parent = realpathSync(mkdtempSync(join(tmpdir(), 'luthier-rename-')));
  const folder = join(parent, 'project');
  const compilerOptions = { ...tsconfig.compilerOptions, lib: ['ES5'] };
  write(folder, {
    'package.json': '{ "type": "module" }\n',
    'tsconfig.json': JSON.stringify({ ...tsconfig, compilerOptions }),
    ...files,
  });
  mkdirSync(join(folder, 'node_modules'));
  for (const [name, text] of Object.entries(packages)) {
    write(parent, { [`${name}/package.json`]: '{ "exports": "./index.ts" }', [`${name}/index.ts`]: text });
    symlinkSync(`../../${name}`, join(folder, 'node_modules', name));
  }
  return folder;
}

function folderOf(files: Readonly<Record<string, string>>, link: (packages: string) => void): string {
  // The compiler knows files by their real paths.
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'luthier-rename-')));
  const packages = join(folder, 'node_modules');
  mkdirSync(packages, { recursive: true });
  for (const name of ['zod', 'typescript']) {
    symlinkSync(join(root, 'node_modules', name), join(packages, name));
  }
  write(folder, {
    'package.json': '{ "type": "module" }\n',
    'tsconfig.json': JSON.stringify(tsconfig),
    ...files,
  });
  link(packages);
  return folder;
}

export function write(folder: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

export function read(folder: string, name: string): string {
  return readFileSync(join(folder, name), 'utf8');
}
