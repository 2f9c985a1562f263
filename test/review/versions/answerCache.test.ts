/** @file Answers kept from review to review: they hold for what was read, and nothing that was damaged is believed. */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { AnswerCache } from '../../../src/review/versions/answerCache.js';
import type { FingerprintDocument, Question } from '../../../src/review/versions/protocol.js';
import { temporaryDirectory } from '../../command.js';

const question = (name: string): Question => ({ ask: 'fingerprint', name, changes: [] });
const answer = (name: string) => ({ name, fingerprint: {} }) as unknown as FingerprintDocument;

const folder = temporaryDirectory();
const [root, other, answers] = ['tree', 'other', 'answers'].map((name) => join(folder, name)) as [
  string,
  string,
  string,
];
const treeAt = (at: string) => ({ root: at, project: at, library: at });
const known = (
  name: string,
  { at = root, unseen = 'settings', key = 'evaluator' }: { at?: string; unseen?: string; key?: string } = {},
) => new AnswerCache(answers, [key]).forTree(treeAt(at), unseen, false).find(question(name));

/** Keeps an answer for what was read of a tree with three files, which another tree has as well. */
async function keep(reads: readonly string[], { at = root, during = () => {}, isTemporary = false } = {}) {
  for (const each of [root, other]) {
    mkdirSync(join(each, 'data'), { recursive: true });
    for (const file of ['lm.ts', 'data/a.txt', 'data/b.txt']) writeFileSync(join(each, file), file);
  }
  // Files that change while a review is under way are not what its processes have read.
  await setTimeout(100);
  const cache = new AnswerCache(answers, ['evaluator']);
  const kept = cache.forTree(treeAt(at), 'settings', isTemporary);
  kept.keep(question('lm.Small'), answer('lm.Small'), reads, reads.length);
  during();
  cache.save();
}

afterEach(() => rmSync(answers, { recursive: true, force: true }));

const read = [join(root, 'lm.ts'), join(root, 'absent.ts'), 'env:LUTHIER_TEST'];

test('an answer holds in every tree in which all that was read is the same', async () => {
  await keep(read);
  expect(known('lm.Small')).toEqual({
    answer: answer('lm.Small'),
    reads: ['unseen:', ...read],
    own: read,
  });
  expect(known('lm.Small', { at: other })?.reads[1]).toBe(join(other, 'lm.ts'));
  expect(known('lm.Other')).toBeUndefined();
  expect(known('lm.Small', { unseen: 'other settings' })).toBeUndefined();
  expect(known('lm.Small', { key: 'another evaluator' })).toBeUndefined();
  for (const name of ['NODE_OPTIONS', 'TZ', 'LANG', 'LC_ALL']) {
    vi.stubEnv(name, 'another');
    expect(known('lm.Small'), name).toBeUndefined();
    vi.unstubAllEnvs();
  }
  for (const name of ['version', 'platform', 'arch'] as const) {
    const own = process[name];
    Object.defineProperty(process, name, { value: 'another' });
    const found = known('lm.Small');
    Object.defineProperty(process, name, { value: own });
    expect(found, name).toBeUndefined();
  }
  expect(known('lm.Small')).toBeDefined();
});

test.each<[string, () => void, () => void]>([
  [
    'of other contents',
    () => writeFileSync(join(root, 'lm.ts'), 'lm.tz'),
    () => writeFileSync(join(root, 'lm.ts'), 'lm.ts'),
  ],
  [
    'that is gone',
    () => renameSync(join(root, 'lm.ts'), join(root, 'moved.ts')),
    () => renameSync(join(root, 'moved.ts'), join(root, 'lm.ts')),
  ],
  [
    'that was not there',
    () => mkdirSync(join(root, 'absent.ts')),
    () => rmSync(join(root, 'absent.ts'), { recursive: true }),
  ],
])('none follows from a file %s', async (_, change, back) => {
  await keep(read);
  change();
  expect(known('lm.Small')).toBeUndefined();
  back();
  // The time of a file does not count.
  utimesSync(join(root, 'lm.ts'), 1, 1);
  expect(known('lm.Small')).toBeDefined();
});

test('variables of the environment, and all below a folder', async () => {
  await keep([...read, join(root, 'data/')]);
  expect(known('lm.Small')).toBeDefined();
  process.env.LUTHIER_TEST = 'set';
  expect(known('lm.Small')).toBeUndefined();
  delete process.env.LUTHIER_TEST;
  writeFileSync(join(root, 'data/c.txt'), '');
  expect(known('lm.Small')).toBeUndefined();
  rmSync(join(root, 'data/c.txt'));
  expect(known('lm.Small')).toBeDefined();
  writeFileSync(join(root, 'data/b.txt'), 'edited');
  expect(known('lm.Small')).toBeUndefined();
});

test('nothing is kept of what may have read anything, nor of files that changed meanwhile', async () => {
  const edit = () => writeFileSync(join(root, 'lm.ts'), 'lm.ts');
  await keep([...read, '/']);
  await keep([...read, '/proc/self/stat']);
  await keep(read, { during: edit });
  await keep(read, { during: () => writeFileSync(join(root, 'absent.ts'), '') });
  rmSync(join(root, 'absent.ts'));
  expect(known('lm.Small')).toBeUndefined();
  // Nobody edits the base's own folder.
  await keep(read, { during: edit, isTemporary: true });
  expect(known('lm.Small')).toBeDefined();
});

test('damaged files are as none, and the next review writes them anew', async () => {
  await keep(read);
  const file = join(answers, readdirSync(answers)[0]!);
  const whole = readFileSync(file);
  for (const at of [0, 50, whole.length - 9]) {
    const damaged = Buffer.from(whole);
    damaged[at]! ^= 4;
    writeFileSync(file, damaged);
    expect(known('lm.Small')).toBeUndefined();
  }
  for (const text of ['', '\n', whole.subarray(0, whole.length >> 1)]) {
    writeFileSync(file, text);
    expect(known('lm.Small')).toBeUndefined();
  }
  await keep(read);
  expect(known('lm.Small')).toBeDefined();
  // A plain file stands where the folder should be.
  rmSync(answers, { recursive: true });
  writeFileSync(answers, '');
  await keep(read);
  expect(known('lm.Small')).toBeUndefined();
});

test('answers of the projects that were reviewed last stay', async () => {
  await keep(read);
  for (let i = 0; i < 12; i++) {
    utimesSync(join(answers, readdirSync(answers)[0]!), 1, 1);
    const cache = new AnswerCache(answers, [`project ${i}`]);
    cache.forTree(treeAt(root), 'settings', true).keep(question('lm.Small'), answer('lm.Small'), [], 0);
    cache.save();
  }
  expect(readdirSync(answers)).toHaveLength(8);
  expect(known('lm.Small', { key: 'project 11' })).toBeDefined();
});
