/** @file `luthier serve` with a fine-tuned run beside its model, and a chat template of its own. */
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { encodeSafetensors, WeightFiles } from '../../../src/checkpoints/index.js';
import { importPublished, loadRun } from '../../../src/trained/index.js';
import { runLuthier, temporaryDirectory } from '../../command.js';
import { Served } from './served.js';

const published = join(import.meta.dirname, '../../fixtures/published/gpt2');

async function imported(folder: string): Promise<string> {
  const jobLogDir = join(temporaryDirectory(), 'run');
  await importPublished({
    ...{ folder, jobLogDir, dtype: 'float32', maxLength: undefined, files: ['*.txt'] },
    ...{ ignoredFields: [], ignoredTensors: [] },
  });
  return jobLogDir;
}

/** A copy of the folder with other weights. */
function tuned(): string {
  const folder = join(temporaryDirectory(), 'gpt2');
  cpSync(published, folder, { recursive: true });
  const source = WeightFiles.open(published);
  const tensors = source.names.map((name) => {
    const shape = source.shapeOf(name)!;
    const size = shape.reduce((product, length) => product * length, 1);
    const data = Float32Array.from({ length: size }, (_, i) => Math.sin(i * i));
    return [name, { dtype: 'float32' as const, shape: [...shape], data }] as const;
  });
  source.close();
  writeFileSync(join(folder, 'model.safetensors'), encodeSafetensors(Object.fromEntries(tensors)));
  return folder;
}

test('requests choose the model or its adapter, and chats are rendered by the template of the flag', async () => {
  const [base, other] = [await imported(published), await imported(tuned())];
  const template = join(temporaryDirectory(), 'own.jinja');
  writeFileSync(template, '{{ messages[0].content }}!');
  const served = await Served.start(base, [
    ...[`--adapter=tuned=${other}`, `--chat_template=${template}`, '--engine=eager'],
  ]);
  const answers: string[] = [];
  for (const model of ['gpt2', 'tuned', 'gpt2:tuned']) {
    const headers = { 'content-type': 'application/json' };
    const messages = [{ role: 'user', content: 'hi' }];
    const body = JSON.stringify({ model, messages, temperature: 0, max_tokens: 6 });
    const answer = await fetch(`${served.url}/v1/chat/completions`, { method: 'POST', headers, body });
    answers.push(((await answer.json()) as any).choices[0].message.content);
  }
  served.running.child.kill('SIGTERM');
  await served.running.finished;
  const [model, adapter] = await Promise.all(
    [base, other].map(async (directory) => {
      const run = await loadRun(directory, { engine: 'eager', batchSize: 8 });
      const text = await run.generate(directory === base ? 'hi!' : 'hi', { temperature: 0, maxTokens: 6 });
      await run.dispose();
      return text;
    }),
  );
  expect(answers).toEqual([model, adapter, adapter]);
  expect(model).not.toBe(adapter);
});

test.each([
  [['--adapter=tuned'], '--adapter=tuned: expected NAME=DIR, each name once.'],
  [['--chat_template=none.jinja'], /^--chat_template=none\.jinja: it can't be read \(ENOENT/],
])('%s is refused', async (flags, message) => {
  const directory = await imported(published);
  const { code, stderr } = await runLuthier(['serve', directory, '--port=0', '--engine=eager', ...flags]);
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
});
