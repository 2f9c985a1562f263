/** @file Slots of shapes and dtypes of their own, trained on sub-batches, in checkpoints, resumes and averages. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { SavedVariables } from '../../src/checkpoints/index.js';
import { startCommand, temporaryDirectory } from '../command.js';
import { metricLines, stateAt, tensorsAt } from './runs.js';

const project = fileURLToPath(new URL('../fixtures/optimizers', import.meta.url));

async function run(directory: string, steps: number, ...more: string[]) {
  const { code, stdout, stderr } = await startCommand(
    [
      ...['--exp=factored.Factored', `--job_log_dir=${directory}`, '--set', `numTrainSteps=${steps}`],
      ...(more.length > 0 ? more : ['--mode=train', '--set', 'task.train.numSubBatches=2']),
    ],
    project,
  ).finished;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout;
}

test('a run that was stopped has the bits of one that was not; its file has the slots that the rules have', async () => {
  const [whole, stopped] = [temporaryDirectory(), temporaryDirectory()];
  await Promise.all([run(whole, 6), run(stopped, 3).then(() => run(stopped, 6))]);
  expect(stateAt(stopped, 6).equals(stateAt(whole, 6))).toBe(true);
  const tensors = tensorsAt(whole, 6);
  const path = 'lm/transformer/x_layers_0/ff_layer/ffn_layer1/linear/w';
  const slots = Object.entries(tensors).flatMap(([name, values]) =>
    name.startsWith('slots/') && name.endsWith(`/${path}`)
      ? [[name.slice('slots/'.length, -path.length - 1), values.constructor.name, values.length]]
      : [],
  );
  expect(slots.sort()).toEqual([
    ['ema', 'Float32Array', 16 * 64],
    ['mInt8', 'Int8Array', 16 * 64],
    ['mScale', 'Float32Array', 64],
    ['vc', 'Float32Array', 64],
    ['vr', 'Float32Array', 16],
  ]);
  expect((tensors[`slots/mInt8/${path}`] as Int8Array).some((value) => Math.abs(value) === 127)).toBe(true);
  expect(Object.keys(tensors).filter((name) => /^slots\/[mv]\/lm\/softmax\/w$/.test(name))).toHaveLength(2);
  expect(tensors).not.toHaveProperty(['slots/vr/lm/softmax/w']);
  const metadata = JSON.parse(
    readFileSync(join(whole, 'checkpoints/checkpoint_00000006/metadata.json'), 'utf8'),
  );
  expect(metadata.version).toBe('1.3');
  expect(metadata.variables['lm/softmax/w'].slots.m.dtype).toBe('bfloat16');
  expect(metadata.variables[path].slots.mInt8).toEqual({ shape: [16, 64], dtype: 'int8' });
  const [line] = metricLines(whole).filter(({ program }) => program === 'train');
  expect([line!['learning/lr'], line!['learning/lr_softmax']]).toEqual([0.01, 0.005]);
  // The average, which other runs may start from, and evaluation reads.
  const saved = SavedVariables.open(whole);
  const average = new Float32Array(16 * 64);
  saved.readInto(`ema/${path}`, average);
  expect(saved.shapeOf(`vr/${path}`)).toEqual([16]);
  saved.close();
  expect(average).toEqual(tensors[`slots/ema/${path}`]);
  await run(whole, 6, '--mode=eval', '--set', 'task.train.evalUseEmaStates=true');
});
