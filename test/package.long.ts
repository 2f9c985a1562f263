/**
 * @file The package as users install it: `npm pack`, an install in an empty folder by each package manager that is here,
 * which reaches the registry alone, `luthier init`, and what the guide does with such a project.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { packagedFiles } from '../scripts/package.js';
import { isShort } from './faults/campaign.js';
import { writeManyFiles } from './fixtures/manyFiles/index.js';
import { isHere, node18, type PackageManager, packageManagers } from './packageManagers.js';
import { registryAlone } from './registry.js';
import { writeFiles } from './tools/scratch.js';
import { UserProject, usersEnvironment } from './userProject.js';

const [npm, ...others] = packageManagers;
const repository = fileURLToPath(new URL('..', import.meta.url));
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'luthier-package-')));
const [clone, project] = [join(folder, 'clone'), join(folder, 'project')];
afterAll(() => rmSync(folder, { recursive: true }));

const user = new UserProject(project);
const { luthier, read } = { luthier: user.luthier.bind(user), read: user.read.bind(user) };
const run = user.run.bind(user);
const succeed = user.succeed.bind(user);
const git = (...args: readonly string[]): Promise<string> =>
  succeed('git', '-c', 'user.name=A', '-c', 'user.email=a@example.org', ...args);
let tarball: string;

beforeAll(async () => {
  for (const name of [
    'src',
    'scripts',
    'package.json',
    'LICENSE',
    'README.md',
    'tsconfig.json',
    'tsconfig.package.json',
  ])
    cpSync(join(repository, name), join(clone, name), { recursive: true });
  symlinkSync(join(repository, 'node_modules'), join(clone, 'node_modules'));
  // Those of other machines would be packed, copied and removed for nothing.
  vi.stubEnv('LUTHIER_PLATFORMS', `${process.platform}/${process.arch}`);
  await new UserProject(clone).succeed('npm', 'pack', '--silent');
  tarball = join(clone, readdirSync(clone).find((name) => name.endsWith('.tgz'))!);
}, 1_800_000);

/** Installs the package and begins a project, without a word of the network but with the registry. */
async function begin(manager: PackageManager, folder: string): Promise<UserProject> {
  writeFiles(folder, { 'package.json': '{}' });
  const { relays = false } = manager;
  const guarded = join(folder, '../guard', manager.name);
  mkdirSync(guarded, { recursive: true });
  const { env, refused, close } = await registryAlone(guarded, usersEnvironment(), relays);
  const begun = new UserProject(folder, { ...env, ...manager.env });
  const [program, ...args] = manager.command;
  await begun.succeed(program, ...args, ...manager.add, tarball);
  await begun.luthier('init');
  await begun.succeed(program, ...args, ...manager.install);
  close();
  expect(refused()).toEqual([]);
  return begun;
}

beforeAll(() => begin(npm!, project));

test('the tarball holds what it should, and the clone is as it was', () => {
  const library = join(project, 'node_modules/luthier');
  const found = readdirSync(library, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(library.length + 1));
  expect(found.filter((file) => !file.includes('node_modules/')).sort()).toEqual(
    [...packagedFiles(repository), 'package.json'].sort(),
  );
  expect(readFileSync(join(clone, 'package.json'), 'utf8')).toBe(
    readFileSync(join(repository, 'package.json'), 'utf8'),
  );
  expect(JSON.parse(read('package.json'))).toMatchObject({ type: 'module' });
  // One of each, for schemas and tensors are recognised by their classes.
  const { packages: locked } = JSON.parse(read('package-lock.json'));
  const packages = Object.keys(locked);
  expect(
    packages.filter((path) => /(^|\/)node_modules\/(zod|@tensorflow\/tfjs-core)$/.test(path)),
  ).toHaveLength(2);
});

test('every export resolves and loads', async () => {
  const { exports } = JSON.parse(read('node_modules/luthier/package.json')) as { exports: object };
  const names = Object.keys(exports).map((path) => path.replace('.', 'luthier'));
  expect(names.length).toBeGreaterThan(15);
  const script = `for (const name of ${JSON.stringify(names)}) console.log(name, Object.keys(await import(name)).length)`;
  const lines = (await succeed(process.execPath, '--input-type=module', '-e', script)).trim().split('\n');
  expect(lines.map((line) => line.split(' ')[0])).toEqual(names);
  expect(lines.filter((line) => line.endsWith(' 0'))).toEqual(['luthier/typescript 0']);
});

