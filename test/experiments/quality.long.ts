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
  /** The experiment whose run it starts from. */
  readonly from?: string;
  /** Whether a figure of the metric is good enough. */
  readonly isReached: (value: number) => boolean;
}

const evaluated = (exp: string, metric: string) => ({ exp, mode: 'train_and_eval', metric }) as const;
const decoded = (exp: string, metric: string) => ({ exp, mode: 'train_and_decode', metric }) as const;

const qualities: readonly Quality[] = [
  {
    ...evaluated('bert.Letters', 'fraction_of_correct_preds'),
    isReached: (share) => share > neighbourBaseline() + 0.1,
  },
  { ...decoded('chat.Answers', 'exact'), isReached: (share) => share >= 0.95 },
  // Answers itself has a mean reward of 0.56.
  { ...decoded('chat.Preferred', 'reward'), from: 'chat.Answers', isReached: (reward) => reward >= 0.75 },
  { ...decoded('chat.Rewarded', 'reward'), from: 'chat.Answers', isReached: (reward) => reward >= 0.9 },
  { ...decoded('chat.Student', 'exact'), from: 'chat.Answers', isReached: (share) => share >= 0.95 },
  { ...decoded('chat.Adapted', 'exact'), from: 'chat.Answers', isReached: (share) => share >= 0.95 },
  { ...decoded('sequences.Copy', 'exact'), isReached: (share) => share >= 0.99 },
  { ...decoded('sequences.Translate', 'exact'), isReached: (share) => share >= 0.95 },
  { ...evaluated('shapes.Classify', 'accuracy'), isReached: (share) => share >= 0.98 },
  // Whoever sees both colours and no shapes gets 0.47.
  { ...evaluated('shapes.Captions', 'image_to_text_accuracy'), isReached: (share) => share >= 0.85 },
  { ...evaluated('speech.Spell', 'characterErrorRate'), isReached: (rate) => rate < 0.05 },
];

test.each(oneIn(qualities.length, qualities))(
  title('$exp'),
  async ({ exp, mode, metric, from, isReached }) => {
    const start = from === undefined ? [] : ['--set', `from=${(await trained(from, 'train')).directory}`];
    const { stdout } = await trained(exp, mode, start);
    const figures = [
      ...stdout.matchAll(new RegExp(`_(?:held_out|say) at step .*\\b${metric} ([\\d.]+)`, 'g')),
    ];
    expect(figures.length, stdout).toBeGreaterThan(0);
    const last = Number(figures.at(-1)![1]);
    expect(isReached(last), `${metric} ${last}`).toBe(true);
  },
);

/** Trains an experiment. */
async function trained(exp: string, mode: string, more: string[] = []) {
  const directory = join(temporaryDirectory(), 'out');
  const flags = [`--exp=${exp}`, `--mode=${mode}`, `--job_log_dir=${directory}`, ...more];
  const { code, stderr, stdout } = await runCommand(flags, join(directories[0]!, '..'));
  expect([code, stderr]).toEqual([0, '']);
  return { directory, stdout };
}
