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
    types: ['node'],
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

/** A folder with these files, the library and its packages. */
export function project(files: Readonly<Record<string, string>>): string {
  // The compiler knows files by their real paths.
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'luthier-rename-')));
  const packages = join(folder, 'node_modules');
  mkdirSync(join(packages, '@types'), { recursive: true });
  symlinkSync(root, join(packages, 'luthier'));
  for (const name of ['zod', 'typescript', '@types/node']) {
    symlinkSync(join(root, 'node_modules', name), join(packages, name));
  }
  write(folder, {
    'package.json': '{ "type": "module" }\n',
    'tsconfig.json': JSON.stringify(tsconfig),
    ...files,
  });
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
