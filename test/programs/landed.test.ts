/** @file What an earlier version wrote, kept in test/fixtures/landed: it is resumed, loaded and given on the command line. */
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { fromJSON, toJSON } from '../../src/hparams/index.js';
import { registerLibrary } from '../../src/rooms.js';
import { oneProcess, temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';
import { trainLosses } from './runs.js';

const landed = fileURLToPath(new URL('../fixtures/landed', import.meta.url));
const run = oneProcess('src/main.ts');
const flags = ['--exp=Tiny', '--set', 'modelDims=8', '--engine=onnx', '--num_threads=1'];

longTest('a job resumes from its checkpoint, and appends to its metrics', async () => {
  const directory = temporaryDirectory();
  cpSync(join(landed, 'job'), directory, { recursive: true });
  const { code, stdout } = await run([...flags, '--set', 'numTrainSteps=6', `--job_log_dir=${directory}`]);
  expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('checkpoint_00000004') });
  const losses = trainLosses(directory);
  expect(losses.map(([step]) => step)).toEqual([1, 2, 3, 4, 5, 6]);
  expect(losses.slice(0, 4)).toEqual(trainLosses(join(landed, 'job')));
  expect(Number(losses.at(-1)![1])).toBeLessThan(Number(losses[3]![1]));
});

test('the configs in experiment.json load', () => {
  const { config } = JSON.parse(readFileSync(join(landed, 'job/experiment.json'), 'utf8'));
  registerLibrary();
  expect(toJSON(fromJSON(config))).toEqual(config);
});

test('a dumped config is taken as a config file', async () => {
  const flags = ['--exp=Tiny', `--config_file=${join(landed, 'config.yaml')}`, '--dump=yaml'];
  const { code, stdout, stderr } = await run(flags);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('constants: {numTrainSteps: 4, modelDims: 8}');
});
