/** @file Frozen variables in bfloat16: trained around, saved, resumed, and loaded by runs that hold them in float32. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { widen } from '../../src/compiler/index.js';
import { oneProcess, temporaryDirectory } from '../command.js';
import { stateAt, tensorsAt } from './runs.js';

const run = oneProcess('src/main.ts');
const W = 'params/lm/softmax/w';
const frozen = ["task.train.learner.bpropVariableExclusion=['lm/softmax/.*']"];
const narrowed = [...frozen, "task.model.lmTpl.softmaxTpl.dtype='bfloat16'"];

async function train(directory: string, steps: number, sets: readonly string[]): Promise<void> {
  const all = [...sets, `task.train.numTrainSteps=${steps}`, 'task.train.saveIntervalSteps=1'];
  const { code, stderr } = await run([
    ...['--exp=tiny.Tiny', `--job_log_dir=${directory}`, '--engine=onnx', '--mode=train'],
    ...all.flatMap((set) => ['--set', set]),
  ]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
}

test('a run that was stopped has the bits of one that was not; its file is narrow, and other runs start from it', async () => {
  const [whole, stopped, floats] = [temporaryDirectory(), temporaryDirectory(), temporaryDirectory()];
  await train(whole, 2, narrowed);
  await train(stopped, 1, narrowed);
  await train(stopped, 2, narrowed);
  expect(stateAt(stopped, 2).equals(stateAt(whole, 2))).toBe(true);
  const held = tensorsAt(whole, 2)[W] as Uint16Array;
  expect(held).toBeInstanceOf(Uint16Array);
  const path = join(whole, 'checkpoints/checkpoint_00000002/metadata.json');
  const { version, variables } = JSON.parse(readFileSync(path, 'utf8'));
  expect([version, variables['lm/softmax/w']]).toEqual([
    '1.3',
    { shape: [256, 16], dtype: 'bfloat16', isFrozen: true },
  ]);
  const from = `task.train.initFromCheckpoint=[CheckpointLoadingRules(checkpoint='${whole}')]`;
  await train(floats, 0, [...frozen, from]);
  expect(tensorsAt(floats, 0)[W]).toEqual(widen(held, 'bfloat16'));
});
