/** @file Trees for the terminal. */
import { Writable } from 'node:stream';
import { stripVTControlCharacters, styleText } from 'node:util';
import { afterEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { addTag, Configurable, defineTag, instance, printTree } from '../../../src/hparams/index.js';
import { chain, diamond, Inner, Leaf } from '../randomGraphs.js';

const Width = defineTag('tree.Width', 'Sizes of layers.');

class Part extends Configurable.with({
  size: z.int().describe('How wide it is.'),
  name: z.string().default('é漢字'),
}) {}
class Whole extends Configurable.with({
  first: instance(Part),
  parts: z.array(z.union([instance(Part), z.int()])).default([]),
  plain: z.array(z.int()).default([]),
  table: z.record(z.string(), z.any()).default({}),
}) {}

const shared = Part.config({ size: 1 });
const whole = Whole.config({ parts: [shared, 3], plain: [1, 2], table: { 'a b': shared } });

afterEach(() => vi.unstubAllEnvs());

test('a tree has a line for each field, sub-configs indented, shared ones marked', () => {
  expect(printTree(whole, { colour: false })).toBe(
    `Whole
├─ first: Part
│  ├─ size: <not set>
│  └─ name: 'é漢字'
├─ parts: 2 items
│  ├─ [0]: Part
│  │  ├─ size: 1
│  │  └─ name: 'é漢字'
│  └─ [1]: 3
├─ plain: [1, 2]
└─ table: 1 item
   └─ ['a b']: Part ↑ same as parts[0]`,
  );
});

test('defaults can be left out or marked, depth can be limited, fields can be described', () => {
  expect(printTree(whole, { colour: false, defaults: 'hide', maxDepth: 1 })).toBe(
    `Whole
├─ parts: 2 items
│  ├─ [0]: Part …
│  └─ [1]: 3
├─ plain: [1, 2]
└─ table: 1 item
   └─ ['a b']: Part ↑ same as parts[0]`,
  );
  expect(printTree(shared, { colour: false, defaults: 'mark', descriptions: true })).toBe(
    "Part\n├─ size: 1  # How wide it is.\n└─ name: 'é漢字' (default)",
  );
});

test('tags stand beside the names', () => {
  const part = Part.config({ size: 1 });
  addTag(part, 'size', Width);
  expect(printTree(part, { colour: false, defaults: 'hide' })).toBe('Part\n└─ size #tree.Width: 1');
});

test('with colours, classes stand out and defaults stand back', () => {
  const paint = (style: 'dim' | 'cyan', text: string) => styleText(style, text, { validateStream: false });
  const [first, second, third] = printTree(shared, { colour: true }).split('\n');
  expect(first).toBe(paint('cyan', 'Part'));
  expect(second).toBe(`${paint('dim', '├─ ')}size: 1`);
  expect(third).toBe(['└─ ', 'name', ': ', "'é漢字'"].map((text) => paint('dim', text)).join(''));
});

function streamLike(isTTY: boolean, columns: number): NodeJS.WriteStream {
  const stream = new Writable();
  return Object.assign(stream, { isTTY, columns, getColorDepth: () => 8 }) as unknown as NodeJS.WriteStream;
}

test('a terminal gets colours and lines of its width, a file gets neither', () => {
  const terminal = printTree(shared, { stream: streamLike(true, 12) });
  expect(terminal).not.toBe(stripVTControlCharacters(terminal));
  expect(stripVTControlCharacters(terminal)).toBe("Part\n├─ size: 1\n└─ name: 'é…");
  expect(printTree(shared, { stream: streamLike(false, 12) })).toBe(printTree(shared, { colour: false }));
});

test('FORCE_COLOR brings colours to files', () => {
  vi.stubEnv('FORCE_COLOR', '1');
  const text = printTree(shared, { stream: streamLike(false, 80) });
  expect(stripVTControlCharacters(text)).not.toBe(text);
});

test('NO_COLOR takes the colours from a terminal', async () => {
  const { WriteStream } = await import('node:tty');
  vi.stubEnv('NO_COLOR', '1');
  vi.stubEnv('FORCE_COLOR', undefined);
  const stream = streamLike(true, 80);
  stream.getColorDepth = () => WriteStream.prototype.getColorDepth.call(stream);
  expect(printTree(shared, { stream })).toBe(printTree(shared, { colour: false }));
});

test('lines are cut by the columns that they take: letters of two columns, and of none', () => {
  const cut = (label: string, maxWidth: number) =>
    printTree(Leaf.config({ label }), { colour: false, defaults: 'hide', maxWidth }).split('\n')[1];
  expect(cut('漢字漢字', 16)).toBe("└─ label: '漢字…");
  expect(cut('漢字漢字', 17)).toBe("└─ label: '漢字…");
  expect(cut('漢字漢字', 20)).toBe("└─ label: '漢字漢字'");
  expect(cut('e\u0301e\u0301e\u0301e\u0301', 16)).toBe("└─ label: 'e\u0301e\u0301e\u0301e\u0301'");
  expect(cut('👍👍👍', 14)).toBe("└─ label: '👍…");
});

test('what is deep has a tree of its own below', () => {
  const lines = printTree(chain(18), { colour: false, defaults: 'hide' }).split('\n');
  expect(lines.slice(-7)).toEqual([
    `${'   '.repeat(31)}└─ [0]: Inner ↓ @1`,
    '',
    '@1: Inner',
    '├─ value: 1',
    '└─ list: 1 item',
    '   └─ [0]: Inner',
    '      └─ value: 0',
  ]);
});

test('a chain of 10,000 and a diamond of 60 levels have trees of linear size', () => {
  expect(printTree(chain(10_000), { colour: false }).length).toBeLessThan(10_000 * 600);
  const lines = printTree(diamond(60), { colour: false, defaults: 'hide' }).split('\n');
  expect(lines.filter((line) => line.includes('↑ same as ')).length).toBe(59);
});

test('a config that contains itself has a tree', () => {
  const root = Inner.config();
  root.left = root;
  expect(printTree(root, { colour: false, defaults: 'hide' })).toBe('Inner\n└─ left: Inner ↑ same as <root>');
});
