/** @file docs/architecture.md and the pages below it name rooms, files and functions that exist, and are short. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './pages.js';

const below = readdirSync(join(root, 'docs/architecture')).map((name) => `docs/architecture/${name}`);
const pages = ['docs/architecture.md', ...below].map((name): [string, string] => [
  name,
  readFileSync(join(root, name), 'utf8'),
]);
/** The pages without what their code shows. */
const prose = pages.map(([, page]) => page.replace(/^```[\s\S]*?^```$/gm, '')).join('\n');
const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter((file) => file !== '');

/** Files that a name of the pages may mean: their path ends with it; tests are named by their whole path. */
const meant = (name: string): string[] =>
  files.filter((file) => file === name || (!file.startsWith('test/') && `/${file}`.endsWith(`/${name}`)));

test('each is read in ten minutes: 250 lines at most', () => {
  const lengths = pages.map(([name, page]): [string, number] => [name, page.trimEnd().split('\n').length]);
  expect(lengths.filter(([, length]) => length > 250)).toEqual([]);
});

test('links between them lead to pages and headings', () => {
  const slug = (heading: string) =>
    heading
      .toLowerCase()
      .replace(/[^\w\s-]/g, '')
      .replaceAll(' ', '-');
  const wrong = pages.flatMap(([name, page]) =>
    [...page.matchAll(/\]\(([\w./-]*)(?:#([\w-]+))?\)/g)]
      .filter(([, target, anchor]) => {
        const file = target === '' ? name : join(dirname(name), target!);
        if (!files.includes(file)) return true;
        const headings = [...readFileSync(join(root, file), 'utf8').matchAll(/^#+ (.*)$/gm)];
        return anchor !== undefined && !headings.some(([, heading]) => slug(heading!) === anchor);
      })
      .map(([link]) => `${name}: ${link}`),
  );
  expect(wrong).toEqual([]);
});

test('every file that they name is there, and one alone has that name', () => {
  const names = [...prose.matchAll(/`([\w./-]+\.(?:ts|js|cjs|c|h))`/g)].map(([, name]) => name!);
  expect(names.length).toBeGreaterThan(50);
  const wrong = names.filter((name) => meant(name).length !== 1);
  expect(wrong.map((name) => `${name}: ${meant(name).join(' or ') || 'no such file'}`)).toEqual([]);
});

test('a function or class that they name with a file is declared there', () => {
  const pairs = [...prose.matchAll(/`([\w.]+)(?:\([^`]*\))?`\s+(?:in\s+)?\(?`([\w./-]+\.(?:ts|c))`/g)];
  expect(pairs.length).toBeGreaterThan(25);
  const missing = pairs.filter(([, name, file]) => {
    const text = meant(file!).map((path) => readFileSync(join(root, path), 'utf8'));
    return !name!.split('.').every((part) => text.some((source) => new RegExp(`\\b${part}\\b`).test(source)));
  });
  expect(missing.map(([, name, file]) => `${name} in ${file}`)).toEqual([]);
});

test('the table of rooms has every room', () => {
  const rooms = [...prose.matchAll(/^\| `src\/([\w.]+)` \|/gm)].map(([, room]) => room!);
  expect(rooms.sort()).toEqual(readdirSync(join(root, 'src')).sort());
});
