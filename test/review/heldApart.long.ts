/** @file Changes of content that git holds apart, and all that a review tells of each: submodules, git-lfs, packages, absolute paths. */
import { createHash } from 'node:crypto';
import { readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { withCommandEnvironment } from '../loader.js';
import { writeFiles } from '../tools/scratch.js';
import { kinds } from './kinds.js';
import { experimentsFile, family, repositoryOf } from './repository.js';
import { instead, ScratchReview } from './scratchReview.js';

const test = kinds(3);

withCommandEnvironment();

const sizes = 'export const layers = 1;\n';
const vendor = repositoryOf({ 'size.ts': sizes, 'notes.md': 'one\n' });

const points = '[1, 2]\n';
const digest = createHash('sha256').update(points).digest('hex');
const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${digest}\nsize ${points.length}\n`;

const reading = `import { readFileSync } from 'node:fs';
${experimentsFile(`const points = JSON.parse(readFileSync(new URL('../weights/points.json', import.meta.url), 'utf8'));

export class Points extends Family {
  override numLayers = points.length;
}
`)}`;
const absolute = `import { fileURLToPath } from 'node:url';
import { TextInput } from 'luthier';
${experimentsFile(`const files = [fileURLToPath(new URL('../corpus/a.txt', import.meta.url))];

export class Text extends Family {
  override datasets() {
    return [TextInput.config({ name: 'train', isTraining: true, files, batchSize: 2, seqLen: 8 })];
  }
}
`)}`.replace('extends Family {', 'extends Family.preset({}) {');

const review = new ScratchReview({
  'experiments/family.ts': family.replaceAll('vocabSize: 32', 'vocabSize: 256'),
  'experiments/rest.ts': experimentsFile('export class Rest extends Family {}\n'),
  'experiments/text.ts': absolute,
  'corpus/a.txt': 'The same words again and again, and again and again.\n'.repeat(20),
});
const { folder, git, write } = review.repository;
git('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', vendor.folder, 'vendor');
write({
  'experiments/sub.ts': `import { layers } from '../vendor/size.js';\n${experimentsFile(
    'export class Sub extends Family {\n  override numLayers = layers;\n}\n',
  )}`,
  'experiments/points.ts': reading,
  'weights/points.json': pointer,
  '.gitattributes': 'weights/* filter=lfs -text\n',
});
review.commit();
const lfs = join(folder, '.git/lfs/objects', digest.slice(0, 2), digest.slice(2, 4));
const keep = () => writeFiles(lfs, { [digest]: points });
const forget = () => rmSync(lfs, { recursive: true, force: true });
const [inVendor, at] = [(...args: string[]) => git('-C', join(folder, 'vendor'), ...args), vendor.git];
const first = at('rev-parse', 'HEAD').trim();

test('a submodule that is bumped or dirty is told by its content', async () => {
  keep();
  const pulled = () => writeFiles(folder, { 'weights/points.json': points });
  expect(await review.told({}, {}, pulled)).toBe('4 that the change does not reach');
  expect(await review.told({ 'vendor/notes.md': 'two\n' }, {}, pulled)).toBe(
    '4 that the change does not reach',
  );
  const dirty = await review.told({ 'vendor/size.ts': sizes.replace('1', '2') }, {}, pulled);
  expect(dirty).toContain(
    "1 can't go on from its checkpoints (and costs more), 3 that the change does not reach",
  );
  expect(dirty).toContain('numLayers : 1 → 2');
  inVendor('checkout', '--quiet', '--force', first);
  vendor.write({ 'size.ts': '/** Blocks. */\nexport const layers = 3;\n' });
  at('commit', '--quiet', '--all', '--message=three');
  const bumped = await review.told({}, {}, () => {
    pulled();
    inVendor('pull', '--quiet', 'origin', 'change');
  });
  expect(bumped).toContain('numLayers : 1 → 3');
  inVendor('checkout', '--quiet', '--force', first);
});

test('a submodule of which the base cannot be had is not compared, and mends nothing', async () => {
  const aside = `${folder}-modules`;
  const told = await review.told({}, {}, () => {
    writeFiles(folder, { 'weights/points.json': points });
    // The commit of the base is in no repository here; that of the change is.
    rmSync(join(folder, 'vendor'), { recursive: true });
    renameSync(join(folder, '.git/modules/vendor'), aside);
    git('-c', 'protocol.file.allow=always', 'clone', '--quiet', vendor.folder, 'vendor');
    inVendor('checkout', '--quiet', '--orphan', 'other');
    inVendor('commit', '--quiet', '--message=other');
    inVendor('branch', '--quiet', '-D', 'change');
    inVendor('remote', 'remove', 'origin');
    inVendor('reflog', 'expire', '--expire=now', '--all');
    inVendor('gc', '--quiet', '--prune=now');
  });
  rmSync(join(folder, 'vendor'), { recursive: true });
  renameSync(aside, join(folder, '.git/modules/vendor'));
  git('-c', 'protocol.file.allow=always', 'submodule', 'update', '--init', '--force', 'vendor');
  expect(told.split('\n').slice(1).join('\n')).toBe(`
not compared: sub.Sub
  experiment: submodule vendor: its commit ${first.slice(0, 7)} is not here, and \`git submodule update --init\` fetches it`);
});

