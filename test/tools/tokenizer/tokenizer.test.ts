/** @file `luthier tokenizer`: what it learns, writes and shows. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { plain } from '../../../src/system/text/terminalOutput.js';
import { UsageError } from '../../../src/system/text/usageError.js';
import type { Arguments, Report } from '../../../src/tools/command.js';
import { tokenizer } from '../../../src/tools/tokenizer/index.js';
import { runLuthier } from '../../command.js';
import { corpusDirectory } from '../../inputs/corpus.js';
import { prose } from '../../inputs/text/vocabularies/trainedBpe.js';

const directory = corpusDirectory({ 'a.txt': prose, 'b.txt': 'a\nb' });
const out = join(directory, 'made', 'tokenizer.json');

const run = (positionals: readonly string[], values: Arguments['values'] = {}): Promise<Report> =>
  tokenizer.run({ positionals, values, changes: [], format: 'text', warn: () => {} });

const train = (values: object = {}) =>
  run(['train'], { input: [join(directory, '*.txt')], out, vocab_size: 320, ...values });

test('trains, writes the same file each time, and shows tokens and statistics', async () => {
  const report = await train();
  expect(report.text(plain)).toMatch(
    new RegExp(`^${out}: 320 tokens, learned from 2 files of 17\\.5 kB with \\d+ distinct words\\.$`),
  );
  const first = readFileSync(out, 'utf8');
  await train();
  expect(readFileSync(out, 'utf8')).toBe(first);
  const shown = await run(['inspect', out], { text: ' readonly<|endoftext|>\nÖ' });
  expect(shown.text(plain)).toBe(
    [
      ...[' readonly|<|endoftext|>|⏎', '\ufffd|\ufffd', '', '5 tokens for 25 B: 5.00 bytes a token'],
      ...['5 of 320 ids used, 0 unknown; decoding reproduces the text', 'Special tokens: <|endoftext|> (0)'],
    ].join('\n'),
  );
  const paint = (style: unknown, text: string) => `<${style}>${text}</>`;
  expect(shown.text(paint).split('\n')[0]).toBe(
    '<bgBlue> readonly</><bgGreen><|endoftext|></><bgMagenta>⏎</>',
  );
  const files = await run(['inspect', out], { input: [join(directory, 'b.txt')] });
  expect(files.text(plain).split('\n')[0]).toBe('3 tokens for 3 B: 1.00 bytes a token');
  expect(files.json()).toEqual({
    ...{ vocabSize: 320, bytes: 3, tokens: 3, unknown: 0, isLossless: true, used: 3 },
  });
});

test('a corpus that is too small for the vocabulary says so', async () => {
  const seldom = await train({ vocab_size: 5000, min_frequency: 90 });
  expect(seldom.text(plain)).toMatch(/ No further pair occurs 90 times: --vocab_size asked for 5000\.$/);
  const report = await train({ vocab_size: 5000, special_token: ['<pad>', '<eos>'] });
  expect((report.json() as { vocabSize: number }).vocabSize).toBeGreaterThan(
    (seldom.json() as { vocabSize: number }).vocabSize,
  );
  expect(report.text(plain)).toMatch(/ No further pair occurs 2 times: --vocab_size asked for 5000\.$/);
  expect(
    JSON.parse(readFileSync(out, 'utf8')).added_tokens.map(({ content }: { content: string }) => content),
  ).toEqual(['<pad>', '<eos>']);
});

test.each([
  [['learn'], {}, "luthier tokenizer has no action 'learn'. The actions are: train, inspect."],
  [
    ['train'],
    {},
    'luthier tokenizer train needs --input, the files to learn from, and --out, the file to write.',
  ],
  [['train', 'x'], {}, "luthier tokenizer train takes no file; got 'x'. Give --input and --out."],
  [['inspect'], {}, 'luthier tokenizer inspect takes the path of a tokenizer.json.'],
  [
    ['inspect', 'x'],
    { out: 'y' },
    'luthier tokenizer inspect has no flag --out. Its flags: --input, --text.',
  ],
  [
    ['inspect', 'x'],
    { text: 'a', input: ['b'] },
    'luthier tokenizer inspect: --text shows a text, --input counts files; give one of them.',
  ],
  [
    ['train'],
    { input: ['x'], out: 'y', vocab_size: 256 },
    '--vocab_size: expected 257 or more, for 256 bytes and 1 special token; got 256.',
  ],
  [
    ['train'],
    { input: ['x'], out: 'y', special_token: ['a', 'a'] },
    '--special_token: expected different tokens; got a, a.',
  ],
])('%j %j is a wrong command line', async (positionals, values, message) => {
  await expect(run(positionals, values)).rejects.toThrow(new UsageError(message));
});

test('files that are missing end the command with 2', async () => {
  const args = ['tokenizer', 'train', '--input=missing/*.txt', `--out=${out}`];
  const { code, stderr } = await runLuthier(args, directory);
  expect({ code, stderr: stderr.split('(')[0] }).toEqual({
    code: 2,
    stderr: "No file matches 'missing/*.txt' ",
  });
});