test('its compiler checks none of our sources, and finds no error in our declarations', async () => {
  // At once, for it takes a while: declarations of other packages, ONNX Runtime's in ours among them, name types of browsers.
  const flags = ['--listFiles', '--skipLibCheck', 'false'];
  const { stdout } = await run('npm', 'run', '--silent', 'types', '--', ...flags);
  const ours = stdout.split('\n').filter((line) => /^\/.*\/node_modules\/luthier\//.test(line));
  expect(ours.length).toBeGreaterThan(100);
  expect(ours.filter((file) => !file.endsWith('.d.ts'))).toEqual([]);
  const faulty = Array.from(stdout.matchAll(/^([^\s(]+)\(\d/gm), ([, file]) => file!);
  expect(faulty.length).toBeGreaterThan(0);
  expect(faulty.filter((file) => !/^node_modules\/(?!luthier\/(?!dist\/onnxruntime\/))/.test(file))).toEqual(
    [],
  );
});

test('its test passes', async () => {
  expect(await succeed('npm', 'test', '--silent')).toMatch(/^# pass 2$/m);
});

test('it trains, evaluates and decodes, by machine code or ONNX Runtime', async () => {
  expect(await luthier('train', '--exp=first.Tiny')).toMatch(/^Trained first\.Tiny to step 100 at /m);
  if (!isShort) {
    expect(await luthier('eval', '--exp=Tiny')).toContain('eval_test_held_out at step 100: ');
    expect(await luthier('decode', '--exp=first.Tiny')).toContain('>>>');
  }
  const flags = ['--exp=first.Tiny', '--job_log_dir=out/onnx', '--engine=onnx', '--set', 'numTrainSteps=4'];
  expect(await luthier('train', ...flags)).toContain('Trained first.Tiny to step 4 at ');
});

test('what it trained continues prompts, is exported, and is loaded by a program', async () => {
  const generate = ['generate', 'out/first.Tiny', '--prompt=ab', '--max_tokens=5', '--format=json'];
  const { completions } = JSON.parse(await luthier(...generate));
  expect(completions).toMatchObject([{ prompt: 'ab', text: expect.stringMatching(/./s) }]);
  if (!isShort)
    expect(await luthier('export', 'out/first.Tiny', '--out=out/tiny.onnx')).toMatch(
      /^Wrote out\/tiny\.onnx: .*first\.Tiny at step 100\.$/m,
    );
  const script = `
    import { loadRun } from 'luthier';
    const run = await loadRun('out/first.Tiny');
    console.log(JSON.stringify(await run.generate('ab', { maxTokens: 5 })));
    await run.dispose();`;
  expect(JSON.parse(await succeed(process.execPath, '--input-type=module', '-e', script))).toBe(
    completions[0].text,
  );
});

test('its configs are read back by whoever imports the package', async () => {
  const script = `
    import { readFileSync } from 'node:fs';
    import { fromJSON } from 'luthier';
    const { task } = fromJSON(readFileSync('out/first.Tiny/experiment.json', 'utf8'));
    console.log(task.train.numTrainSteps, task.model.lmTpl.modelDims);`;
  expect(await succeed(process.execPath, '--input-type=module', '-e', script)).toBe('100 32\n');
});

test('what looks at experiments finds them', async () => {
  expect(await luthier('list')).toContain('first.Tiny  experiments/first.ts');
  expect(await luthier('validate', '--level=step')).toContain('first.Tiny');
  if (isShort) return;
  expect(await luthier('analyze', 'first.Tiny')).toMatch(/^Parameters +22,\d{3} /m);
  expect(await luthier('codegen', 'first.Tiny')).toContain("} from 'luthier';");
  expect(await luthier('snapshot', '--check')).toContain('There are no snapshots.');
});

test.skipIf(isShort)('an input class of its own reads ahead in a thread', async () => {
  writeFiles(project, {
    'experiments/parts.ts': `
      import { ByteTokenizer } from 'luthier';
      export class OwnTokenizer extends ByteTokenizer {}`,
    'experiments/own.ts': `
      import { Tiny } from './first.js';
      import { OwnTokenizer } from './parts.js';
      export { OwnTokenizer };
      export class Own extends Tiny.preset({ numTrainSteps: 60 }) {
        override datasets() {
          return super.datasets().map((each) => {
            each.tokenizer = OwnTokenizer.config();
            each.prefetchBatches = 2;
            return each;
          });
        }
      }`,
  });
  expect(await luthier('train', '--exp=own.Own')).toContain('Trained own.Own to step 60 at ');
  expect(await luthier('validate', 'own.Own')).toContain('own.Own');
});

test.skipIf(isShort)(
  'a program reads a run of its own classes where Node loads TypeScript, and is told how where it does not',
  async () => {
    writeFiles(project, {
      'load.mjs': `
      import { loadRun } from 'luthier';
      const run = await loadRun('out/own.Own');
      console.log(run.name, run.step);
      await run.dispose();`,
    });
    const node = (...flags: readonly string[]) => run(process.execPath, ...flags, 'load.mjs');
    expect(await node('--import', 'luthier/typescript')).toMatchObject({ code: 0, stdout: 'own.Own 60\n' });
    const strips = process.allowedNodeEnvironmentFlags.has('--experimental-strip-types');
    const { code, stderr } = await node(...(strips ? ['--no-experimental-strip-types'] : []));
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(
        'This process does not load TypeScript: start it with node --import luthier/typescript PROGRAM.',
      ),
    ]);
  },
);

test('a change of it is reviewed', async () => {
  await git('init', '--quiet', '--initial-branch=main');
  await git('add', '.');
  await git('commit', '--quiet', '--message=First experiment');
  expect(await git('ls-files')).not.toMatch(/node_modules|^out\//m);
  writeFiles(project, {
    'experiments/first.ts': read('experiments/first.ts').replace('.default(32)', '.default(48)'),
  });
  const { code, stdout, stderr } = await run('npm', 'run', '--silent', 'review');
  expect(code, stderr).toBe(0);
  expect(stdout).toContain('first.Tiny');
  expect(stdout).toMatch(/modelDims : 32 .*→ 48/);
  expect(stdout).toContain('22.6k');
});

describe('a project whose layer, feature, input and base experiment are each in another file', () => {
  test('trains, reading ahead, and continues prompts', async () => {
    writeManyFiles(project);
    const said = await luthier('train', '--exp=text.Two', '--mode=train_and_decode');
    expect(said).toMatch(/^Trained text\.Two to step 8 at /m);
    if (isShort) return;
    const generate = ['generate', 'out/text.Two', '--prompt=11', '--max_tokens=4', '--format=json'];
    expect(JSON.parse(await luthier(...generate))).toMatchObject({
      step: 8,
      completions: [{ prompt: '11' }],
    });
  });

  test.skipIf(isShort)('is exported, evaluated and served', async () => {
    expect(await luthier('export', 'out/text.Two', '--out=out/two.onnx')).toMatch(/^Wrote out\/two\.onnx: /);
    expect(await luthier('eval', '--exp=text.Two')).toContain('eval_test_validation at step 8: ');
    const command = join(project, 'node_modules/luthier/dist/tools/luthier.js');
    const server = spawn(process.execPath, [command, 'serve', 'out/text.Two', '--port=0'], {
      ...{ cwd: project, env: user.env },
    });
    let said = '';
    while (!said.includes('\n')) said += String(await once(server.stdout, 'data'));
    const [address] = /http:\/\/\S+:\d+/.exec(said)!;
    const answer = await fetch(`${address}/v1/completions`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
      body: JSON.stringify({ prompt: '11', max_tokens: 4, temperature: 0 }),
    });
    expect(await answer.json()).toMatchObject({ choices: [{ index: 0, text: expect.any(String) }] });
    server.kill('SIGTERM');
    expect(await once(server, 'exit')).toEqual([0, null]);
  });

  test.skipIf(isShort)('predicts from raw records', async () => {
    expect(await luthier('train', '--exp=rows.Lengths')).toMatch(/^Trained rows\.Lengths to step 6 at /m);
    writeFiles(project, {
      'predict.mjs': `
        import { loadRun } from 'luthier';
        const run = await loadRun('out/rows.Lengths');
        const predicted = await run.predict([{ text: 'xxxx' }, { text: '' }]);
        console.log(JSON.stringify(predicted.map(({ outputs }) => outputs.predictions)));
        await run.dispose();`,
    });
    const said = await succeed(process.execPath, '--import', 'luthier/typescript', 'predict.mjs');
    expect(JSON.parse(said)).toEqual([[expect.any(Number)], [expect.any(Number)]]);
  });
});

describe.each(others)('$name', (manager) => {
  const inShortRuns = manager.name === 'pnpm';
  test.skipIf(!isHere(manager) || (isShort && !inShortRuns))(
    'installs the package from the registry alone; what init begins is compiled, tested, and trained on both engines',
    async () => {
      const other = await begin(manager, join(folder, manager.name));
      expect(await other.succeed('npm', 'run', '--silent', 'types')).toBe('');
      expect(await other.luthier('train', '--exp=first.Tiny')).toMatch(
        /^Trained first\.Tiny to step 100 at /m,
      );
      const flags = [
        '--exp=first.Tiny',
        '--job_log_dir=out/onnx',
        '--engine=onnx',
        '--set',
        'numTrainSteps=4',
      ];
      expect(await other.luthier('train', ...flags)).toContain('Trained first.Tiny to step 4 at ');
      if (isShort) return;
      expect(await other.succeed('npm', 'test', '--silent')).toMatch(/^# pass 2$/m);
      const generate = ['generate', 'out/first.Tiny', '--prompt=ab', '--max_tokens=5', '--format=json'];
      expect(JSON.parse(await other.luthier(...generate))).toMatchObject({ completions: [{ prompt: 'ab' }] });
    },
  );
});

/** The tarball with a new version, another default of Adam, and other layer norms. */
async function nextVersion(): Promise<string> {
  const unpacked = join(folder, 'next');
  mkdirSync(unpacked, { recursive: true });
  const next = new UserProject(join(unpacked, 'package'));
  await new UserProject(unpacked).succeed('tar', 'xzf', tarball);
  const edit = (file: string, old: string, text: string): void => {
    expect(next.read(file)).toContain(old);
    writeFiles(next.folder, { [file]: next.read(file).replace(old, text) });
  };
  edit('package.json', '"version": "0.1.0"', '"version": "0.2.0"');
  edit('dist/learners/optimizers/adam.js', 'beta2: beta.default(0.999)', 'beta2: beta.default(0.99)');
  edit(
    'dist/layers/normalizations.js',
    'bias : null, { epsilon });',
    'bias : null, { epsilon: 2 * epsilon });',
  );
  await next.succeed('npm', 'pack', '--silent', '--ignore-scripts');
  return join(next.folder, 'luthier-0.2.0.tgz');
}

test.skipIf(isShort)('an upgrade of Luthier is compared by the Luthier of each version', async () => {
  const upgraded = new UserProject(join(folder, 'upgraded'));
  const use = async (from: string, version: string): Promise<void> => {
    const manifest = JSON.parse(read('package.json')) as { dependencies: object };
    const dependencies = { ...manifest.dependencies, luthier: `file:vendor/luthier-${version}.tgz` };
    rmSync(join(upgraded.folder, 'vendor'), { recursive: true, force: true });
    cpSync(from, join(upgraded.folder, `vendor/luthier-${version}.tgz`));
    writeFiles(upgraded.folder, { 'package.json': JSON.stringify({ ...manifest, dependencies }) });
    await upgraded.succeed(
      'npm',
      'install',
      '--prefer-offline',
      '--no-audit',
      '--no-fund',
      '--ignore-scripts',
    );
  };
  for (const file of ['experiments/first.ts', 'tsconfig.json', '.gitignore'])
    writeFiles(upgraded.folder, { [file]: read(file) });
  await use(tarball, '0.1.0');
  const git = ['-c', 'user.name=A', '-c', 'user.email=a@example.org'];
  await upgraded.succeed('git', 'init', '--quiet', '--initial-branch=main');
  await upgraded.succeed('git', 'add', '.');
  await upgraded.succeed('git', ...git, 'commit', '--quiet', '--message=base');
  await use(await nextVersion(), '0.2.0');
  const told = await upgraded.luthier('diff', '--base=main', '--install');
  expect(told).toContain('task.train.learner.optimizer.beta2 : 0.999 (default) → 0.99 (default)');
  expect(told).toContain('beside its config, the training step computes different values');
  expect(told).toContain('luthier 0.1.0 → 0.2.0');
  const without = await upgraded.luthier('diff', '--base=main');
  expect(without).toContain('both versions were evaluated with the packages installed now');
});

test.skipIf(!isHere(node18))('Node 18 is told which Node it takes', async () => {
  const command = join(project, 'node_modules/luthier/dist/tools/luthier.js');
  const { code, stdout, stderr } = await run(node18.file, command, 'list');
  expect([code, stdout, stderr]).toEqual([
    1,
    '',
    expect.stringMatching(/^Luthier needs Node 20\.19 or newer: this is Node 18\.[\d.]+\.\n$/),
  ]);
});
