/**
 * @file ONNX Runtime's Node.js binding as a part of the package. As a dependency its install script would run on the
 * machines of users, which fetches CUDA libraries from a host of its own, and no setting of a dependency keeps a package
 * manager from it.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { globSync } from 'tinyglobby';

/** Where the package has it. */
const target = 'dist/onnxruntime';
const binding = 'node_modules/onnxruntime-node';
const common = 'node_modules/onnxruntime-common/dist/cjs';
const binaries = `${binding}/bin/napi-v6`;

/**
 * Libraries of execution providers that no program here asks for (DirectML, WebGPU), which Windows loads when they are
 * asked for, and a second copy of macOS's library under the name that its binding does not load.
 */
const spare = ['**/DirectML.dll', '**/dxcompiler.dll', '**/dxil.dll', '**/libonnxruntime.*.*.dylib'];

/** What package.json's `imports` name in a clone, and in the package. */
export const imports = {
  '#onnxruntime': `./${target}/dist/index.js`,
  '#onnxruntime/package.json': `./${target}/package.json`,
};

/**
 * The platforms whose binaries are packed, as `linux/x64`: all that there are, or those that LUTHIER_PLATFORMS names.
 *
 * @throws where there are none for a name.
 */
function platformsOf(root: string, named = process.env.LUTHIER_PLATFORMS): string[] {
  const files = globSync('*/*/*.node', { cwd: join(root, binaries) });
  const known = files.map((file) => dirname(file)).sort();
  const asked = named?.split(/[\s,]+/).filter((name) => name !== '') ?? known;
  const unknown = asked.find((name) => !known.includes(name));
  if (unknown === undefined) return asked;
  throw new Error(`LUTHIER_PLATFORMS: expected some of ${known.join(', ')}, got '${unknown}'.`);
}

/** Files by their names in the package, with the names of those that they are copies of. */
function copies(root: string): Map<string, string> {
  const code = { cwd: root, ignore: '**/*.map' };
  const platforms = platformsOf(root).map((platform) => `${binaries}/${platform}/*`);
  const found = [
    ...globSync(`${binding}/dist/*.{js,d.ts}`, code),
    ...globSync(platforms, { cwd: root, ignore: spare }),
  ];
  return new Map([
    ...found.map((file): [string, string] => [file.replace(binding, target), file]),
    ...globSync([`${common}/*.{js,d.ts}`], code).map((file): [string, string] => [
      file.replace(common, `${target}/common`),
      file,
    ]),
  ]);
}

/** The files of the package that are ONNX Runtime's. */
export function onnxRuntimeFiles(root: string): string[] {
  return [...copies(root).keys(), `${target}/package.json`, `${target}/LICENSE`];
}

/** Writes them. */
export function writeOnnxRuntime(root: string): void {
  for (const [file, source] of copies(root)) {
    mkdirSync(join(root, dirname(file)), { recursive: true });
    if (/\/dist\/[^/]+\.(js|d\.ts)$/.test(file)) {
      const text = readFileSync(join(root, source), 'utf8');
      const own = text
        .replaceAll(/(["'])onnxruntime-common\1/g, '$1../common/index.js$1')
        .replaceAll(/^\/\/# sourceMappingURL=.*$/gm, '');
      writeFileSync(join(root, file), own);
    } else cpSync(join(root, source), join(root, file));
  }
  const { name, version, license, main, types } = JSON.parse(
    readFileSync(join(root, binding, 'package.json'), 'utf8'),
  );
  const manifest = { name, version, license, main, types, type: 'commonjs' };
  writeFileSync(join(root, target, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  writeFileSync(join(root, target, 'LICENSE'), mit);
}

/** The licence of ONNX Runtime, whose npm packages have no file of it. */
const mit = `MIT License

Copyright (c) Microsoft Corporation

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
`;
