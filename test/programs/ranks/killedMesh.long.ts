/** @file Ranks that write checkpoints together, killed at any moment: what is visible is whole, and training ends with the same bits. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SavedVariables } from '../../../src/checkpoints/index.js';
import { describeMpis } from '../../collectives/describeMpis.js';
import { isRunning, luthier, mpirun, ranksBelow } from '../../collectives/mpirun.js';
import { temporaryDirectory } from '../../command.js';

const STEPS = 100;

/** A model of two layers whose variables two ranks share, saved at each step. */
const flags = (directory: string): string[] => [
  ...[luthier, 'train', '--exp=lmCloud.LmCloudSpmdTest', `--job_log_dir=${directory}`],
  ...['vocabSize=64', 'maxSeqLen=16', 'fpropDtype=float32', `numTrainSteps=${STEPS}`]
    .concat(['task.train.saveIntervalSteps=1', 'task.mesh.iciMeshShape=[1,2,1]'])
    .flatMap((set) => ['--set', set]),
];

const savesIn = (directory: string): string[] => {
  const path = join(directory, 'checkpoints');
  return existsSync(path) ? readdirSync(path).sort() : [];
};
const wholeIn = (directory: string): string[] =>
  savesIn(directory).filter((name) => name.startsWith('checkpoint_'));
const lastState = (directory: string): Buffer =>
  readFileSync(
    join(directory, 'checkpoints', `checkpoint_${String(STEPS).padStart(8, '0')}`, 'state.safetensors'),
  );

describeMpis((mpi) => {
  test('killed at any moment, ranks leave whole checkpoints, and end with the bits of those that nobody killed', async () => {
    const [left, killed] = [temporaryDirectory(), temporaryDirectory()];
    const whole = await mpirun(mpi, 2, flags(left)).ended;
    expect(whole.code, whole.output).toBe(0);
    const milliseconds = fc.integer({ min: 0, max: 200 });
    const kills = fc.sample(fc.tuple(milliseconds, fc.nat(1)), {
      numRuns: 4,
      seed: Number(process.env.SEED ?? 1),
    });
    for (const [pause, rank] of kills) {
      const before = wholeIn(killed).at(-1);
      const { child, ended } = mpirun(mpi, 2, flags(killed));
      while (wholeIn(killed).at(-1) === before) await sleep(5);
      await sleep(pause);
      const victims = ranksBelow(child.pid!);
      process.kill(victims[rank]!, 'SIGKILL');
      await ended;
      while (victims.some(isRunning)) await sleep(20);
      for (const name of wholeIn(killed)) SavedVariables.open(join(killed, 'checkpoints', name)).close();
    }
    const { code, output } = await mpirun(mpi, 2, flags(killed)).ended;
    expect(code, output).toBe(0);
    expect(Buffer.compare(lastState(killed), lastState(left))).toBe(0);
    expect(savesIn(killed)).toEqual(wholeIn(killed));
  });
}, 0);
