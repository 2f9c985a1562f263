/** @file docs/fiddle-behaviours.md and docs/security.md name tests that exist, by their exact titles. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { root } from './pages.js';

interface Row {
  readonly number: number;
  readonly status: string;
  readonly tests: readonly { readonly file: string; readonly title: string }[];
}

const page = readFileSync(join(root, 'docs/fiddle-behaviours.md'), 'utf8');
const [behaviours, defects] = page.split('## Defects that are absent').map(rowsOf);

/** The rows of all tables in a part of the page. */
function rowsOf(text: string): Row[] {
  const rows = text.split('\n').filter((line) => /^\| \d/.test(line));
  return rows.map((line) => {
    const cells = line.slice(2, -2).split(' | ');
    const tests = cells.at(-1)!.split('<br>').filter(Boolean);
    return {
      number: Number(cells[0]),
      status: cells.length === 4 ? cells[2]! : 'same',
      tests: tests.map((reference) => {
        const [, file, title] = /^`(.+)` “(.+)”$/.exec(reference) ?? [];
        expect(title, `${reference} in ${line}`).toBeDefined();
        return { file: file!, title: title! };
      }),
    };
  });
}

/** What stands as a test's first argument, before what it runs. */
function titlesIn(file: string): Set<string> {
  const text = existsSync(join(root, file)) ? readFileSync(join(root, file), 'utf8') : '';
  const literals = text.matchAll(/\(\s*(['"`])((?:\\.|(?!\1).)*)\1,\s/g);
  return new Set([...literals].map(([, , title]) => title!.replace(/\\(.)/g, '$1')));
}

test('every test that the page names is there', () => {
  const titles = new Map<string, Set<string>>();
  const missing: string[] = [];
  for (const { file, title } of [...behaviours!, ...defects!].flatMap((row) => row.tests)) {
    if (!titles.has(file)) titles.set(file, titlesIn(file));
    if (!titles.get(file)!.has(title)) missing.push(`${file}: ${title}`);
  }
  expect(missing).toEqual([]);
  expect(titles.size).toBeGreaterThan(15);
});

test('every behaviour has a status and, unless it is moot, a test; every defect has a test', () => {
  for (const { number, status, tests } of [...behaviours!, ...defects!]) {
    expect(status, String(number)).toMatch(/^(same(: .+)?|(differs|moot): .+)$/);
    if (!status.startsWith('moot')) expect(tests.length, String(number)).toBeGreaterThan(0);
  }
});

test('numbers rise, and none is left out of the defects', () => {
  const numbers = behaviours!.map((row) => row.number);
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  expect([numbers[0], numbers.at(-1)]).toEqual([1, 96]);
  expect(defects!.map((row) => row.number)).toEqual(defects!.map((_, i) => i + 1));
});

test('every test that docs/security.md names is there', () => {
  const text = readFileSync(join(root, 'docs/security.md'), 'utf8').replace(/\s+/g, ' ');
  let file = '';
  const missing: string[] = [];
  let named = 0;
  for (const [, path, title] of text.matchAll(/`(test\/[^`]+)`|“([^”]+)”/g)) {
    if (path !== undefined) file = path;
    else {
      named++;
      if (!titlesIn(file).has(title!)) missing.push(`${file}: ${title}`);
    }
  }
  expect(missing).toEqual([]);
  expect(named).toBeGreaterThan(15);
});
