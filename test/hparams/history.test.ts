/** @file Histories: what was written, in which order, and where, under tsx and compiled. */
import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import ts from 'typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import {
  addTag,
  build,
  Configurable,
  clearHistory,
  clearTags,
  defineTag,
  derive,
  excludeFromPlaces,
  history,
  instance,
  isEqual,
  isSet,
  suspendTracking,
  tagged,
  unset,
} from '../../src/hparams/index.js';
import { messageOf } from './support.js';

const mark = defineTag('history.mark', 'What these tests mark.');

let limit = 10;

class Leaf extends Configurable.with({ size: tagged(z.int(), mark).default(1) }) {}
class Root extends Configurable.with({
  list: z.array(z.int()).default([]),
  table: z.record(z.string(), z.int()).default({}),
  leaf: instance(Leaf),
  limited: z
    .int()
    .transform((value, context) => {
      if (value > limit) context.addIssue('above the limit');
      return value;
    })
    .optional(),
  text: z
    .string()
    .transform(JSON.parse as (text: string) => unknown)
    .optional(),
  must: z.int(),
}) {}

test('construction, set and delete are entries with increasing numbers and the place of the caller', () => {
  function writer(): ReturnType<typeof Leaf.config> {
    const config = Leaf.config({ size: 1 });
    config.size = 2;
    unset(config, 'size');
    return config;
  }
  const entries = history(writer(), 'size');
  expect(entries.map(({ kind, value }) => [kind, value])).toEqual([
    ['set', 1],
    ['set', 2],
    ['delete', undefined],
  ]);
  expect(entries.every((entry, i) => i === 0 || entry.sequence > entries[i - 1]!.sequence)).toBe(true);
  expect(entries.map((entry) => entry.place!.functionName)).toEqual(['writer', 'writer', 'writer']);
});

test('entries of several configs lie in one order', () => {
  const [first, second] = [Leaf.config(), Leaf.config()];
  first.size = 1;
  second.size = 2;
  first.size = 3;
  const all = [...history(first), ...history(second)].sort((a, b) => a.sequence - b.sequence);
  expect(all.map((entry) => entry.value)).toEqual([1, 2, 3]);
});

test('setting the same value again is an entry', () => {
  const config = Leaf.config({ size: 1 });
  config.size = 1;
  expect(history(config).length).toBe(2);
});

test('edits in place are entries, and leave those before as they were', () => {
  const config = Root.config({ list: [1] });
  config.list.push(2);
  config.list[0] = 9;
  config.table.a = 1;
  expect(history(config).map(({ field, kind, value }) => [field, kind, value])).toEqual([
    ['list', 'set', [1]],
    ['list', 'edit', [1, 2]],
    ['list', 'edit', [9, 2]],
    ['table', 'edit', { a: 1 }],
  ]);
});

test('a suspended section leaves no entries, but its values are set and checked', () => {
  const config = Root.config();
  const result = suspendTracking(() => {
    config.must = 3;
    config.list.push(4);
    addTag(config, 'must', mark);
    expect(messageOf(() => (config.must = 0.5))).toContain('Root.must: expected an integer, got 0.5');
    return 'done';
  });
  expect([result, config.must, config.list, history(config)]).toEqual(['done', 3, [4], []]);
  expect(() =>
    suspendTracking(() => {
      throw new RangeError('x');
    }),
  ).toThrow(RangeError);
  config.must = 4;
  expect(history(config).length).toBe(1);
  expect(messageOf(() => suspendTracking(async () => {}))).toBe(
    'The function given to suspendTracking() must not be async: its later writes are tracked again.',
  );
});

test('a default that was edited in a suspended section is still an edited one', () => {
  const config = Root.config();
  suspendTracking(() => (config.leaf.size = 7));
  expect(isEqual(config, Root.config())).toBe(false);
  expect(derive(config, (draft) => void (draft.must = 1)).leaf.size).toBe(7);
});

test('clearHistory gives a copy without history', () => {
  const config = Root.config({ must: 1 });
  config.leaf.size = 2;
  clearTags(config.leaf, 'size');
  const cleared = clearHistory(config);
  expect(isEqual(cleared, config, { tags: true })).toBe(true);
  expect([history(cleared), history(cleared.leaf)]).toEqual([[], []]);
  expect([history(config).length, history(config.leaf).length]).toEqual([1, 2]);
  cleared.must = 2;
  expect(history(cleared).map((entry) => entry.value)).toEqual([2]);
});

test('what is no config has no history', () => {
  expect(messageOf(() => history(3 as never))).toBe('history() takes a config, got 3.');
  expect(messageOf(() => clearHistory({} as never))).toBe('deepCopy() takes a config, got {}.');
});

test('the files of own wrappers are passed over in places', () => {
  const config = Root.config();
  const restore = excludeFromPlaces('history.test.ts');
  config.must = 1;
  expect(history(config)[0]!.where).not.toContain('history.test.ts');
  restore();
  const again = excludeFromPlaces(import.meta.url);
  config.must = 2;
  expect(history(config)[1]!.where).not.toContain('history.test.ts');
  again();
  config.must = 3;
  expect(history(config)[2]!.where).toMatch(/^test\/hparams\/history\.test\.ts:\d+$/);
  expect(messageOf(() => excludeFromPlaces(''))).toBe(
    "excludeFromPlaces() takes the end of a file's path, or its URL, got ''.",
  );
});

