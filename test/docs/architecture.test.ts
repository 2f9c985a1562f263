/** @file docs/architecture.md names rooms, files and functions that exist. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './pages.js';

const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
/** The page without what its code shows. */
const prose = page.replace(/^```[\s\S]*?^```$/gm, '');
const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter((file) => file !== '');

/** Files that a name of the page may mean: their path ends with it; tests are named by their whole path. */
const meant = (name: string): string[] =>
  files.filter((file) => file === name || (!file.startsWith('test/') && `/${file}`.endsWith(`/${name}`)));

test('every file that it names is there, and one alone has that name', () => {
  const names = [...prose.matchAll(/`([\w./-]+\.(?:ts|js|cjs|c|h))`/g)].map(([, name]) => name!);
  expect(names.length).toBeGreaterThan(50);
  const wrong = names.filter((name) => meant(name).length !== 1);
  expect(wrong.map((name) => `${name}: ${meant(name).join(' or ') || 'no such file'}`)).toEqual([]);
});

test('a function or class that it names with a file is declared there', () => {
  const pairs = [...prose.matchAll(/`([\w.]+)(?:\([^`]*\))?`\s+(?:in\s+)?\(?`([\w./-]+\.(?:ts|c))`/g)];
  expect(pairs.length).toBeGreaterThan(25);
  const missing = pairs.filter(([, name, file]) => {
    const text = meant(file!).map((path) => readFileSync(join(root, path), 'utf8'));
    return !name!.split('.').every((part) => text.some((source) => new RegExp(`\\b${part}\\b`).test(source)));
  });
  expect(missing.map(([, name, file]) => `${name} in ${file}`)).toEqual([]);
});

test('its table has every room', () => {
  const rooms = [...prose.matchAll(/^\| `src\/([\w.]+)` \|/gm)].map(([, room]) => room!);
  expect(rooms.sort()).toEqual(readdirSync(join(root, 'src')).sort());
});
