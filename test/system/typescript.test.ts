/** @file TypeScript's translations: those that another user may have planted do not run, in any process or thread of ours. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';

const user = process.geteuid?.();
const path = (name: string) => fileURLToPath(new URL(`../../src/system/${name}`, import.meta.url));
/** Imports a module, and requires one in a thread, as the command and its workers do. */
const program = `
  import { Worker } from 'node:worker_threads';
  import { tmpdir } from 'node:os';
  const [ts, cts] = process.argv.slice(1);
  await import(ts);
  const begin = 'require(' + JSON.stringify(${JSON.stringify(path('typescript.cjs'))}) + ').registerRequires();';
  const worker = new Worker(begin + 'require(' + JSON.stringify(cts) + ')', { eval: true, execArgv: [] });
  await new Promise((resolve, reject) => worker.once('exit', resolve).once('error', reject));
  console.log(tmpdir(), process.env.TSX_DISABLE_CACHE ?? 'cached');
`;

/** A program of two modules, and folders for its temporary files and its caches. */
function setUp() {
  const root = temporaryDirectory();
  const [shared, cache] = [join(root, 'shared'), join(root, 'cache')];
  for (const folder of [shared, cache]) mkdirSync(folder, { mode: 0o700 });
  const modules = ['main', 'thread'].map((name) => {
    const file = join(root, `${name}.ts`);
    writeFileSync(file, `const said: string = 'mine: ${name}'; console.log(said);\n`);
    return file;
  });
  const [main, thread] = modules;
  const run = (...loader: string[]) => {
    const args = [...loader, '--input-type=module', '--eval', program, pathToFileURL(main!).href, thread!];
    const env = { ...process.env, TMPDIR: shared, TEMP: shared, XDG_CACHE_HOME: cache };
    return spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8', env });
  };
  return { shared, cache, run };
}

/** Replaces the code of every translation in a folder. */
function plant(folder: string): number {
  const names = readdirSync(folder);
  for (const name of names) {
    const file = join(folder, name);
    const translation = JSON.parse(readFileSync(file, 'utf8')) as { code: string };
    writeFileSync(
      file,
      JSON.stringify({ ...translation, code: translation.code.replace('mine', 'planted') }),
    );
  }
  return names.length;
}

longTest('what others planted in the temporary folder does not run', () => {
  const { shared, cache, run } = setUp();
  // tsx by itself makes the translations, and runs what is planted: the test plants what it would read.
  expect(run('--import', import.meta.resolve('tsx')).stdout).toContain('mine: main\n');
  expect(plant(join(shared, `tsx-${user}`))).toBeGreaterThan(0);
  expect(run('--import', import.meta.resolve('tsx')).stdout).toContain('planted: main\n');
  const ours = run('--import', pathToFileURL(path('typescript.js')).href);
  expect(ours).toMatchObject({ stderr: '', stdout: `mine: main\nmine: thread\n${shared} cached\n` });
  expect(readdirSync(join(cache, 'luthier/typescript', `tsx-${user}`)).length).toBeGreaterThanOrEqual(2);
});

test('a folder that is removed before tsx keeps something in it comes back for its owner alone', () => {
  const { cache, run } = setUp();
  const cleared = `data:text/javascript,import { rmSync } from 'node:fs'; rmSync('${cache}/luthier', { recursive: true });`;
  const { stderr } = run('--import', pathToFileURL(path('typescript.js')).href, '--import', cleared);
  expect(stderr).toBe('');
  for (const folder of ['luthier', 'luthier/typescript', `luthier/typescript/tsx-${user}`])
    expect([folder, statSync(join(cache, folder)).mode & 0o777]).toEqual([folder, 0o700]);
});

longTest('a cache that others can write to is not used', () => {
  const { cache, run } = setUp();
  const loader = ['--import', pathToFileURL(path('typescript.js')).href];
  run(...loader);
  expect(plant(join(cache, 'luthier/typescript', `tsx-${user}`))).toBeGreaterThan(0);
  // It is read where it is this user's alone.
  expect(run(...loader).stdout).toContain('planted: main\n');
  for (const folder of ['luthier/typescript', 'luthier', '.']) {
    chmodSync(join(cache, folder), 0o777);
    expect(run(...loader).stdout).toMatch(/^mine: main\nmine: thread\n.* cached\n$/);
    chmodSync(join(cache, folder), 0o700);
  }
  expect(existsSync(join(cache, 'luthier/typescript'))).toBe(true);
});
