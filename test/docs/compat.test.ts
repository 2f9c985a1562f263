/** @file What docs/compat.md names as Luthier's is there. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { globSync } from 'tinyglobby';
import { expect, test } from 'vitest';
import { root } from './pages.js';

function sources(): string {
  const files = ['src', 'experiments'].flatMap((directory) =>
    readdirSync(join(root, directory), { recursive: true, encoding: 'utf8' }).map((name) =>
      join(root, directory, name),
    ),
  );
  const code = files.filter((file) => file.endsWith('.ts')).map((file) => readFileSync(file, 'utf8'));
  return [...files, ...code].join('\n');
}

/** Names that the TypeScript files which `pattern` matches export by such a text. */
function exportedNames(pattern: string, text: RegExp): Set<string> {
  const files = globSync(pattern, { cwd: root, absolute: true });
  const found = files.flatMap((file) => [...readFileSync(file, 'utf8').matchAll(text)]);
  return new Set(found.flatMap(([, names]) => names!.match(/\w+/g) ?? []));
}

test('what stands for a row of Fiddle is reached by a sub-path of the package', () => {
  const page = readFileSync(join(root, 'docs/compat.md'), 'utf8');
  const rows = page.slice(page.indexOf('## Fiddle'), page.indexOf('## Pax')).match(/^\| .*$/gm)!;
  const cells = rows.map((row) => row.split(' | ').slice(1).join(' | '));
  const named = new Set(cells.join(' ').match(/\b[a-z]+[A-Z]\w+/g));
  const declared = exportedNames('src/**/*.ts', /^export (?:async )?(?:function|const) (\w+)/gm);
  const reached = exportedNames('src/*/index.ts', /^export (?:type )?\{([^}]*)\}/gm);
  const functions = [...named].filter((name) => declared.has(name));
  expect(functions.length).toBeGreaterThan(60);
  expect(functions.filter((name) => !reached.has(name))).toEqual([]);
});

test('every name in the column of Luthier exists', () => {
  const words = new Set(sources().match(/\w+/g));
  const lines = readFileSync(join(root, 'docs/compat.md'), 'utf8').split('\n');
  const unknown: string[] = [];
  let named = 0;
  for (const line of lines.filter((text) => text.startsWith('| '))) {
    const cell = line.split(' | ').slice(1).join(' | ');
    const present = cell
      .split(/[.;:] /)
      .filter((part, i, parts) => !/not yet/i.test(part + (parts[i - 1] ?? '')));
    for (const [, name] of present.join(' ').matchAll(/`([^`]+)`/g)) {
      const parts = name!.match(/[A-Za-z]\w+/g) ?? [];
      named += parts.length;
      unknown.push(...parts.filter((part) => !words.has(part)).map((part) => `${part} in ${line}`));
    }
  }
  expect(unknown).toEqual([]);
  expect(named).toBeGreaterThan(100);
});