test('a value that turns out wrong in build is named with the place that set it', () => {
  const config = Root.config({ must: 1 });
  config.limited = 8;
  const { line } = history(config, 'limited')[0]!.place!;
  limit = 5;
  expect(messageOf(() => build(config))).toBe(
    `Root.limited: above the limit, got 8 (at test/hparams/history.test.ts:${line})\n  while building Root`,
  );
  config.limited = 3;
  unset(config, 'must');
  const deleted = history(config, 'must')[1]!.place!.line;
  expect(messageOf(() => build(config))).toContain(`(deleted at test/hparams/history.test.ts:${deleted})`);
});

test('an error thrown inside a schema is the cause of one that names the field and the place', () => {
  const config = Root.config();
  expect(messageOf(() => (config.text = '{'))).toMatch(
    /^Root\.text: its schema failed on '\{': .*JSON.* \(at test\/hparams\/history\.test\.ts:\d+\)$/,
  );
  expect(isSet(config, 'text')).toBe(false);
});

/** A program that writes in every way there is; `// N` marks the lines in the order of the writes. */
const program = `import { z } from 'zod';
import { addTag, assign, Configurable, copy, deepCopy, defineTag, derive, history, listTags, removeTag, setPath,
  setTagged, setTags, suspendTracking, tagged, unset, unsetPath, materializeTags } from '@library';

const mark = defineTag('mark', 'Marked.');

class Leaf extends Configurable.with({
  size: tagged(z.int(), mark).default(1),
  list: z.array(z.number()).default([]),
}) {}

interface Ignored {
  // Types vanish when this is compiled, so that lines only agree through a source map.
  some: string;
}

const start = Leaf.config({ size: 2 }); // 1
start.size = 3; // 2
start.list.push(4); // 3
start.list[0] = 5; // 4
assign(start, { size: 6 }); // 5
setPath(start, 'size', '7'); // 6
addTag(start, 'list', mark); // 7
removeTag(start, 'list', mark); // 8
setTags(start, 'list', []); // 9
setTagged(start, mark, 8); // 10
start.list = [mark.new(9)]; // 11
setTagged(start, mark, 10); // 12 12
Object.assign(start, { size: 11 }); // 13
const derived = derive(deepCopy(start), (draft) => {
  draft.size = 12; // 14
  draft.list.push(13); // 15
  setTagged(draft, mark, 14); // 16 16
});
unset(derived, 'size'); // 17
unsetPath(derived, 'list'); // 18
const last = materializeTags(derived, { clearFields: true }); // 19
console.log(JSON.stringify(history(last).map((entry) => entry.where)));
`;

/** The lines of \`text\` that are marked by a comment, each as often as the comment says. */
function markedLines(text: string): number[] {
  return text.split('\n').flatMap((line, i) => {
    const marks = / \/\/ ([\d ]+)$/.exec(line)?.[1]?.split(' ') ?? [];
    return marks.map(() => i + 1);
  });
}

const library = fileURLToPath(new URL('../../src/hparams', import.meta.url));
/** The part of another room that the library imports. */
const texts = fileURLToPath(new URL('../../src/system/text', import.meta.url));
const modules = fileURLToPath(new URL('../../node_modules', import.meta.url));
let directory: string;

function transpile(from: string, to: string): void {
  const { outputText, sourceMapText } = ts.transpileModule(readFileSync(from, 'utf8'), {
    fileName: from,
    compilerOptions: {
      module: ts.ModuleKind.ESNext,
      target: ts.ScriptTarget.ES2023,
      sourceMap: true,
      sourceRoot: dirname(from),
    },
  });
  mkdirSync(dirname(to), { recursive: true });
  writeFileSync(to, outputText);
  writeFileSync(`${to}.map`, sourceMapText!);
}

beforeAll(() => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), 'luthier-history-')));
  writeFileSync(join(directory, 'package.json'), '{"type": "module"}');
  symlinkSync(modules, join(directory, 'node_modules'));
  for (const [from, to] of [
    [library, 'library'],
    [texts, 'system/text'],
  ] as const)
    for (const file of readdirSync(from, { recursive: true, encoding: 'utf8' }))
      if (file.endsWith('.ts')) transpile(join(from, file), join(directory, to, file.replace(/ts$/, 'js')));
  const source = join(directory, 'program.ts');
  const compiledLibrary = pathToFileURL(join(directory, 'library/index.js')).href;
  writeFileSync(source, program.replace('@library', compiledLibrary));
  transpile(source, join(directory, 'program.js'));
  const sourceLibrary = pathToFileURL(join(library, 'index.ts')).href;
  writeFileSync(source, program.replace('@library', sourceLibrary));
});

afterAll(() => rmSync(directory, { recursive: true }));

function run(...args: string[]): string[] {
  return JSON.parse(execFileSync(process.execPath, args, { cwd: directory, encoding: 'utf8' })) as string[];
}

test('every way to write is attributed to the line of the caller: under tsx', () => {
  expect(run('--import', import.meta.resolve('tsx'), 'program.ts')).toEqual(
    markedLines(program).map((line) => `program.ts:${line}`),
  );
});

test('every way to write is attributed to the line of the caller: compiled', () => {
  const compiled = readFileSync(join(directory, 'program.js'), 'utf8');
  expect(run('program.js')).toEqual(markedLines(compiled).map((line) => `program.js:${line}`));
});

test('every way to write is attributed to the line of the caller: compiled, with source maps', () => {
  expect(run('--enable-source-maps', 'program.js')).toEqual(
    markedLines(program).map((line) => `program.ts:${line}`),
  );
});
