/** @file On every engine: the same run gives the same bits, whole, or killed and resumed. */
import { describe, expect, test } from 'vitest';
import { engines } from '../compiler/engines.js';
import { oneIn } from '../faults/campaign.js';
import { killedRun, stateAt, trainLosses, wholeRun } from './runs.js';

const steps = 24;

/** Engines behind their names, with their threads: with SHORT=1, one number of them for each. */
const runs = [...engines, ['eager', { engine: 'eager', available: true }] as const].flatMap(
  ([title, { engine, available }]) =>
    (engine === 'native' ? oneIn(2, [1, 2]) : [2]).map((threads) => ({ title, engine, available, threads })),
);

describe.each(runs)('$title, threads: $threads', ({ engine, available, threads }) => {
  const flags = (directory: string) => [
    '--exp=tiny.Tiny',
    `--job_log_dir=${directory}`,
    `--engine=${engine}`,
    `--num_threads=${threads}`,
    // Rows for several blocks of a chain.
    ...['--set', 'datasets[0].batchSize=9', '--set', `numTrainSteps=${steps}`],
    ...['--set', 'task.train.evalIntervalSteps=1000'],
  ];

  test.skipIf(!available)(
    'the same bits without a stop and after SIGKILL at a random step',
    async () => {
      const whole = await wholeRun(flags);
      // Its steps before the kill are repeated ones, too.
      const killed = await killedRun(flags, steps - 10, 1);
      expect(trainLosses(killed)).toEqual(trainLosses(whole));
      expect(stateAt(killed, steps).equals(stateAt(whole, steps))).toBe(true);
    },
    600_000,
  );
});
