/** @file Experiments on made data reach the quality that bench/README.md states; with SHORT=1, one of them, drawn. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { neighbourBaseline } from '../../bench/neighbourTable.js';
import { runCommand, temporaryDirectory } from '../command.js';
import { oneIn, title } from '../faults/campaign.js';
import { directories } from './zoo.js';

interface Quality {
  readonly exp: string;
  readonly mode: 'train_and_eval' | 'train_and_decode';
  readonly metric: string;
  /** Whether a figure of the metric is good enough. */
  readonly isReached: (value: number) => boolean;
}

const qualities: readonly Quality[] = [
  {
    ...{ exp: 'bert.Letters', mode: 'train_and_eval', metric: 'fraction_of_correct_preds' },
    isReached: (share) => share > neighbourBaseline() + 0.1,
  },
];

test.each(oneIn(qualities.length, qualities))(title('$exp'), async ({ exp, mode, metric, isReached }) => {
  const flags = [`--exp=${exp}`, `--mode=${mode}`, `--job_log_dir=${join(temporaryDirectory(), 'out')}`];
  const finished = await runCommand(flags, join(directories[0]!, '..'));
  expect([finished.code, finished.stderr]).toEqual([0, '']);
  const figures = [
    ...finished.stdout.matchAll(new RegExp(`_held_out at step .*\\b${metric} ([\\d.]+)`, 'g')),
  ];
  expect(figures.length, finished.stdout).toBeGreaterThan(0);
  const last = Number(figures.at(-1)![1]);
  expect(isReached(last), `${metric} ${last}`).toBe(true);
});
