/** @file Runs in the real trackio: killed and started again, read as its server reads them. Needs bench/peers/trackio.sh. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../../command.js';
import { writePictures } from '../../fixtures/project/experiments/pictures.js';
import { killedRun, metricLines } from '../../programs/runs.js';
import { trackioPython } from '../../publishedModels.js';

const reader = fileURLToPath(new URL('../../../bench/peers/trackio_runs.py', import.meta.url));

interface Read {
  readonly runs: readonly { name: string; config: object; logs: readonly Record<string, unknown>[] }[];
  readonly left: boolean;
}

test.skipIf(!existsSync(trackioPython))(
  'trackio has each step of a run that was killed twice once',
  async () => {
    const data = temporaryDirectory();
    writePictures(data, 60);
    const settings = [
      ...[`directory=${data}`, 'task.train.numTrainSteps=300', 'task.train.summaryIntervalSteps=5'],
      ...['task.train.saveIntervalSteps=20', 'task.train.evalIntervalSteps=50'],
    ];
    const directory = await killedRun(
      (jobLogDir) => [
        ...['--exp=pictures.Pictures', `--job_log_dir=${jobLogDir}`, '--mode=train_and_eval'],
        ...settings.flatMap((setting) => ['--set', setting]),
      ],
      200,
    );
    const env = { ...process.env, TRACKIO_DIR: join(data, 'trackio') };
    const { runs, left }: Read = JSON.parse(
      execFileSync(trackioPython, [reader, 'pictures.Pictures'], { env, encoding: 'utf8' }),
    );
    expect([runs.length, left]).toEqual([1, false]);
    expect(runs[0]!.config).toMatchObject({ 'task.train.numTrainSteps': 300 });
    // Of a step, each program has a record.
    const tracked = runs[0]!.logs.map((log) => {
      const { step, timestamp: _, ...metrics } = log;
      const program = Object.keys(metrics)[0]!.split('/')[0]!;
      return [`${program} ${step}`, metrics[`${program}/Metrics/total_loss`]] as const;
    });
    const lines = metricLines(directory);
    const written = lines.map(
      (line) => [`${line.program} ${line.step}`, line['Metrics/total_loss']] as const,
    );
    expect(new Set(tracked.map(([name]) => name)).size).toBe(tracked.length);
    expect(Object.fromEntries(tracked)).toEqual(Object.fromEntries(written));
    expect(tracked.length).toBeGreaterThan(60);
  },
);
