/**
 * @file Runs whose classes, functions and tags are from many files of a project: trained with reading ahead forced, then
 * used, each command in a process of its own that has none of these files loaded.
 */
import { once } from 'node:events';
import { readFileSync, renameSync, symlinkSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';
import { runLuthier, startCommand, temporaryDirectory } from '../command.js';
import { isShort } from '../faults/campaign.js';
import { writeManyFiles } from '../fixtures/manyFiles/index.js';
import { writeFiles } from '../tools/scratch.js';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const project = temporaryDirectory();
let modules: Readonly<Record<string, readonly string[]>>;

/** What a command prints, where it succeeds without a word of warning. */
async function luthier(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runLuthier(args, project);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

beforeAll(async () => {
  writeManyFiles(project);
  writeFiles(project, { 'node_modules/.keep': '' });
  symlinkSync(repository, join(project, 'node_modules/luthier'));
  symlinkSync(join(repository, 'node_modules/zod'), join(project, 'node_modules/zod'));
  const said = await luthier('train', '--exp=text.Two', '--mode=train_and_decode');
  expect(said).toMatch(/^Trained text\.Two to step 8 at /m);
  expect(said).toMatch(/^eval_test_doubled at step 8: .* mine /m);
  ({ modules } = JSON.parse(readFileSync(join(project, 'out/text.Two/experiment.json'), 'utf8')).config);
});

test('its record lists the files of what the library lacks', () => {
  expect(modules).toEqual({
    './src/inputs.ts': ['Corpus', 'LowerBytes'],
    './src/layers.ts': ['Swift'],
    './src/metrics.ts': ['MyPerplexity'],
    './src/preprocessors.ts': ['Twice'],
    './src/tags.ts': ['#Watched'],
  });
});

test('it continues prompts, also once its experiment is gone; a file that is gone is named', async () => {
  const generate = ['generate', 'out/text.Two', '--prompt=11', '--max_tokens=4', '--format=json'];
  const before = JSON.parse(await luthier(...generate));
  expect(before).toMatchObject({ step: 8, completions: [{ prompt: '11', tokens: 4 }] });
  const [experiments, layers] = [join(project, 'experiments'), join(project, 'src/layers.ts')];
  renameSync(experiments, `${experiments}Gone`);
  expect(JSON.parse(await luthier(...generate))).toEqual(before);
  renameSync(layers, `${layers}.txt`);
  const { code, stderr } = await runLuthier(generate, project);
  renameSync(`${layers}.txt`, layers);
  renameSync(`${experiments}Gone`, experiments);
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr:
      `'Swift' is unknown: the document has it from ./src/layers.ts, which is not in ${project}. Restore it; if it has ` +
      'moved, name its file under "modules"; if it was renamed, call registerAlias. (at out/text.Two/experiment.json)\n',
  });
});

test.skipIf(isShort)('it goes on, is evaluated and decoded', async () => {
  const more = ['--exp=text.Two', '--set', 'numTrainSteps=10'];
  expect(await luthier('train', ...more)).toMatch(/^Trained text\.Two to step 10 at /m);
  expect(await luthier('eval', '--exp=text.Two')).toContain('eval_test_validation at step 10: ');
  expect(await luthier('decode', '--exp=text.Two')).toContain('>>>');
});

test.skipIf(isShort)('it is exported, and served', async () => {
  expect(await luthier('export', 'out/text.Two', '--out=out/two.onnx')).toMatch(/^Wrote out\/two\.onnx: /);
  const { child, finished } = startCommand(
    ['serve', 'out/text.Two', '--port=0'],
    project,
    'src/tools/commandLine.ts',
  );
  let said = '';
  while (!said.includes('\n')) said += String(await once(child.stdout!, 'data'));
  const [address] = /http:\/\/\S+:\d+/.exec(said)!;
  const answer = await fetch(`${address}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: '11', max_tokens: 4, temperature: 0 }),
  });
  expect(await answer.json()).toMatchObject({ choices: [{ index: 0 }] });
  child.kill('SIGTERM');
  await finished;
});

test.skipIf(isShort)('files of configs name its classes, for another experiment too', async () => {
  const dump = await luthier('dump', 'text.Two', '--format=yaml');
  writeFiles(project, { 'two.yaml': dump, 'experiments/other.ts': other });
  for (const file of ['out/text.Two/experiment.json', 'two.yaml']) {
    const flags = ['--exp=other.Other', `--config_file=${file}`, `--job_log_dir=out/${file.slice(-4)}`];
    const said = await luthier('train', ...flags, '--set', 'task.train.numTrainSteps=2');
    expect(said).toMatch(/^Trained other\.Other to step 2 at /m);
  }
});

const other = `
import { Experiment, LanguageModel, SingleTask, SyntheticLmInput, Train } from 'luthier';
export class Other extends Experiment {
  override task() { return SingleTask.config({ model: LanguageModel.config(), train: Train.config() }); }
  override datasets() { return [SyntheticLmInput.config({ seqLen: 8, vocabSize: 9, batchSize: 1, isTraining: true })]; }
}
`;

test.skipIf(isShort)('a run on records of its own function and feature is loaded by a program', async () => {
  expect(await luthier('train', '--exp=rows.Lengths')).toMatch(/^Trained rows\.Lengths to step 6 at /m);
  writeFiles(project, {
    'predict.ts': `
      import { loadRun } from 'luthier';
      const run = await loadRun('out/rows.Lengths');
      const inputs = { shape: [2, 1], dtype: 'float32', data: Float32Array.of(0, 1) } as const;
      console.log(Object.keys(await run.predict({ inputs })).join());
      await run.dispose();`,
  });
  const { finished } = startCommand([], project, relative(repository, join(project, 'predict.ts')));
  expect((await finished).stdout.trim()).toBe('predictions');
});
