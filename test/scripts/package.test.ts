/** @file The package that npm makes of the repository: its package.json, and the files that it holds. */
import { readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
import { globSync } from 'tinyglobby';
import ts from 'typescript';
import { expect, test, vi } from 'vitest';
import { packagedFiles, publishedManifest } from '../../scripts/package.js';

const manifest = JSON.parse(readFileSync('package.json', 'utf8'));
const published = publishedManifest(manifest) as Record<string, Record<string, unknown>>;

test('the package.json of the package is that of the repository without what only a clone uses', () => {
  const { bin, exports, imports, peerDependencies, peerDependenciesMeta, ...same } = published;
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
  expect(Object.keys(imports!)).toEqual(Object.keys(manifest.imports));
  // A second zod would take the schemas of the first for strangers'.
  expect(peerDependencies).toEqual({ zod: '^4.6.7', '@tensorflow/tfjs-node-gpu': '4.22.0' });
  expect(peerDependenciesMeta).toEqual({ '@tensorflow/tfjs-node-gpu': { optional: true } });
});

test('the package holds JavaScript, declarations, C and a page, and what its package.json names', () => {
  const [files, page] = [packagedFiles('.'), 'dist/trained/server/chatPage.html'];
  const strangers = files
    .filter((file) => !file.startsWith('dist/onnxruntime/') && file !== page)
    .filter((file) => !/^dist\/(?!editor\/).*(\.d\.c?ts|\.c?js|\.[ch])$|^(LICENSE|README\.md)$/.test(file));
  expect(strangers).toEqual([]);
  const named = [...Object.values(published.exports!), ...Object.values(published.bin!)];
  for (const file of named.map((name) => String(name).replace('./', ''))) {
    expect(files).toContain(file);
    expect(files).toContain(file.replace(/\.js$/, '.d.ts'));
  }
  expect(files).toContain(page);
  expect(files).toContain('dist/compiler/native/runtime/luthier.h');
  expect(files).toContain('dist/compiler/native/runtime/gemmProducts.c');
  expect(new Set(files).size).toBe(files.length);
});

test('the package holds ONNX Runtime for all platforms that it is built for, or for those that are named', () => {
  const binaries = () => packagedFiles('.').filter((file) => /^dist\/onnxruntime\/bin\//.test(file));
  for (const file of Object.values(published.imports!))
    expect(packagedFiles('.')).toContain(String(file).slice(2));
  const libraries = [
    ...[
      'darwin/arm64/libonnxruntime.1.dylib',
      'linux/arm64/libonnxruntime.so.1',
      'linux/x64/libonnxruntime.so.1',
    ],
    ...['win32/arm64/onnxruntime.dll', 'win32/x64/onnxruntime.dll'],
  ];
  const all = libraries.flatMap((file) => [file, join(dirname(file), 'onnxruntime_binding.node')]);
  expect(binaries()).toEqual(all.map((file) => `dist/onnxruntime/bin/napi-v6/${file}`).sort());
  vi.stubEnv('LUTHIER_PLATFORMS', 'linux/x64');
  expect(binaries()).toEqual([
    'dist/onnxruntime/bin/napi-v6/linux/x64/libonnxruntime.so.1',
    'dist/onnxruntime/bin/napi-v6/linux/x64/onnxruntime_binding.node',
  ]);
  vi.stubEnv('LUTHIER_PLATFORMS', 'linux/x46');
  expect(binaries).toThrow(
    "LUTHIER_PLATFORMS: expected some of darwin/arm64, linux/arm64, linux/x64, win32/arm64, win32/x64, got 'linux/x46'.",
  );
  vi.unstubAllEnvs();
});

test('packages that users get have no install scripts but those that need no host', () => {
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
    readonly packages: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  };
  const scripted = Object.entries(packages).filter(([, each]) => each.hasInstallScript && !each.dev);
  expect(scripted.map(([path]) => path).sort()).toEqual([
    // A peer that no package manager installs by itself.
    'node_modules/@tensorflow/tfjs-node-gpu',
    // Prints a line.
    'node_modules/core-js',
    // Check that a package of the registry has come with their binary.
    'node_modules/esbuild',
    'node_modules/koffi',
  ]);
});

test('sources import only packages that users get', () => {
  const { dependencies, peerDependencies } = published as Record<string, Record<string, string>>;
  const given = new Set(['luthier', ...Object.keys({ ...dependencies, ...peerDependencies })]);
  const sources = globSync('src/**/*.{ts,js,cjs}', { ignore: 'src/editor/**' });
  const imported = sources.flatMap((file) =>
    ts
      .preProcessFile(readFileSync(file, 'utf8'))
      .importedFiles.map(({ fileName }) => fileName)
      .filter((name) => /^[@a-z]/.test(name) && !isBuiltin(name))
      .map((name) => name.split('/', name.startsWith('@') ? 2 : 1).join('/')),
  );
  expect(imported).toContain('zod');
  expect([...new Set(imported)].filter((name) => !given.has(name))).toEqual([]);
});