test('content of git-lfs is had for the base where it is here, and told where it is not', async () => {
  keep();
  const pulled = () => writeFiles(folder, { 'weights/points.json': points });
  const edited = instead('points.length', 'points.length + 1');
  const here = await review.told({ 'experiments/points.ts': edited }, {}, pulled);
  expect(here).toContain('numLayers : 2 → 3');
  forget();
  const other = () => writeFiles(folder, { 'weights/points.json': '[1, 2, 3]\n' });
  const gone = await review.told({}, {}, other);
  expect(gone).toMatch(/^1 not compared in full, 3 /);
  expect(gone.split('\n').slice(1).join('\n')).toBe(`
not compared: points.Points
  experiment: weights/points.json: git-lfs has its content, and \`git lfs pull\` fetches it`);
  // Neither version has it.
  const both = await review.told({ 'experiments/points.ts': edited });
  expect(both.split('\n').slice(1)).toEqual(gone.split('\n').slice(1));
});

test('a corpus by an absolute path, or beside the module, is told by its content', async () => {
  const pulled = () => writeFiles(folder, { 'weights/points.json': points });
  keep();
  const touched = instead('/** Small', '/** Very small');
  expect(await review.told({ 'experiments/family.ts': touched }, {}, pulled)).toBe('4 the same');
  const corpus = await review.told({ 'corpus/a.txt': instead('words', 'birds') }, {}, pulled);
  expect(corpus).toMatch(/^1 can't go on from its checkpoints, 3 that the change does not reach\n/);
  expect(corpus).toContain('corpus/a.txt differs');
});

test('a package that the change removes leaves the base not compared', async () => {
  writeFiles(folder, {
    'node_modules/own-steps/package.json': '{ "type": "module", "exports": "./index.js" }',
    'node_modules/own-steps/index.js': 'export const steps = 7;\n',
    'package.json': '{ "type": "module", "dependencies": { "own-steps": "1.0.0" } }\n',
    'experiments/pkg.ts': `import { steps } from 'own-steps';\n${experimentsFile(
      'export class Pkg extends Family {\n  override steps = steps;\n}\n',
    )}`,
  });
  git('checkout', '--quiet', '--force', 'change', '--', 'weights');
  review.commit();
  const told = await review.told(
    {
      'package.json': readFileSync(join(folder, 'package.json'), 'utf8').replace('"own-steps": "1.0.0"', ''),
      'experiments/pkg.ts': instead("import { steps } from 'own-steps';", 'const steps = 7;'),
    },
    {},
    () => {
      writeFiles(folder, { 'weights/points.json': points });
      rmSync(join(folder, 'node_modules/own-steps'), { recursive: true });
    },
  );
  expect(told).toContain('1 not compared in full, 4 the same');
  expect(told).toContain('not compared: pkg.Pkg\n  experiment: package own-steps: it is not installed');
});
