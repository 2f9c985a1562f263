/** @file What training fixed of its data is what later processes read with, or compare with what is there by then. */
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { loadRun } from '../../src/trained/index.js';
import { oneProcess, temporaryDirectory } from '../command.js';
import { corpusDirectory } from '../inputs/corpus.js';
import { longTest } from '../longTest.js';
import { metricLines } from './runs.js';

const faults = fileURLToPath(new URL('../fixtures/faults', import.meta.url));
const experiments = join(faults, 'experiments');
const run = oneProcess('src/main.ts', faults);

const text = Array.from({ length: 200 }, (_, i) => `${i} and ${i + 1}\n`).join('');
const sha256Of = (contents: string) => createHash('sha256').update(contents).digest('hex');
const corpus = join(corpusDirectory({ 'counting.txt': text }), 'counting.txt');
const directory = temporaryDirectory();
const record = join(directory, 'data/train.json');

const flags = (mode: string, ...sets: readonly string[]) => [
  ...['--exp=faulty.Characters', `--job_log_dir=${directory}`, `--mode=${mode}`],
  ...[`dataPath=${corpus}`, 'numTrainSteps=6', ...sets].flatMap((set) => ['--set', set]),
];

const lastLoss = () => {
  const lines = metricLines(directory).filter(({ program }) => program === 'eval_test_validation');
  return lines.at(-1)!['Metrics/log_pplx'];
};

let trained: unknown;
let said: string;

beforeAll(async () => {
  const { code, stderr, stdout } = await run(flags('train_and_eval'));
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  [trained, said] = [lastLoss(), stdout];
});

test('training records the tokenizer and files that it reads', () => {
  expect(JSON.parse(readFileSync(record, 'utf8'))).toEqual({
    vocabSize: 15,
    tokenizer: {
      class: 'CharTokenizer',
      identity: expect.stringMatching(/^CharTokenizer of 15 characters \(sha256 [0-9a-f]{16}\)$/),
      learned: { vocabulary: '\n 0123456789adn' },
    },
    files: [{ name: corpus, path: corpus, size: text.length, sha256: sha256Of(text) }],
    contents: expect.stringMatching(/^1 document of \d+ tokens \(sha256 [0-9a-f]{16}\)$/),
  });
});

longTest('training says once that the model has ids without text, which nothing draws', async () => {
  const undrawn =
    "Of the model's 256 ids, 241 have no text in the vocabulary of the input (15 …): decoders never draw such ids.";
  expect(said.split('\n').filter((line) => line === undrawn)).toHaveLength(1);
  const decoder = ['temperature=50', 'k=0'].map((set) => `task.decode.decoder.${set}`);
  const decoded = await run(flags('decode', 'numSamples=2', ...decoder));
  expect(decoded).toMatchObject({ code: 0, stderr: '' });
  expect(decoded.stdout).not.toContain(undrawn);
  const loaded = await loadRun(directory, { experiments: [experiments] });
  for (let seed = 0; seed < 9; seed++)
    expect(await loaded.generate('1 and ', { temperature: 50, topK: 0, seed })).toMatch(/^[\n 0-9adn]+$/);
  await loaded.dispose();
});

test('a vocabulary that does not fit the digest beside it is refused', async () => {
  const contents = readFileSync(record, 'utf8');
  const changed = JSON.parse(contents);
  changed.tokenizer.learned.vocabulary = [...changed.tokenizer.learned.vocabulary].reverse().join('');
  writeFileSync(record, JSON.stringify(changed));
  const loaded = await loadRun(directory, { experiments: [experiments] });
  await expect(loaded.generate('1 and ')).rejects.toThrow(
    /^\S+data\/train\.json: damaged: it has the identity CharTokenizer of 15 characters \(sha256 [\da-f]{16}\), and beside it the state of CharTokenizer of 15 characters \(sha256 [\da-f]{16}\)\. Ids would mean something else: restore the file\.$/,
  );
  expect((await run(flags('eval'))).code).toBe(1);
  writeFileSync(record, contents);
});

test('an evaluation uses training’s vocabulary, even if the text has changed', async () => {
  expect((await run(flags('eval'))).code).toBe(0);
  expect(lastLoss()).toBe(trained);
  // The training part loses the digit 0: a vocabulary that is learned anew has other ids from there on.
  const cut = Math.floor(text.length * 0.9);
  const changed = text.slice(0, cut).replaceAll('0', '1') + text.slice(cut);
  writeFileSync(corpus, changed.replaceAll('0', '1'));
  const { code, stderr, stdout } = await run(flags('eval'));
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toMatch(
    /^eval_test_validation: its data is not what this run read at first, so figures of before do not compare: .*counting\.txt has other bytes \(sha256 [0-9a-f]{16}, was [0-9a-f]{16}\); the data is 1 document of .*, was 1 document of .* \(.*data\/eval_test_validation\.json\)\.$/m,
  );
  expect(Math.abs(Number(lastLoss()) - Number(trained))).toBeLessThan(0.5);
});

test('characters that training did not know, and tokenizers of other ids, are errors', async () => {
  writeFileSync(corpus, `${text.slice(0, -1)}!`);
  const grown = await run(flags('eval'));
  expect(grown).toMatchObject({
    code: 1,
    stderr:
      `TextInput 'validation': CharTokenizer: the character "!" (U+0021) at line 200, column 12 of ${corpus} is not ` +
      `among the 15 characters of its vocabulary. The run is trained with the tokenizer of ${record}.\n`,
  });
  writeFileSync(corpus, text);
  const other = await run(flags('eval', 'datasets[1].tokenizer=ByteTokenizer'));
  expect(other).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^Input 'validation': its tokenizer is ByteTokenizer, and the run is trained with CharTokenizer of 15 characters \(sha256 [0-9a-f]{16}\) \(.*data\/train\.json\)\. The same ids would mean other text: give the input the tokenizer of training, or use another --job_log_dir\.\n$/,
    ),
  });
});

test('tokenizers of evaluations and decodes are compared before the first step', async () => {
  const fresh = temporaryDirectory();
  const start = (...sets: string[]) =>
    run(
      [...flags('train_and_decode', ...sets), `--job_log_dir=${fresh}`].filter(
        (flag) => !flag.includes(directory),
      ),
    );
  // The size of the vocabulary is known without the text; a vocabulary that is to be learned is not.
  for (const path of ['datasets[1]', 'decodeDatasets[0]']) {
    const { code, stderr, stdout } = await start(`${path}.tokenizer=ByteTokenizer`);
    expect({ code, stderr }, path).toEqual({
      code: 1,
      stderr: expect.stringMatching(
        /^Input 'validation': its tokenizer is ByteTokenizer, and the run is trained with CharTokenizer of 15 characters .*\.\n$/,
      ),
    });
    expect(stdout).not.toContain('step');
  }
  const learned = await start(
    'datasets[0].tokenizer=ByteTokenizer',
    'decodeDatasets[0].tokenizer=ByteTokenizer',
  );
  expect(learned).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^Input 'validation': its tokenizer is CharTokenizer of 15 characters .*, and the run is trained with ByteTokenizer .*\n$/,
    ),
  });
  expect(metricLines(fresh)).toEqual([]);
});

test('resumed training reports changed files', async () => {
  writeFileSync(corpus, text + text);
  const { code, stderr } = await run(flags('train', 'numTrainSteps=9'));
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^Input 'train' cannot resume from the saved state, as its data has changed since: corpus is .*\. Restore the data, or start a new run in another directory\. Since the run began: .*counting\.txt has \d+ bytes, had \d+; the data is /,
  );
});
