/** @file A run's own tokenizer: used by loadRun, generate and serve once its file is gone. */
import { once } from 'node:events';
import { copyFileSync, cpSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { loadRun } from '../../src/trained/index.js';
import { runCommand, runLuthier, startCommand, temporaryDirectory } from '../command.js';

const repository = fileURLToPath(new URL('../..', import.meta.url));

test('a run on packed byte pairs keeps its tokenizer, whatever becomes of the file', async () => {
  const own = temporaryDirectory();
  cpSync(join(repository, 'experiments'), join(own, 'experiments'), { recursive: true });
  for (const name of ['src', 'node_modules']) symlinkSync(join(repository, name), join(own, name));
  copyFileSync(join(repository, 'package.json'), join(own, 'package.json'));
  const sizes = { numTrainSteps: 2, modelDims: 16, numHeads: 2, numLayers: 1, seqLen: 64, batchSize: 2 };
  const sets = Object.entries(sizes).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
  const directory = join(own, 'run');
  const trained = await runCommand(
    ['--exp=lm.SmallBpe', '--mode=train', `--job_log_dir=${directory}`, ...sets],
    own,
  );
  expect({ code: trained.code, stderr: trained.stderr }).toEqual({ code: 0, stderr: '' });

  rmSync(join(own, 'experiments/typescript.tokenizer.json'));
  const elsewhere = temporaryDirectory();
  const run = await loadRun(directory);
  const prompt = 'export interface Größe {';
  expect(run.tokenizer.vocabSize).toBe(2048);
  expect(run.tokenizer.decode(run.tokenizer.encode(prompt))).toBe(prompt);
  const text = await run.generate(prompt, { maxTokens: 8, temperature: 0 });
  await run.dispose();

  const generated = await runLuthier(
    ['generate', directory, `--prompt=${prompt}`, '--max_tokens=8', '--temperature=0', '--format=json'],
    elsewhere,
  );
  expect({ code: generated.code, stderr: generated.stderr }).toEqual({ code: 0, stderr: '' });
  expect(generated.stdout).toContain(JSON.stringify(text).slice(1, -1));

  const server = startCommand(['serve', directory, '--port=0'], elsewhere, 'src/tools/commandLine.ts');
  try {
    let told = '';
    while (!told.includes('\n')) told += String(await once(server.child.stdout!, 'data'));
    const [, url] = /at (http:\S+)\n/.exec(told)!;
    const response = await fetch(`${url}/v1/completions`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
      body: JSON.stringify({ prompt, max_tokens: 8, temperature: 0 }),
    });
    const { choices } = (await response.json()) as { choices: { text: string }[] };
    expect(choices.map((choice) => choice.text)).toEqual([text]);
  } finally {
    server.child.kill('SIGKILL');
    await server.finished;
  }
});
