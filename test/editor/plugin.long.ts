/** @file What editors show of hyperparameters, asked of a real tsserver, the process that editors talk to. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';

const fixture = resolve('test/fixtures/editor/hover.ts');
const text = readFileSync(fixture, 'utf8');

interface Answer {
  documentation?: { text: string }[] | string;
  displayString?: string;
  tags?: { name: string; text?: { text: string }[] | string }[];
}

let server: ChildProcess;
let probe: string;
let sent = 0;
const waiting = new Map<number, (body: unknown) => void>();

function ask(command: string, values: object): Promise<unknown> {
  const seq = ++sent;
  server.stdin!.write(`${JSON.stringify({ seq, type: 'request', command, arguments: values })}\n`);
  return new Promise((settle) => waiting.set(seq, settle));
}

beforeAll(async () => {
  // The package stands in node_modules as a link that npm makes; here it is found without an install, too.
  probe = mkdtempSync(join(tmpdir(), 'luthier-editor-'));
  mkdirSync(join(probe, 'node_modules'));
  symlinkSync(resolve('src/editor'), join(probe, 'node_modules/luthier-editor'), 'dir');
  server = spawn(process.execPath, [
    resolve('node_modules/typescript/lib/tsserver.js'),
    ...['--disableAutomaticTypingAcquisition', '--suppressDiagnosticEvents'],
    ...['--pluginProbeLocations', probe],
  ]);
  createInterface({ input: server.stdout! }).on('line', (line) => {
    if (!line.startsWith('{')) return;
    const message = JSON.parse(line) as { type: string; request_seq: number; body: unknown };
    if (message.type !== 'response') return;
    waiting.get(message.request_seq)?.(message.body);
    waiting.delete(message.request_seq);
  });
  server.stdin!.write(
    `${JSON.stringify({ seq: ++sent, type: 'request', command: 'open', arguments: { file: fixture } })}\n`,
  );
});

afterAll(() => {
  server.kill();
  rmSync(probe, { recursive: true });
});

/** The place of the last `name` before the comment. */
function placeOf(name: string, comment: string): { file: string; line: number; offset: number } {
  const at = text.lastIndexOf(name, text.indexOf(`/* ${comment} */`));
  const before = text.slice(0, at).split('\n');
  return { file: fixture, line: before.length, offset: before.at(-1)!.length + 1 };
}

function plain(parts: { text: string }[] | string | undefined): string {
  return typeof parts === 'string' ? parts : (parts ?? []).map((part) => part.text).join('');
}

async function hover(name: string, comment: string): Promise<[type: string, text: string, default_: string]> {
  const answer = (await ask('quickinfo', placeOf(name, comment))) as Answer;
  const tag = answer.tags?.find((each) => each.name === 'default');
  return [answer.displayString!, plain(answer.documentation), plain(tag?.text)];
}

test('hovering a field shows its description and its default', async () => {
  expect(await hover('inputDims', 'read')).toEqual([
    '(property) inputDims: number',
    'Depth of the input.',
    '',
  ]);
  expect(await hover('mode', 'meta')).toEqual([
    '(property) mode: "fast" | "exact"',
    'How it is computed.',
    "'fast'",
  ]);
  expect(await hover('rate', 'write')).toEqual([
    '(property) rate: number',
    'Fraction that is dropped.',
    '0.1',
  ]);
});

test('so it is in config({ … }), in drafts, in hp and for functions', async () => {
  expect((await hover('inputDims', 'literal'))[1]).toBe('Depth of the input.');
  expect((await hover('peak', 'call'))[1]).toBe('The highest value.');
  expect((await hover('inputDims', 'draft')).slice(1)).toEqual(['Depth of the wide input.', '8']);
  expect((await hover('inputDims', 'hp')).slice(1)).toEqual(['Depth of the wide input.', '8']);
  expect((await hover('rate', 'inherited hp')).slice(1)).toEqual(['Fraction that is dropped.', '0.1']);
});

test('comments keep working, and what has no description shows none', async () => {
  expect((await hover('hasBias', 'comment')).slice(1)).toEqual(['Said in a comment.', 'true']);
  expect((await hover('plain', 'nothing')).slice(1)).toEqual(['', '']);
  expect((await hover('console', 'nothing'))[1]).not.toMatch(/Fraction|Depth/);
});

test('completions show it too', async () => {
  const [details] = (await ask('completionEntryDetails', {
    ...placeOf('rate', 'write'),
    entryNames: ['inputDims'],
  })) as Answer[];
  expect(plain(details!.documentation)).toBe('Depth of the input.');
});

test('editors find the plugin: tsconfig names a package that npm links from this repository', () => {
  const read = (file: string): any => JSON.parse(readFileSync(file, 'utf8'));
  expect(read('tsconfig.json').compilerOptions.plugins).toEqual([{ name: 'luthier-editor' }]);
  expect(read('src/editor/package.json').name).toBe('luthier-editor');
  expect(read('package.json').devDependencies['luthier-editor']).toBe('file:src/editor');
  expect(read('package-lock.json').packages['node_modules/luthier-editor']).toEqual({
    resolved: 'src/editor',
    link: true,
  });
});
