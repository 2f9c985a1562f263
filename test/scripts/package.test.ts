/** @file The package that npm makes of the repository: its package.json, and the files that it holds. */
import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { globSync } from 'tinyglobby';
import { expect, test } from 'vitest';
import { packagedFiles, publishedManifest } from '../../scripts/package.js';
import { importsIn } from '../../src/tools/diff/sources.js';

const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
const published = publishedManifest(manifest) as Record<string, Record<string, unknown>>;

test('the package.json of the package is that of the repository without what only a clone uses', () => {
  const { bin, exports, peerDependencies, peerDependenciesMeta, ...same } = published;
  expect(same).toEqual({
    name: 'luthier',
    version: manifest.version,
    description: manifest.description,
    license: 'Apache-2.0',
    type: 'module',
    engines: { node: '>=20.19' },
    files: ['dist'],
    dependencies: manifest.dependencies,
  });
  expect(bin).toEqual({ luthier: 'dist/tools/luthier.js' });
  expect(exports).toMatchObject({
    '.': './dist/index.js',
    './layers': './dist/layers/index.js',
    './typescript': './dist/system/typescript.js',
  });
  expect(Object.keys(exports!)).toEqual(Object.keys(manifest.exports));
  // A second zod would take the schemas of the first for strangers'.
  expect(peerDependencies).toEqual({ zod: '^4.6.7', '@tensorflow/tfjs-node-gpu': '4.22.0' });
  expect(peerDependenciesMeta).toEqual({ '@tensorflow/tfjs-node-gpu': { optional: true } });
});

test('the package holds JavaScript, declarations and C, and what its package.json names', () => {
  const files = packagedFiles('.');
  const strangers = files.filter(
    (file) => !/^dist\/(?!editor\/).*(\.d\.c?ts|\.c?js|\.[ch])$|^(LICENSE|README\.md)$/.test(file),
  );
  expect(strangers).toEqual([]);
  const named = [...Object.values(published.exports!), ...Object.values(published.bin!)];
  for (const file of named.map((name) => String(name).replace('./', ''))) {
    expect(files).toContain(file);
    expect(files).toContain(file.replace(/\.js$/, '.d.ts'));
  }
  expect(files).toContain('dist/compiler/native/runtime/luthier.h');
  expect(files).toContain('dist/compiler/native/runtime/gemmProducts.c');
  expect(new Set(files).size).toBe(files.length);
});

test('sources import only packages that users get', () => {
  const { dependencies, peerDependencies } = published as Record<string, Record<string, string>>;
  const given = new Set(['luthier', ...Object.keys({ ...dependencies, ...peerDependencies })]);
  const sources = globSync('src/**/*.{ts,js,cjs}', { ignore: 'src/editor/**' });
  const imported = sources.flatMap((file) =>
    importsIn(readFileSync(file, 'utf8'))
      .filter((name) => /^[@a-z]/.test(name) && !isBuiltin(name))
      .map((name) => name.split('/', name.startsWith('@') ? 2 : 1).join('/')),
  );
  expect(imported).toContain('zod');
  expect([...new Set(imported)].filter((name) => !given.has(name))).toEqual([]);
});
