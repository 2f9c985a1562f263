/** @file Tasks of language models as programs in training: the metrics of `luthier evaluate`, tracked, by a vocabulary that is learned. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { readTask } from '../../../src/tasks/index.js';
import { evaluateTask, loadRun, type TrainedRun } from '../../../src/trained/index.js';
import { oneProcess, project, temporaryDirectory } from '../../command.js';
import { metricLines } from '../../programs/runs.js';

const run = oneProcess('src/main.ts', fileURLToPath(new URL('../../fixtures/faults', import.meta.url)));
const dataPath = join(project, 'corpus/counting.txt');
const text = readFileSync(dataPath, 'utf8');

/** A file of these lines. */
function fileOf(name: string, lines: readonly object[]): string {
  const file = join(temporaryDirectory(), `${name}.jsonl`);
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  return file;
}

const [first, second, third] = [text.slice(0, 9), text.slice(9, 60), text.slice(60, 70)];
const choices = fileOf('choices', [
  { context: first, choices: [second.slice(0, 3), second.slice(0, 9), first], answer: 1, delimiter: '' },
  { context: third, choices: ['1', '2'], answer: 0 },
]);
// Of several windows each.
const texts = fileOf('texts', [{ text: second }, { text: third }, { text: text.slice(70, 140) }]);
const PROMPTS = [first, third] as const;

const flags = (directory: string, files: readonly string[], ...sets: readonly string[]) => [
  ...['--exp=tasked.Tasked', `--job_log_dir=${directory}`, '--mode=train_and_eval'],
  ...[`dataPath=${dataPath}`, 'numTrainSteps=6', `taskFiles=${JSON.stringify(files)}`, ...sets].flatMap(
    (set) => ['--set', set],
  ),
];

let directory: string;

beforeAll(async () => {
  directory = temporaryDirectory();
  const tracked = 'task.train.trackMetric=TrackMetric(evaluation=task_1,metric=bits_per_byte)';
  const said = await run(flags(directory, [choices, texts], tracked));
  expect(said).toMatchObject({ code: 0, stderr: '' });
});

const linesOf = (program: string) =>
  metricLines(directory).filter((line) => line.program === program && line.batches !== undefined);

async function expectMetrics(program: string, trained: TrainedRun, file: string): Promise<void> {
  const { metrics } = await evaluateTask(trained, readTask(file));
  const told = linesOf(program).at(-1)!;
  for (const [name, value] of Object.entries(metrics))
    expect(told[`Metrics/${name}`], name).toBeCloseTo(value, 4);
}

test('metrics are those of the run behind the same step', async () => {
  const trained = await loadRun(directory);
  for (const [i, file] of [choices, texts].entries()) {
    expect(linesOf(`task_${i}`).map(({ step }) => step)).toEqual([3, 6]);
    await expectMetrics(`task_${i}`, trained, file);
  }
  const best = linesOf('task_1').map((line) => line['Metrics/bits_per_byte'] as number);
  expect(best[1]).toBeLessThan(best[0]!);
  const checkpoint = join(directory, 'checkpoints/checkpoint_00000006/metadata.json');
  expect(JSON.parse(readFileSync(checkpoint, 'utf8')).best).toEqual({
    ...{ step: 6, metric: 'task_1/bits_per_byte', value: best[1] },
  });
  await trained.dispose();
});

test('answers are compared up to a stop, at a checkpoint as well', async () => {
  const trained = await loadRun(directory);
  const continued = await Promise.all(
    PROMPTS.map((prompt) => trained.generate(prompt, { temperature: 0, maxTokens: 6 })),
  );
  const [whole, cut] = continued as [string, string];
  const stop = [...cut].at(-1)!;
  const answers = fileOf('answers', [
    { prompt: first, answer: whole, maxTokens: 6, stop: ['x'] },
    { prompt: third, answer: ['x', cut.slice(0, cut.indexOf(stop))], maxTokens: 9, stop: ['x', stop] },
    { prompt: first, answer: whole, maxTokens: 5, stop: ['x'] },
    { prompt: third, answer: 'x', maxTokens: 30 },
  ]);
  const { code, stderr } = await run([...flags(directory, [answers]), '--mode=eval']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(linesOf('task_0').at(-1)).toMatchObject({ step: 6, 'Metrics/exact_match': 0.5, batches: 2 });
  await expectMetrics('task_0', trained, answers);
  await trained.dispose();
});

test('a bad line is told before the first step', async () => {
  const file = fileOf('bad', [{ text: 'a' }, { prompt: 'b', answer: 'c' }]);
  const { code, stderr } = await run(flags(temporaryDirectory(), [file]));
  expect(code).not.toBe(0);
  expect(stderr).toContain(`${file}:2: text: Invalid input`);
});
