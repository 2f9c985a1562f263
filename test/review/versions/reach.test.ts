/** @file Reach of changes: what processes read is recorded, and nothing that differs is overlooked. */
import { execFileSync } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { compareVersions } from '../../../src/review/compareVersions.js';
import { ChangedFiles } from '../../../src/review/versions/reach.js';
import type { Tree } from '../../../src/review/versions/versionTree.js';
import { temporaryDirectory } from '../../command.js';
import { longTest } from '../../longTest.js';
import { writeFiles } from '../../tools/scratch.js';
import { typescript } from '../../typescriptEnvironment.js';
import { experimentsFile, family, repositoryOf } from '../repository.js';

const reads = fileURLToPath(new URL('../../../src/system/reads.ts', import.meta.url));

/** Reads in as many ways as there are, each under a name. */
const reading = `
import { recordReads } from '${reads}';
import { existsSync, globSync, readFileSync, realpathSync, createReadStream, readdirSync } from 'node:fs';
import * as fs from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';

const take = recordReads();
const folder = process.cwd();
const told = {};
const note = async (name, read) => {
  await read();
  told[name] = take().filter((path) => path === '/' || path.includes(folder)).map((path) => path.replace(folder, '.'));
};
const require = createRequire(folder + '/x.js');
const computed = 'lazy';
await note('a text', () => readFileSync('a.txt', 'utf8'));
await note('the same text again', () => readFileSync('a.txt', 'utf8'));
await note('what is missing', () => existsSync('missing.json'));
await note('through a link', () => readFileSync('link/b.txt'));
await note('by a promise', () => readFile(new URL('file://' + folder + '/b.json')));
await note('its time', () => stat(Buffer.from('c.txt')));
await note('a stream', () => once(createReadStream('d.txt').resume(), 'end'));
await note('a real path', () => realpathSync.native('e.txt'));
await note('a listed folder', () => readdirSync('data'));
await note('a module', () => import(\`./\${computed}.js\`));
await note('a module that is not there', () => import('./optional.js').catch(() => {}));
await note('a required text', () => require('./data/b.json'));
await note('a required one that is not there', () => { try { require('./other'); } catch {} });
await note('a worker', () => new Worker('', { eval: true }));
await note('a process', () => execFileSync('true'));
await note('a process of git', () => execFileSync('git', ['--version']));
console.log(JSON.stringify(told));
`;

test('files, folders, modules, what is not there, and others that read', () => {
  const folder = realpathSync(temporaryDirectory());
  writeFiles(folder, {
    'read.ts': reading,
    'package.json': '{ "type": "module" }',
    'lazy.ts': "import './next.js';\n",
    'next.ts': 'export {};\n',
    'data/b.json': '{}',
    'data/b.txt': '',
    'b.json': '{}',
    ...Object.fromEntries(['a', 'c', 'd', 'e'].map((name) => [`${name}.txt`, ''])),
  });
  execFileSync('ln', ['-s', 'data', join(folder, 'link')]);
  const printed = execFileSync(process.execPath, ['--import', typescript, 'read.ts'], {
    cwd: folder,
    encoding: 'utf8',
  });
  expect(JSON.parse(printed)).toMatchInlineSnapshot(`
    {
      "a listed folder": [
        "./data",
        "./data/",
      ],
      "a module": [
        "./lazy.js",
        "./lazy.ts",
        "./next.js",
        "./next.ts",
      ],
      "a module that is not there": [
        "./optional.js",
      ],
      "a process": [
        "/",
        "started:./read.ts",
      ],
      "a process of git": [
        "/",
      ],
      "a real path": [
        "./e.txt",
      ],
      "a required one that is not there": [
        "./other",
      ],
      "a required text": [
        "./data/b.json",
      ],
      "a stream": [
        "./d.txt",
      ],
      "a text": [
        "./a.txt",
      ],
      "a worker": [
        "/",
        "started:./read.ts",
      ],
      "by a promise": [
        "./b.json",
      ],
      "its time": [
        "./c.txt",
      ],
      "the same text again": [
        "./a.txt",
      ],
      "through a link": [
        "./link/b.txt",
        "./data/b.txt",
      ],
      "what is missing": [
        "./missing.json",
      ],
    }
  `);
});

test('by which paths a changed file is come upon', () => {
  const [old, now] = [temporaryDirectory(), temporaryDirectory()];
  const [oldTree, newTree] = [old, now].map((root) => ({
    root,
    project: join(root, 'inner'),
    library: root,
  })) as [Tree, Tree];
  writeFiles(old, { 'src/lm.ts': '', 'gone/a.txt': '', 'both/a.txt': '' });
  writeFiles(now, { 'src/lm.ts': ' ', 'both/a.txt': ' ', 'both/new/index.ts': '' });
  const changed = new ChangedFiles(
    new Set(['src/lm.ts', 'gone/a.txt', 'both/a.txt', 'both/new/index.ts']),
    oldTree,
    newTree,
  );
  const found = (...paths: string[]) => [...changed.readBy(paths.map((path) => join(old, path)))];
  expect(found('src/lm.ts')).toEqual(['src/lm.ts']);
  expect(found('src/lm')).toEqual(['src/lm.ts']);
  expect(found('src', 'src/l', 'src/lm.js', 'both', 'other')).toEqual([]);
  expect(found('gone')).toEqual(['gone/a.txt']);
  expect(found('both/new')).toEqual(['both/new/index.ts']);
  expect(found('both/')).toEqual(['both/a.txt', 'both/new/index.ts']);
  expect([...changed.readBy(['/'])]).toHaveLength(4);
  writeFiles(now, {
    'tsconfig.json': '{ "extends": ["./configs/base", "@tsconfig/strict"] }',
    'configs/base.json': '{ "extends": "../deep.json" }',
    'deep.json': '{}',
  });
  const settings = new ChangedFiles(
    new Set(['inner/package.json', 'configs/base.json', 'deep.json', 'x.json']),
    oldTree,
    newTree,
  );
  expect([...settings.readBy([])]).toEqual(['inner/package.json', 'configs/base.json', 'deep.json']);
});

longTest('a number in a file that an experiment reads while it is made', async () => {
  const repository = repositoryOf({
    'experiments/family.ts': family,
    'experiments/apart.ts': experimentsFile('export class Apart extends Family {}'),
    'experiments/steps.json': '7',
    'experiments/reads.ts': experimentsFile(
      "import { readFileSync } from 'node:fs';",
      'export class Reads extends Family {\n  override task() {\n    const task = super.task();',
      "    task.train.numTrainSteps = Number(readFileSync(new URL('./steps.json', import.meta.url)));",
      '    return task;\n  }\n}',
    ),
  });
  repository.write({ 'experiments/steps.json': '8' });
  const report = await compareVersions({
    project: repository.folder,
    base: 'main',
    exact: false,
    name: undefined,
    changes: [],
    limits: { seconds: 60, gigabytes: 4 },
  });
  expect(report.untouched).toBe(1);
  expect(report.experiments).toMatchObject([
    {
      name: 'reads.Reads',
      fields: [{ path: 'task.train.numTrainSteps', old: { text: '7' }, new: { text: '8' } }],
    },
  ]);
});
