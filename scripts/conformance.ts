/**
 * @file Conformance: TensorFlow.js's own specs on the compiler's engines, against the same specs on its cpu backend.
 * `npm run conformance -- [--engine=onnx|native] [--files=PATTERN] [--part=K/N] [--failures] [--write]`
 */
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { globSync } from 'tinyglobby';
import { conformancePage, outdatedFailures, unlistedFailures } from './conformancePage.js';
import type { Compared, SpecResult } from './specResult.js';

const root = fileURLToPath(new URL('../', import.meta.url));
const core = join(root, 'node_modules/@tensorflow/tfjs-core/dist');

/** Files whose specs say nothing about a backend, by the reason. */
const NOT_OF_BACKENDS: Readonly<Record<string, RegExp>> = {
  "tfjs's engine, flags, registries and profiler":
    /^(engine|environment|flags|globals|kernel_registry|debug_mode|profiler)/,
  'files and formats of models': /^(io\/|serialization)/,
  'the platform: browsers, workers, Node': /^(platforms\/|device_util|browser_util|worker)/,
  'functions on numbers, shapes and strings, without tensors': /^(backends\/|hash_util|util|version|types)/,
  "the specs' own tools": /^(jasmine_util|test_util)/,
};

/** Files of specs, without `_test.js`. */
const specFiles = (): string[] =>
  globSync('**/*_test.js', { cwd: core })
    .map((file) => file.replace(/_test\.js$/, ''))
    .sort();

const isOfBackends = (file: string): boolean =>
  !Object.values(NOT_OF_BACKENDS).some((pattern) => pattern.test(file));

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

/** Runs the specs on tfjs's cpu backend and on the engines. */
export async function conform({ engines, files = /./, part = 0, parts = 1 }: Selection): Promise<Compared[]> {
  const chosen = specFiles().filter((file) => files.test(file) && isOfBackends(file));
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
      write: { type: 'boolean', default: false },
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
  const isWhole = values.files === '' && parts === 1;
  const told = [...unlistedFailures(results), ...(isWhole ? outdatedFailures(results, engines) : [])];
  if (told.length > 0) console.log(`\n${told.join('\n')}`);
  if (!values.write) return;
  if (!isWhole) throw new Error('--write makes the page of all specs: leave out --files and --part.');
  const excluded = Object.entries(NOT_OF_BACKENDS).map(
    ([reason, pattern]) => [reason, specFiles().filter((file) => pattern.test(file))] as const,
  );
  writeFileSync(
    join(root, 'docs/guide/conformance.md'),
    conformancePage(results, Object.fromEntries(excluded)),
  );
}

if (import.meta.url === pathToFileURL(process.argv[1]!).href) await main();
