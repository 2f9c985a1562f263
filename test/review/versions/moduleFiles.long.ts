/** @file Changed files that experiments load in projects of all layouts, by git and source text. */
import { mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { factsMarkdown, sourceFacts } from '../../../src/review/versions/sourceFacts.js';
import { experimentsFile, family, repositoryOf } from '../repository.js';

const small = experimentsFile('export class One extends Family {}');

interface Layout {
  /** In front of experiments/small.ts. */
  readonly text?: string;
  readonly files?: Readonly<Record<string, string>>;
  /** Targets of links. */
  readonly links?: Readonly<Record<string, string>>;
  readonly changed: string;
}

/** What is told of a change of one file. */
function told({ text = '', files = {}, links = {}, changed }: Layout): string {
  const { folder, git, write } = repositoryOf({
    'experiments/family.ts': family,
    'experiments/small.ts': `${text}\n${small}`,
    'package.json': '{ "type": "module" }',
    [changed]: '{ "before": true }',
    ...files,
  });
  for (const [link, target] of Object.entries(links)) {
    mkdirSync(dirname(join(folder, link)), { recursive: true });
    symlinkSync(target, join(folder, link));
  }
  git('add', '--force', '.');
  git('commit', '--quiet', '--allow-empty', '--message=links');
  git('branch', '--force', 'main');
  write({ [changed]: '{ "after": true }' });
  git('add', '--force', '.');
  git('commit', '--quiet', '--message=change');
  const [base, head] = ['main', 'change'].map((name) => git('rev-parse', name).trim());
  const [, said] = factsMarkdown(sourceFacts(folder, { base: base!, head: head! })).split(
    'By git and source text alone, ',
  );
  return said!;
}

const imports = (specifier: string) => `import '${specifier}';`;
const layers = 'packages/layers/src/deep.ts';
const manifest = (more: object) => JSON.stringify({ type: 'module', ...more });

test.each<[string, Layout]>([
  ['TypeScript by another extension', { text: imports('../lib/x.js'), changed: 'lib/x.tsx' }],
  ['CommonJS', { text: imports('../lib/x.cjs'), changed: 'lib/x.cts' }],
  ['a folder', { text: imports('../lib'), changed: 'lib/index.mts' }],
  ['a query and an escape', { text: imports('../lib/%78.js?v=2'), changed: 'lib/x.ts' }],
  ['JSON', { text: "import x from '../lib/x.json' with { type: 'json' };", changed: 'lib/x.json' }],
  ['a thread', { text: "new Worker(new URL('../lib/x.js', import.meta.url));", changed: 'lib/x.js' }],
  [
    '`paths` of a tsconfig.json that another one extends',
    {
      text: imports('@own/x'),
      files: {
        'tsconfig.json': '{ "extends": "./base" /* ours */ }',
        'base.json': '{ "compilerOptions": { "paths": { "@own/*": ["./lib/*"], } } }',
      },
      changed: 'lib/x.ts',
    },
  ],
  [
    '`baseUrl`',
    {
      text: imports('lib/x'),
      files: { 'tsconfig.json': '{ "compilerOptions": { "baseUrl": "." } }' },
      changed: 'lib/x.ts',
    },
  ],
  [
    '`imports` of package.json, under any condition',
    {
      text: imports('#own/x.js'),
      files: { 'package.json': manifest({ imports: { '#own/*': { node: './lib/*', default: './no/*' } } }) },
      changed: 'lib/x.ts',
    },
  ],
  [
    'a package that imports itself by its name',
    {
      text: imports('mine/x'),
      files: { 'package.json': manifest({ name: 'mine', exports: { './x': './lib/x.ts' } }) },
      changed: 'lib/x.ts',
    },
  ],
  [
    "a workspace's package, and what it loads",
    {
      text: imports('@me/layers'),
      files: {
        'packages/layers/package.json': manifest({ name: '@me/layers', main: './src/index.ts' }),
        'packages/layers/src/index.ts': "export*from'./deep.js';",
      },
      changed: layers,
    },
  ],
  [
    'a folder that package.json calls by another name',
    {
      text: imports('layers/src/deep.ts'),
      files: { 'package.json': manifest({ dependencies: { layers: 'file:./packages/layers' } }) },
      changed: layers,
    },
  ],
  [
    'a package that git has',
    {
      text: imports('own'),
      files: { 'experiments/node_modules/own/package.json': '{ "main": "./a.js" }' },
      changed: 'experiments/node_modules/own/b.js',
    },
  ],
  ['a link', { text: imports('./x.js'), links: { 'experiments/x.js': '../lib/y.js' }, changed: 'lib/y.js' }],
  ['a linked folder', { text: imports('../own/y.js'), links: { own: 'lib/deep' }, changed: 'lib/deep/y.ts' }],
])('a changed file is found: %s', (_, layout) => {
  expect(told(layout)).toContain(`1 of 1 experiment load 1 changed file: \`${layout.changed}\`.`);
});

test.each<[string, Layout, string]>([
  [
    'data by its path',
    { text: "readFileSync(join('data', 'points.json'));", changed: 'data/points.json' },
    'text that they load names `data/points.json`, which changed.',
  ],
  [
    'data by its folder',
    { text: "const dataPath = './data/train';", changed: 'data/train/a.bin' },
    'text that they load names `data/train/a.bin`, which changed.',
  ],
  ...['package-lock.json', '.npmrc', 'tsconfig.build.json', 'pnpm-lock.yaml', '.env'].map(
    (changed): [string, Layout, string] => [
      'settings',
      { changed },
      `all depend on \`${changed}\`, which changed.`,
    ],
  ),
  [
    'nothing',
    { text: imports('../lib/x.js'), files: { 'lib/x.ts': '' }, changed: 'README.md' },
    'no experiment loads a changed file.',
  ],
])('what is no module is named: %s', (_, layout, said) => {
  expect(told(layout)).toBe(said);
});

test.each<[string, Layout, string]>([
  [
    'a computed import',
    { text: '\nawait import(name);', changed: 'lib/x.ts' },
    'experiments/small.ts:2 imports a computed path',
  ],
  [
    'a file that git lacks',
    { text: imports('./made.js'), changed: 'lib/x.ts' },
    'experiments/small.ts:1 imports "./made.js", which git does not have',
  ],
  [
    'a place outside',
    { text: imports('../../x.js'), changed: 'lib/x.ts' },
    'experiments/small.ts:1 imports "../../x.js", which is outside of the repository',
  ],
  [
    'a data: URL',
    { text: imports('data:text/javascript,1'), changed: 'lib/x.ts' },
    'experiments/small.ts:1 imports the text of a data: URL',
  ],
  [
    'a nested text',
    { text: imports('../lib/y.js'), files: { 'lib/y.ts': '('.repeat(20_000) }, changed: 'lib/x.ts' },
    'lib/y.ts:1 cannot be read',
  ],
  [
    'a link out',
    { text: imports('./x.js'), links: { 'experiments/x.js': '/etc/x.js' }, changed: 'lib/x.ts' },
    'experiments/x.js: It is a symbolic link, which is not followed here.',
  ],
])('what cannot be followed is named: %s', (_, layout, place) => {
  const said = told(layout);
  expect(said).toMatch(/^whether experiments load one of 1 other changed file cannot be told: /);
  expect(said).toContain(`\`${place}\``);
});
