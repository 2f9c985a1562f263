/** @file Tasks of language models: lm-evaluation-harness' metrics, generated answers, and files with bad lines. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { continuationRow, readTask, rollingRows } from '../../../src/tasks/index.js';
import { evaluateCommand } from '../../../src/tools/trained/evaluateRun.js';
import { evaluateTask, importPublished, loadRun, type TrainedRun } from '../../../src/trained/index.js';
import { temporaryDirectory } from '../../command.js';

const published = join(import.meta.dirname, '../../fixtures/published');
/** Written by scripts/record_evaluations.py. */
const record = JSON.parse(readFileSync(join(published, 'evaluations.json'), 'utf8')) as {
  settings: object;
  choices: { context: string; choices: string[]; answer: number }[];
  texts: { text: string }[];
  metrics: Record<'choices' | 'texts', Record<string, number>>;
  likelihoods: number[][];
};

let run: TrainedRun;
let directory: string;

beforeAll(async () => {
  const folder = join(temporaryDirectory(), 'gpt2');
  cpSync(join(published, 'gpt2'), folder, { recursive: true });
  writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify(record.settings));
  directory = join(temporaryDirectory(), 'run');
  await importPublished({
    ...{ folder, jobLogDir: directory, dtype: 'float32', maxLength: undefined, files: ['*.txt'] },
    ...{ ignoredFields: [], ignoredTensors: [] },
  });
  run = await loadRun(directory, { engine: 'eager' });
});

afterAll(() => run.dispose());

/** A file of these lines. */
function fileOf(...lines: readonly (object | string)[]): string {
  const file = join(temporaryDirectory(), 'some.jsonl');
  const texts = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)));
  writeFileSync(file, `${texts.join('\n')}\n`);
  return file;
}

const close = (expected: Record<string, number>) =>
  Object.fromEntries(
    Object.entries(expected).map(([name, value]) => [name, expect.closeTo(Math.log(value + 1), 4)]),
  );

const logs = (metrics: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.entries(metrics).map(([name, value]) => [name, Math.log(value + 1)]));

test('log-likelihoods of choices are those of lm-evaluation-harness', async () => {
  const encoder = {
    encode: (text: string) => run.tokenizer.encode(text),
    ...{ prefixId: run.tokenizer.bosId!, maxTokens: run.maxTokens },
  };
  const rows = record.choices
    .slice(0, 6)
    .flatMap(({ context, choices }) =>
      choices.map((choice) => continuationRow(encoder, context, ` ${choice}`)),
    );
  const found = await run.logLikelihoods(rows);
  const expected = record.likelihoods.flat();
  for (const [i, score] of found.entries())
    expect(Math.abs(score / expected[i]! - 1), `${i}: ${score}`).toBeLessThan(1e-4);
});

test('metrics of choices and texts are those of lm-evaluation-harness', async () => {
  const choices = await evaluateTask(run, readTask(fileOf(...record.choices)));
  const { acc_stderr, acc_norm_stderr, ...shares } = choices.metrics;
  expect(shares).toEqual(record.metrics.choices);
  expect([acc_stderr, acc_norm_stderr]).toEqual([0.25, 0.25].map((p) => Math.sqrt((p * (1 - p)) / 23)));
  const texts = await evaluateTask(run, readTask(fileOf(...record.texts)));
  expect([texts.task, texts.kind, texts.examples]).toEqual(['some', 'perplexity', 10]);
  // Perplexities of a random model are large: their logarithms are compared.
  expect(logs(texts.metrics)).toEqual(close(record.metrics.texts));
});

test('greedy continuations are compared with answers up to a stop', async () => {
  const greedy = await run.generate('one two', { temperature: 0, maxTokens: 6 });
  const task = readTask(
    fileOf(
      { prompt: 'one two', answer: greedy, maxTokens: 6, stop: ['\u0000'] },
      { prompt: 'one two', answer: ['no', ` ${greedy}\n`], maxTokens: 6, stop: ['\u0000'] },
      { prompt: 'one two', answer: greedy, maxTokens: 6, stop: [greedy.trim().slice(1, 2)] },
      { prompt: 'one two', answer: 'three', maxTokens: 6 },
    ),
  );
  const { metrics } = await evaluateTask(run, task);
  expect(metrics).toEqual({ exact_match: 0.5, exact_match_stderr: Math.sqrt(0.25 / 3) });
});

test('the command prints a table, or JSON with standard errors', async () => {
  const file = fileOf({ context: 'one', choices: ['two', 'six'], answer: 0 });
  const values = { tasks: [file], engine: 'eager' };
  const report = await evaluateCommand.run({ positionals: [directory], values, format: 'text' } as never);
  const [result] = (report.json!() as { tasks: { metrics: { acc: number; acc_norm: number } }[] }).tasks;
  const { acc, acc_norm } = result!.metrics;
  expect(report.json!()).toEqual({
    ...{ experiment: 'gpt2', step: 0, isAveraged: false },
    tasks: [{ task: 'some', kind: 'multipleChoice', examples: 1, metrics: { acc, acc_norm } }],
  });
  expect(
    report
      .text({} as never)
      .split('\n')
      .map((line) => line.trimEnd()),
  ).toEqual([
    'gpt2 at step 0',
    'task  examples  metric     value  error',
    `some         1  acc       ${acc.toFixed(4)}`,
    `some         1  acc_norm  ${acc_norm.toFixed(4)}`,
  ]);
  await expect(
    evaluateCommand.run({ positionals: [directory], values: {}, format: 'text' } as never),
  ).rejects.toThrow('luthier evaluate: no tasks: --tasks=FILE,… is required.');
});

test('windows score each token once, with as much context as there is room for', () => {
  const encoder = { encode: (text: string) => [...text].map(Number), prefixId: 9, maxTokens: 4 };
  expect(rollingRows(encoder, '123')).toEqual([{ ids: [9, 1, 2, 3], from: 1 }]);
  expect(rollingRows(encoder, '1234567')).toEqual([
    { ids: [9, 1, 2, 3, 4], from: 1 },
    { ids: [3, 4, 5, 6, 7], from: 2 },
  ]);
  expect(continuationRow(encoder, '123456', '78')).toEqual({ ids: [4, 5, 6, 7, 8], from: 3 });
});

test('a bad line is told with its place and the keys of lines', () => {
  const keys =
    'A line has the keys context, choices, answer and delimiter (multiple choice), text (perplexity), or prompt, answer, maxTokens and stop (exact match).';
  const problemOf = (...lines: readonly (object | string)[]): string => {
    const file = fileOf(...lines);
    try {
      readTask(file);
    } catch (error) {
      return (error as Error).message.replace(file, 'FILE');
    }
    return 'none';
  };
  const good = { context: 'a', choices: ['b', 'c'], answer: 1 };
  expect(problemOf(good, '', { ...good, answer: 2 })).toBe(
    `FILE:3: answer: expected the index of a choice. ${keys}`,
  );
  expect(problemOf(good, { ...good, gold: 1 })).toBe(`FILE:2: Unrecognized key: "gold". ${keys}`);
  expect(problemOf({ question: 'a' })).toBe(
    `FILE:1: expected one of the keys choices, text or prompt. ${keys}`,
  );
  expect(problemOf({ text: 'a' }, good)).toMatch(/^FILE:2: text: Invalid input/);
  expect(problemOf(good, '{"context":')).toMatch(/^FILE:2: Unexpected end of JSON input\. /);
  expect(problemOf('')).toBe('FILE has no examples.');
  const missing = join(temporaryDirectory(), 'none.jsonl');
  expect(() => readTask(missing)).toThrow(`${missing}: cannot be read: `);
});
