/** @file Wording of comments: how often the word "what" replaces the name of a thing, by room. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { globSync } from 'tinyglobby';
import { expect, it } from 'vitest';

const src = fileURLToPath(new URL('../src/', import.meta.url));

/** Most uses in 100 comment lines of a room. */
const LIMIT = 3;
interface Count {
  readonly lines: number;
  readonly uses: number;
}

/** Lines of a source text that are comments, and those of them with the word "what". */
function countOf(text: string): Count {
  let [lines, uses, isInside] = [0, 0, false];
  for (const line of text.split('\n').map((each) => each.trim())) {
    if (!isInside && !/^\/[/*]/.test(line)) continue;
    isInside = isInside ? !line.includes('*/') : line.startsWith('/*') && !line.includes('*/');
    lines++;
    if (/\bwhat\b/i.test(line)) uses++;
  }
  return { lines, uses };
}

/** A message for each room above its limit, with the files that use the word most. */
function problemsOf(texts: Readonly<Record<string, string>>): string[] {
  const files = Object.entries(texts).map(([file, text]) => ({ file, ...countOf(text) }));
  const roomOf = (file: string): string => (file.includes('/') ? file.split('/')[0]! : 'src');
  return [...new Set(Object.keys(texts).map(roomOf))].flatMap((room) => {
    const counted = files.filter(({ file }) => roomOf(file) === room);
    const sum = (of: keyof Count): number => counted.reduce((total, each) => total + each[of], 0);
    if (100 * sum('uses') <= LIMIT * sum('lines')) return [];
    const worst = counted.sort((a, b) => b.uses - a.uses || (a.file < b.file ? -1 : 1)).slice(0, 5);
    return [
      `${room}: "what" is in ${sum('uses')} of ${sum('lines')} comment lines; at most ${LIMIT} in 100. Name the thing ` +
        `instead. Most: ${worst.map(({ file, uses, lines }) => `${file} (${uses} of ${lines})`).join(', ')}.`,
    ];
  });
}

it('comments name things', () => {
  const texts = Object.fromEntries(
    globSync('**/*.ts', { cwd: src }).map((file) => [file, readFileSync(`${src}${file}`, 'utf8')]),
  );
  expect(problemsOf(texts)).toEqual([]);
});

it('a room above its limit is reported with its worst files', () => {
  const block = '/**\n * What a query may see,\n * whatever\n */\nconst what = `// what`; // what\n';
  const texts = {
    'masks/see.ts': `${block}  // Says what is wrong.\n`,
    'masks/plain.ts': '/** One line. */\n// Two\n// lines.\n',
    'main.ts': '/* Whatever. */\n',
  };
  const message =
    'masks: "what" is in 2 of 8 comment lines; at most 3 in 100. Name the thing instead. ' +
    'Most: masks/see.ts (2 of 5), masks/plain.ts (0 of 3).';
  expect(problemsOf(texts)).toEqual([message]);
});
