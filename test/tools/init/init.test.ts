/** @file luthier init in folders that are empty, that npm has written to, and that hold a project. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { files } from '../../../src/tools/init/template.js';
import { oneProcess, temporaryDirectory } from '../../command.js';
import { problemsOf, readWorkflow, stepsOf, type Workflow } from '../../workflows.js';
import { writeFiles } from '../scratch.js';

const luthier = oneProcess('src/tools/commandLine.ts');

const manifestIn = (folder: string) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));

const own = JSON.parse(readFileSync('package.json', 'utf8'));
/** What a project lists for its imports and its compiler, as Luthier itself does. */
const packages = {
  dependencies: { zod: own.peerDependencies.zod },
  devDependencies: {
    '@types/node': own.dependencies['@types/node'],
    typescript: own.dependencies.typescript,
  },
};

const scripts = {
  types: 'tsc',
  test: 'node --import luthier/typescript --test test/*.test.ts',
  review: 'luthier diff --base=main',
};

test('an empty folder becomes a project', async () => {
  const folder = temporaryDirectory();
  const { code, stdout, stderr } = await luthier(['init'], folder);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toBe(
    `Wrote
  experiments/first.ts
  test/first.test.ts
  tsconfig.json
  .gitignore
  .github/workflows/config-review.yml
  package.json, with zod, @types/node, typescript

Next:
  npm install                                                        # installs the packages added to package.json
  npx luthier train --exp=first.Tiny                                 # trains it, into out/first.Tiny
  npm run types && npm run test                                      # compiles the project, and runs its test
  git init -b main && git add . && git commit -m "First experiment"  # the baseline of reviews
  npm run review                                                     # shows the effects of later edits
`,
  );
  for (const [file, text] of Object.entries(files))
    expect(readFileSync(join(folder, file), 'utf8')).toBe(text);
  expect(manifestIn(folder)).toEqual({ private: true, type: 'module', scripts, ...packages });
});

test("npm's own package.json keeps what it says; its placeholder of a test goes", async () => {
  const folder = temporaryDirectory();
  const manifest = {
    name: 'mine',
    scripts: { test: 'echo "Error: no test specified" && exit 1', lint: 'x' },
  };
  writeFiles(folder, { 'package.json': JSON.stringify({ ...manifest, dependencies: { luthier: '0.1.0' } }) });
  expect(await luthier(['init'], folder)).toMatchObject({ code: 0, stderr: '' });
  expect(manifestIn(folder)).toEqual({
    name: 'mine',
    type: 'module',
    scripts: { lint: 'x', ...scripts },
    dependencies: { luthier: '0.1.0', ...packages.dependencies },
    devDependencies: packages.devDependencies,
  });
});

test('packages that a project lists keep their place and version, and its package manager is told', async () => {
  const folder = temporaryDirectory();
  const dependencies = { luthier: '0.1.0', typescript: '^5', zod: '4.0.0' };
  const devDependencies = { '@types/node': '^20' };
  writeFiles(folder, {
    'package.json': JSON.stringify({ dependencies, devDependencies }),
    'pnpm-lock.yaml': '',
  });
  const { stdout } = await luthier(['init'], folder);
  expect(manifestIn(folder)).toMatchObject({ dependencies, devDependencies });
  expect(stdout).toMatch(/^ {2}package\.json$/m);
  expect(stdout).not.toContain('install');
  expect(stdout).toContain('  pnpm run types && pnpm run test ');
  for (const [lockfile, manager] of [
    ['yarn.lock', 'yarn'],
    ['bun.lock', 'bun'],
  ] as const) {
    const other = temporaryDirectory();
    writeFiles(other, { 'package.json': JSON.stringify({ dependencies: { zod: '4.0.0' } }), [lockfile]: '' });
    const { next, added } = JSON.parse((await luthier(['init', '--format=json'], other)).stdout);
    expect([next[0], added]).toEqual([`${manager} install`, ['@types/node', 'typescript']]);
    expect(manifestIn(other)).toMatchObject({
      dependencies: { zod: '4.0.0' },
      ...{ devDependencies: packages.devDependencies },
    });
  }
});

test('nothing is written where something is in the way, and all of it is named', async () => {
  const folder = temporaryDirectory();
  const manifest = '{ "type": "commonjs", "scripts": { "test": "vitest" } }';
  writeFiles(folder, { 'package.json': manifest, 'tsconfig.json': '{}', 'experiments/first.ts': '' });
  expect(await luthier(['init'], folder)).toEqual({
    code: 2,
    stdout: '',
    stderr:
      'luthier init creates a project and overwrites nothing. In the way: experiments/first.ts, tsconfig.json, ' +
      "package.json's script test, package.json's type. Run it in an empty folder, or move these away.\n",
  });
  expect(readFileSync(join(folder, 'package.json'), 'utf8')).toBe(manifest);
  expect(readdirSync(folder).sort()).toEqual(['experiments', 'package.json', 'tsconfig.json']);
  // A second time, too.
  const twice = temporaryDirectory();
  await luthier(['init'], twice);
  const { code, stderr } = await luthier(['init'], twice);
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining(`In the way: ${Object.keys(files).join(', ')}. `),
  ]);
});

test('a package.json that is no JSON, or no manifest, is told of', async () => {
  const folder = temporaryDirectory();
  writeFileSync(join(folder, 'package.json'), '{');
  const { code, stderr } = await luthier(['init'], folder);
  expect([code, stderr]).toEqual([
    2,
    expect.stringMatching(/^package\.json: expected a manifest, and it cannot be read: /),
  ]);
  writeFileSync(join(folder, 'package.json'), '{"scripts": {"test": 5}}');
  expect((await luthier(['init'], folder)).stderr).toBe(
    'package.json: expected a manifest, and it cannot be read: scripts.test: expected a string, got number\n',
  );
  expect(existsSync(join(folder, 'tsconfig.json'))).toBe(false);
});

test("the workflow is the library's own, and shows the report in its summary alone", async () => {
  const text = files['.github/workflows/config-review.yml']!;
  expect(await problemsOf(text)).toEqual([]);
  const [given, own] = [parse(text) as Workflow, readWorkflow('config-review.yml')];
  expect({ ...given, jobs: undefined }).toEqual({ ...own, jobs: undefined });
  const compares = 'Compare the experiments';
  const validates = 'Experiments are valid';
  const apart = [compares, validates];
  const others = (workflow: Workflow) => stepsOf(workflow).filter(({ name }) => !apart.includes(name!));
  expect(stepsOf(given).find(({ name }) => name === validates)).toEqual({
    name: validates,
    if: stepsOf(given).find(({ name }) => name === 'Snapshots are current')!.if,
    run: 'npx --no-install luthier validate',
  });
  expect(others(given)).toEqual(
    others(own).filter(({ uses }) => !uses?.startsWith('actions/upload-artifact@')),
  );
  const { env, run } = stepsOf(given).find(({ name }) => name === compares)!;
  expect(env).toEqual(stepsOf(own).find(({ name }) => name === compares)!.env);
  expect(run).toMatch(
    /npx --no-install luthier diff --base="\$BASE" .* --format=markdown >> "\$GITHUB_STEP_SUMMARY"$/m,
  );
});
