/**
 * @file Conformance: TensorFlow.js's own specs on the compiler's engines, against the same specs on its cpu backend.
 * `npm run conformance -- [--engine=onnx|native] [--files=PATTERN] [--part=K/N] [--failures]`
 */
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { globSync } from 'tinyglobby';

/** How one spec came out. */
export interface SpecResult {
  /** Its file in tfjs-core/dist, without `_test.js`. */
  readonly file: string;
  readonly name: string;
  /** The first line of what failed; absent where it passed. */
  readonly error?: string;
}

const root = fileURLToPath(new URL('../', import.meta.url));
const core = join(root, 'node_modules/@tensorflow/tfjs-core/dist');

/** Specs that say nothing about a backend: of tfjs's engine, registries, flags, files and browsers. */
const NOT_OF_BACKENDS =
  /^(io\/|platforms\/|backends\/|engine|environment|flags|globals|kernel_registry|jasmine_util|debug_mode|profiler|device_util|browser_util|hash_util|test_util|util|version|types|serialization|worker)/;

/** Bundles the specs of some files, since their imports have no extensions; each file is a suite named after it. */
async function bundleSpecs(files: readonly string[], outfile: string): Promise<void> {
  const suites = files.map(
    (file) =>
      `describe(${JSON.stringify(file)}, () => { require('./${file}_test.js'); xit('none for this backend'); });`,
  );
  const contents = [
    "require('./public/chained_ops/register_all_chained_ops.js');",
    "require('./jasmine_util.js').setTestEnvs([{ name: 'luthier', backendName: globalThis.specBackend, isDataSync: false }]);",
    ...suites,
  ].join('\n');
  await build({
    stdin: { contents, resolveDir: core, loader: 'js' },
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    external: ['jasmine-core'],
    logLevel: 'error',
  });
}

/** What to run of a bundle, in one process. */
export interface Share {
  readonly bundle: string;
  readonly engine: string;
  /** Where its results are written. */
  readonly report: string;
  /** The part of the specs, from 0, of so many. */
  readonly part: number;
  readonly parts: number;
  /** The slice of that part, from 0, of so many. */
  readonly slice: number;
  readonly slices: number;
}

/** Runs a share of the bundled specs in a process of its own. */
function runShare(share: Share): Promise<SpecResult[]> {
  const script = fileURLToPath(new URL('runSpecs.ts', import.meta.url));
  const env = { ...process.env, XDG_CACHE_HOME: join(root, 'out/cache') };
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--import', 'tsx', script, JSON.stringify(share)], {
      cwd: root,
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    child.on('error', reject);
    child.on('exit', (code, signal) => {
      if (code === 0) resolve(JSON.parse(readFileSync(share.report, 'utf8')));
      else reject(new Error(`The specs on ${share.engine} ended with exit code ${code ?? signal}.`));
    });
  });
}

/** Processes at a time; each takes up to 500 MB. */
const processes = Math.min(2, availableParallelism());

/** Runs the bundled specs on an engine. */
async function runSpecs(bundle: string, engine: string, part: number, parts: number): Promise<SpecResult[]> {
  const slices = Array.from({ length: processes }, (_, slice) => {
    const report = join(root, `out/conformance/${engine}-${slice}.json`);
    return runShare({ bundle, engine, report, part, parts, slice, slices: processes });
  });
  return (await Promise.all(slices)).flat().sort((a, b) => (a.file < b.file ? -1 : Number(a.file > b.file)));
}

/** What to run. */
export interface Selection {
  readonly engines: readonly ('onnx' | 'native')[];
  /** Files of specs, such as `ops/conv3d`. */
  readonly files?: RegExp;
  readonly part?: number;
  readonly parts?: number;
}

/** A spec that passes on the cpu backend, and its result on an engine. */
export interface Compared extends SpecResult {
  readonly engine: string;
}

/** Runs the specs on tfjs's cpu backend and on the engines. */
export async function conform({ engines, files = /./, part = 0, parts = 1 }: Selection): Promise<Compared[]> {
  const all = globSync('**/*_test.js', { cwd: core }).map((file) => file.replace(/_test\.js$/, ''));
  const chosen = all.filter((file) => files.test(file) && !NOT_OF_BACKENDS.test(file)).sort();
  const bundle = join(root, 'out/conformance/specs.cjs');
  mkdirSync(join(root, 'out/conformance'), { recursive: true });
  await bundleSpecs(chosen, bundle);
  const key = ({ file, name }: SpecResult): string => `${file} ${name}`;
  const base = await runSpecs(bundle, 'cpu', part, parts);
  const passing = new Set(base.filter(({ error }) => error === undefined).map(key));
  const compared: Compared[] = [];
  for (const engine of engines) {
    const results = new Map(
      (await runSpecs(bundle, engine, part, parts)).map((result) => [key(result), result]),
    );
    for (const result of base) {
      if (!passing.has(key(result))) continue;
      const { file, name } = result;
      compared.push({ ...(results.get(key(result)) ?? { file, name, error: 'did not run' }), engine });
    }
  }
  return compared;
}

/** Passed and all specs by file, worst files first. */
function summary(results: readonly Compared[]): string {
  const files = new Map<string, Compared[]>();
  for (const result of results) files.set(result.file, [...(files.get(result.file) ?? []), result]);
  const passed = (some: readonly Compared[]): number =>
    some.filter(({ error }) => error === undefined).length;
  const lines = [...files]
    .filter(([, some]) => passed(some) < some.length)
    .sort(([, a], [, b]) => b.length - passed(b) - (a.length - passed(a)))
    .map(([file, some]) => `${String(passed(some)).padStart(5)} of ${String(some.length).padEnd(5)} ${file}`);
  const share = ((100 * passed(results)) / results.length).toFixed(1);
  return [...lines, `${passed(results)} of ${results.length} specs that pass on cpu pass (${share} %)`].join(
    '\n',
  );
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      engine: { type: 'string', multiple: true, default: ['onnx', 'native'] },
      files: { type: 'string', default: '' },
      part: { type: 'string', default: '1/1' },
      failures: { type: 'boolean', default: false },
    },
  });
  const [part, parts] = values.part.split('/').map(Number) as [number, number];
  const engines = values.engine as ('onnx' | 'native')[];
  const results = await conform({ engines, files: new RegExp(values.files), part: part - 1, parts });
  for (const engine of engines) {
    const own = results.filter((result) => result.engine === engine);
    console.log(`\n${engine}\n${summary(own)}`);
    if (values.failures)
      for (const { file, name, error } of own) if (error) console.log(`${file}: ${name}\n    ${error}`);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]!).href) await main();
