/** @file A job whose layers ask for bfloat16 ends before anything is allocated or written, in every mode. */
import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { runJob } from '../../src/programs/index.js';
import { runCommand, temporaryDirectory } from '../command.js';
import { configured } from '../experiments/zoo.js';

const message =
  "model (LanguageModel): fpropDtype 'bfloat16' needs the native engine, which is still to come; use 'float32'.";

test.each(['train', 'eval'] as const)('%s of a model of 1024 billion parameters', async (mode) => {
  const jobLogDir = temporaryDirectory();
  const { name, task, datasets, decodeDatasets } = await configured('lmCloud.LmCloudSpmd1024B');
  const rest = { moduleUrl: import.meta.url, overrides: [], classVars: '' };
  const job = runJob({ name, task, datasets, decodeDatasets, jobLogDir, mode, ...rest });
  await expect(job).rejects.toMatchObject({ name: 'LayerError', message });
  expect(readdirSync(jobLogDir)).toEqual([]);
});

test('the command says it in a line', async () => {
  const jobLogDir = temporaryDirectory();
  const { code, stderr } = await runCommand([
    ...['--exp=tiny.Tiny', `--job_log_dir=${jobLogDir}`, '--set', 'task.model.lmTpl.fpropDtype=bfloat16'],
  ]);
  expect([code, stderr]).toEqual([
    2,
    "lm (TransformerLm): fpropDtype 'bfloat16' needs the native engine, which is still to come; use 'float32'.\n",
  ]);
});
