/** @file Experiments on made data train at a small size, and their metrics are right. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { bayesFiller } from '../../bench/sentenceAutomaton.js';
import { FilledSpans } from '../../experiments/t5.js';
import { build } from '../../src/hparams/index.js';
import { runCommand, temporaryDirectory } from '../command.js';
import { longTest } from '../longTest.js';
import { directories } from './zoo.js';

const tiny = { numLayers: 1, modelDims: 8, batchSize: 2, numTrainSteps: 2, numHeldOut: 2 };

for (const [exp, mode, metric] of [['t5.MadeText', 'train_and_decode', 'filled_spans']])
  longTest(`${exp}, by ${mode}`, async () => {
    const sets = Object.entries(tiny).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
    const flags = [`--exp=${exp}`, `--mode=${mode}`, `--job_log_dir=${join(temporaryDirectory(), 'out')}`];
    const finished = await runCommand([...flags, ...sets], join(directories[0]!, '..'));
    expect([finished.code, finished.stderr]).toEqual([0, '']);
    expect(finished.stdout).toMatch(new RegExp(`_held_out at step 2: .*${metric} 0`));
  });

test('spans are compared by their sentinels, whatever stands between', () => {
  const share = (target: string, prediction: string) =>
    build(FilledSpans.config()).compute([target], [prediction]);
  const target = '<extra_id_0>ab<extra_id_1> c<extra_id_2>d';
  expect(share(target, target)).toBe(1);
  expect(share(target, '<extra_id_0>ab<extra_id_1>c <extra_id_2>d')).toBeCloseTo(2 / 3);
  expect(share(target, '<extra_id_2>d')).toBeCloseTo(1 / 3);
  expect(share(target, 'ab c d')).toBe(0);
});

test('the best filler of spans knows the grammar of the sentences', () => {
  const fill = bayesFiller();
  const hidden = ['ng', 't', 'me'];
  expect(fill({ visible: ['the big ki', 's follow a ', 'ree. so'], hidden })).toEqual(hidden);
  expect(() => fill({ visible: ['the kings follows a ', ' tr'], hidden: ['big', 'e'] })).toThrow(
    'The automaton cannot write the visible letters.',
  );
});
