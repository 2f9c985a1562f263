/**
 * @file The package that `npm pack` and `npm publish` make: JavaScript, declarations, C sources and ONNX Runtime in `dist`, and a
 * package.json made from the repository's, which names TypeScript sources. npm runs `prepack` before and `postpack` after.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { argv } from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { globSync } from 'tinyglobby';
import { imports, onnxRuntimeFiles, writeOnnxRuntime } from './onnxRuntime.js';

/** What this script reads of a package.json. */
interface Manifest {
  readonly [key: string]: unknown;
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

/** What only a clone has a use for. */
const ofClones = ['scripts', 'devDependencies', 'optionalDependencies', 'allowScripts'];

/** The repository's package.json while npm packs, from the root. */
const kept = 'out/package.json';

/** Where the build puts what stands in `file` of the repository. */
function built(file: string): string {
  return file.replace(/^(\.\/)?src\//, '$1dist/').replace(/\.ts$/, '.js');
}

function eachBuilt(files: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(files).map(([name, file]) => [name, built(file)]));
}

/** The package.json of the package, from that of the repository. */
export function publishedManifest(manifest: Manifest): Record<string, unknown> {
  const { optionalDependencies, peerDependencies } = manifest;
  const kept = Object.entries(manifest).filter(([key]) => !ofClones.includes(key));
  return {
    ...Object.fromEntries(kept),
    bin: eachBuilt(manifest.bin),
    exports: eachBuilt(manifest.exports),
    imports,
    // Optional dependencies are installed where they can be; these are large, and each project's own choice.
    peerDependencies: { ...peerDependencies, ...optionalDependencies },
    peerDependenciesMeta: Object.fromEntries(
      Object.keys(optionalDependencies).map((name) => [name, { optional: true }]),
    ),
  };
}

/** Files of the package besides package.json, from its root, by the sources that they are made from. */
export function packagedFiles(root: string): string[] {
  const sources = globSync('src/**/*.{ts,js,cjs,c,h,html}', { cwd: root, ignore: 'src/editor/**' });
  const files = sources.flatMap((source) => {
    const file = built(source);
    return /\.([ch]|html)$/.test(file) ? [file] : [file, file.replace(/\.(c?)js$/, '.d.$1ts')];
  });
  return ['LICENSE', 'README.md', ...files, ...onnxRuntimeFiles(root)].sort();
}

/** Writes `dist` anew. */
function build(root: string): void {
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  // The one that checks the types, which takes a quarter of the time of the other one.
  const compiler = join(root, 'node_modules/typescript-7/bin/tsc');
  execFileSync(process.execPath, [compiler, '--project', join(root, 'tsconfig.package.json')], {
    stdio: ['ignore', 2, 2],
  });
  for (const file of globSync('src/**/*.{c,h,html}', { cwd: root })) {
    const target = join(root, built(file));
    mkdirSync(dirname(target), { recursive: true });
    cpSync(join(root, file), target);
  }
  writeOnnxRuntime(root);
  chmodSync(join(root, 'dist/tools/luthier.js'), 0o755);
}

function prepack(root: string): void {
  build(root);
  const file = join(root, 'package.json');
  const text = readFileSync(file, 'utf8');
  mkdirSync(join(root, 'out'), { recursive: true });
  writeFileSync(join(root, kept), text);
  writeFileSync(file, `${JSON.stringify(publishedManifest(JSON.parse(text) as Manifest), null, 2)}\n`);
}

function postpack(root: string): void {
  renameSync(join(root, kept), join(root, 'package.json'));
}

const root = fileURLToPath(new URL('..', import.meta.url));
if (argv[1] !== undefined && import.meta.url === pathToFileURL(argv[1]).href) {
  if (argv[2] === 'prepack') prepack(root);
  else postpack(root);
}
