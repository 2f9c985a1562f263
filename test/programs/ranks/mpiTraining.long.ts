/** @file Training under mpirun, with Open MPI and with MPICH: the bits of one process, starts that are refused, ranks that die. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { describeMpis } from '../../collectives/describeMpis.js';
import { isRunning, luthier, type Mpi, mpirun, mpis, ranksBelow } from '../../collectives/mpirun.js';
import { temporaryDirectory } from '../../command.js';
import { isShort } from '../../faults/campaign.js';

/** Steps of a small model in pieces of one row. */
const flags = (directory: string, steps: number, more: readonly string[] = []): string[] => [
  ...[luthier, 'train', '--exp=lm.Small', `--job_log_dir=${directory}`, '--engine=native'],
  ...['--set', `numTrainSteps=${steps}`, '--set', 'task.train.saveIntervalSteps=2'],
  ...['--set', 'datasets[0].batchSize=4', '--set', 'datasets[0].seqLen=16', ...more],
];
const IN_FOUR = ['--set', 'task.train.numSubBatches=4'];

const stateAt = (directory: string, step: number): string =>
  readFileSync(
    join(directory, 'checkpoints', `checkpoint_${String(step).padStart(8, '0')}`, 'state.safetensors'),
  ).toString('base64');
const newest = (directory: string): number =>
  Math.max(
    0,
    ...readdirSync(join(directory, 'checkpoints')).map((name) =>
      Number(/^checkpoint_(\d+)$/.exec(name)?.[1] ?? 0),
    ),
  );
const isThere = (directory: string, step: number): boolean => {
  try {
    return newest(directory) >= step;
  } catch {
    return false;
  }
};

/** One process as mpirun starts it. */
const alone = async (mpi: Mpi, args: readonly string[]) => {
  const { code, output } = await mpirun(mpi, 1, args).ended;
  expect(code, output).toBe(0);
};

/** A short run trains on one MPI. */

describeMpis((mpi) => {
  test('two and four ranks have the bits of one process with as many sub-batches', async () => {
    const [one, two, four] = [temporaryDirectory(), temporaryDirectory(), temporaryDirectory()];
    await alone(mpi, flags(one, 4, IN_FOUR));
    const by2 = await mpirun(mpi, 2, flags(two, 4, IN_FOUR)).ended;
    // Each rank takes a sub-batch unless the task has its own.
    const by4 = await mpirun(mpi, 4, flags(four, 4)).ended;
    expect([by2.code, by4.code], by2.output + by4.output).toEqual([0, 0]);
    for (const directory of [two, four])
      for (const step of [2, 4]) expect(stateAt(directory, step) === stateAt(one, step)).toBe(true);
    expect(by4.output.match(/Trained lm\.Small to step 4/g)).toHaveLength(1);
  });

  test('ranks that are killed leave a whole checkpoint, from which another number of them goes on', async () => {
    const [one, killed] = [temporaryDirectory(), temporaryDirectory()];
    await alone(mpi, flags(one, 100, IN_FOUR));
    const run = mpirun(mpi, 4, flags(killed, 100));
    while (!isThere(killed, 4)) await sleep(20);
    const victims = ranksBelow(run.child.pid!);
    process.kill(victims.at(-1)!, 'SIGKILL');
    const { code } = await run.ended;
    expect(code).not.toBe(0);
    while (victims.some(isRunning)) await sleep(20);
    const { code: then, output } = await mpirun(mpi, 2, flags(killed, 100, IN_FOUR)).ended;
    expect(then, output).toBe(0);
    expect(stateAt(killed, 100) === stateAt(one, 100)).toBe(true);
  });

  test.skipIf(isShort)('SIGUSR1 of a rank saves once and ends all', async () => {
    const directory = temporaryDirectory();
    const run = mpirun(mpi, 2, flags(directory, 100_000));
    while (!isThere(directory, 2)) await sleep(20);
    process.kill(ranksBelow(run.child.pid!).at(-1)!, 'SIGUSR1');
    const { output } = await run.ended;
    expect(output).toMatch(/SIGTERM: saving a checkpoint, then leaving/);
    const step = newest(directory);
    expect(output).toMatch(
      new RegExp(`Saved at step ${step} of 100000; the same command goes on from there`),
    );
    const { state } = JSON.parse(readFileSync(join(directory, 'status.json'), 'utf8'));
    expect(state).toBe('stopped');
  });

  test.skipIf(isShort)(
    'other modes, ranks without mpicc, and rows that cannot be shared are refused',
    async () => {
      const directory = join(temporaryDirectory(), 'none');
      const evaluates = await mpirun(mpi, 2, [...flags(directory, 2), '--mode=eval']).ended;
      expect(evaluates.output).toMatch(
        /mpirun of \w+( \w+)? has started 2 ranks, and --mode=eval runs as one process: start it alone\./,
      );
      const without = await mpirun(mpi, 2, flags(directory, 2), { MPICC: '/nowhere/mpicc' }).ended;
      expect(without.output).toContain(
        "There is no mpicc that works, which compiles the calls of MPI (MPICC is '/nowhere/mpicc'). Install the headers of",
      );
      const uneven = await mpirun(mpi, 3, flags(directory, 2)).ended;
      expect(uneven.output).toContain(
        "Input 'train': batchSize is 4, which 3 hosts cannot share evenly: set it to a multiple of 3, or start fewer.",
      );
      for (const { code } of [evaluates, without, uneven]) expect(code).not.toBe(0);
      const seeds = mpirun(mpi, 1, [
        ...flags(directory, 2),
        ...[':', '-np', '1', process.execPath],
        ...flags(directory, 2, ['--set', 'task.train.randomSeed=7']),
      ]);
      const { code, output } = await seeds.ended;
      expect(output).toMatch(
        /Rank 1 runs another job than rank 0: task\.train\.randomSeed: \d+ → 7\. Start all ranks with/,
      );
      expect(code).toBe(2);
    },
  );
});

test.skipIf(isShort || mpis.length < 2)('an mpicc of another MPI than the launcher is told', async () => {
  const [first, second] = mpis as [Mpi, Mpi];
  const directory = join(temporaryDirectory(), 'none');
  const { code, output } = await mpirun(first, 2, flags(directory, 2), { MPICC: join(second.bin, 'mpicc') })
    .ended;
  expect(output).toMatch(
    /^Rank \d of 2, which mpirun of Open MPI started on .*: its mpicc is that of MPICH [\d.]+, so mpicc and the launcher are of different MPIs\. Put/m,
  );
  expect(code).not.toBe(0);
});
