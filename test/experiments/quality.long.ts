/** @file Experiments on made data reach the quality that bench/README.md states; with SHORT=1, one of those that take a minute at most, drawn. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { patchBaselines } from '../../bench/hiddenPatches.js';
import { neighbourBaseline } from '../../bench/neighbourTable.js';
import { runCommand, temporaryDirectory } from '../command.js';
import { isShort, oneIn, title } from '../faults/campaign.js';
import { directories } from './zoo.js';

type Mode = 'train_and_eval' | 'train_and_decode';

/** The last figure of a metric of a run. */
type FigureOf = (metric: string) => number;

interface Quality {
  readonly exp: string;
  readonly mode: Mode;
  /** Whether its run takes a minute at most. */
  readonly isQuick?: boolean;
  /** The experiment whose run it starts from. */
  readonly from?: string;
  /** Whether metrics are good enough, beside those of the run that it starts from. */
  readonly reaches: Readonly<Record<string, (value: number, start: FigureOf) => boolean | Promise<boolean>>>;
}

const evaluated = (exp: string) => ({ exp, mode: 'train_and_eval' }) as const;
const decoded = (exp: string) => ({ exp, mode: 'train_and_decode' }) as const;
const atLeast = (least: number) => (value: number) => value >= least;

const qualities: readonly Quality[] = [
  {
    ...evaluated('bert.Letters'),
    reaches: { fraction_of_correct_preds: (share) => share > neighbourBaseline() + 0.1 },
  },
  { ...decoded('chat.Answers'), isQuick: true, reaches: { exact: atLeast(0.95) } },
  // Answers itself has a mean reward of 0.56.
  { ...decoded('chat.Preferred'), from: 'chat.Answers', reaches: { reward: atLeast(0.75) } },
  { ...decoded('chat.Rewarded'), from: 'chat.Answers', reaches: { reward: atLeast(0.9) } },
  {
    ...decoded('chat.Student'),
    from: 'chat.Answers',
    reaches: {
      exact: atLeast(0.95),
      student_loss: (loss, teacher) => loss <= 1.01 * teacher('total_loss'),
    },
  },
  { ...decoded('chat.Adapted'), from: 'chat.Answers', reaches: { exact: atLeast(0.95) } },
  { ...decoded('sequences.Copy'), isQuick: true, reaches: { exact: atLeast(0.99) } },
  { ...decoded('sequences.Translate'), reaches: { exact: atLeast(0.95) } },
  { ...evaluated('shapes.Classify'), reaches: { accuracy: atLeast(0.98) } },
  {
    ...evaluated('shapes.Masked'),
    reaches: {
      total_loss: async (loss) => loss < 0.6 * Math.min(...Object.values(await patchBaselines())),
    },
  },
  // Whoever sees both colours and no shapes gets 0.47.
  { ...evaluated('shapes.Captions'), reaches: { image_to_text_accuracy: atLeast(0.85) } },
  { ...evaluated('speech.Spell'), reaches: { characterErrorRate: (rate) => rate < 0.05 } },
  // A table of neighbours gets 0.735.
  { ...decoded('t5.MadeText'), reaches: { filled_spans: atLeast(0.76) } },
];

const tried = isShort ? qualities.filter(({ isQuick }) => isQuick) : qualities;

test.each(oneIn(tried.length, tried))(title('$exp'), async ({ exp, mode, from, reaches }) => {
  const start = from === undefined ? undefined : await startOf(from);
  const run = await trained(exp, mode, start ? ['--set', `from=${start.directory}`] : []);
  for (const [metric, isReached] of Object.entries(reaches)) {
    const last = run.figureOf(metric);
    expect(await isReached(last, (other) => start!.figureOf(other)), `${metric} ${last}`).toBe(true);
  }
});

interface Trained {
  readonly directory: string;
  readonly figureOf: FigureOf;
}

const starts = new Map<string, Promise<Trained>>();

/** The run of an experiment that others start from, trained once. */
function startOf(exp: string): Promise<Trained> {
  const run = starts.get(exp) ?? trained(exp, 'train_and_eval');
  starts.set(exp, run);
  return run;
}

/** Trains an experiment. */
async function trained(exp: string, mode: Mode, more: string[] = []): Promise<Trained> {
  const directory = join(temporaryDirectory(), 'out');
  const flags = [`--exp=${exp}`, `--mode=${mode}`, `--job_log_dir=${directory}`, ...more];
  const { code, stderr, stdout } = await runCommand(flags, join(directories[0]!, '..'));
  expect([code, stderr]).toEqual([0, '']);
  const figureOf = (metric: string) => {
    const figures = [
      ...stdout.matchAll(new RegExp(`_(?:held_out|say) at step .*\\b${metric} ([\\d.]+)`, 'g')),
    ];
    expect(figures.length, stdout).toBeGreaterThan(0);
    return Number(figures.at(-1)![1]);
  };
  return { directory, figureOf };
}
