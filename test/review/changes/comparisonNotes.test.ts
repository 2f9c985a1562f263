/** @file Notes on what a comparison of versions covers. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { notesOf } from '../../../src/review/changes/comparisonNotes.js';
import { temporaryDirectory } from '../../command.js';

/** A project with a lockfile; its packages by their folders, with their versions. */
function locked(versions: Readonly<Record<string, string>> | string) {
  const root = temporaryDirectory();
  mkdirSync(join(root, 'library'));
  const packages = {
    '': { name: 'project', dependencies: { zod: '^4', yaml: '^2', tsx: '^4' } },
    ...Object.fromEntries(
      Object.entries(versions).map(([name, version]) => [`node_modules/${name}`, { version }]),
    ),
  };
  const text = typeof versions === 'string' ? versions : JSON.stringify({ lockfileVersion: 3, packages });
  writeFileSync(join(root, 'package-lock.json'), text);
  return { root, project: root, library: join(root, 'library') };
}

const installed = 'both versions were evaluated with the packages installed now.';

test.each([
  [
    { zod: '4.6.6', yaml: '2.0.0' },
    { zod: '4.6.7', tsx: '4.1.0' },
    ' (zod 4.6.6 → 4.6.7, yaml 2.0.0 → none, tsx none → 4.1.0)',
  ],
  [
    { zod: '4.6.6', deep: '1.0.0', other: '1.0.0' },
    { zod: '4.6.6', deep: '1.0.1', other: '2.0.0' },
    ' (2 packages of packages)',
  ],
  [{ zod: '4.6.6' }, { zod: '4.6.6' }, ''],
  ['{', { zod: '4.6.6' }, ' (zod none → 4.6.6)'],
])('packages that are locked in other versions: %j, %j', (old, now, shown) => {
  expect(notesOf(new Set(['package-lock.json', 'a.ts']), locked(old), locked(now))).toEqual([
    `package-lock.json changed${shown}: ${installed}`,
  ]);
});

test.each([
  [
    { folder: '' },
    'each version was evaluated with the packages of its own lockfile; code in them is compared by what it computes alone.',
  ],
  [
    { because: 'the base has no package-lock.json to install from' },
    'both versions were evaluated with the packages installed now, as the base has no package-lock.json to install from.',
  ],
])('the packages of the base: %j', (packages, text) => {
  const [old, now] = [locked({ zod: '4.6.6' }), locked({ zod: '4.6.7' })];
  expect(notesOf(new Set(['package-lock.json']), old, now, packages)).toEqual([
    `package-lock.json changed (zod 4.6.6 → 4.6.7): ${text}`,
  ]);
});

test('patches of packages', () => {
  const tree = locked({});
  expect(notesOf(new Set(['patches/zod+4.6.6.patch', 'src/patches/a.ts']), tree, tree)).toEqual([
    'patches/zod+4.6.6.patch changed: patches of packages count as far as they are applied to those installed now, in both versions.',
  ]);
});

test('rooms of the library that no program shows', () => {
  const tree = locked({});
  const changed = ['compiler/engines/engine.ts', 'programs/loop.ts'].map((file) => `library/src/${file}`);
  expect(notesOf(new Set(changed), tree, tree)).toEqual([
    'The compiler changed: traced programs were compared, not their compiled form.',
    'src/programs changed: how jobs run, save and report was not compared.',
  ]);
});
