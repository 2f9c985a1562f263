/** @file Training on meshes under mpirun: losses of one process, and checkpoints that any mesh and one process go on from. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Mpi, mpirun, mpis } from '../../collectives/mpirun.js';
import { temporaryDirectory } from '../../command.js';

/** A model of two layers that Pax splits over data and mdl. */
const flags = (directory: string, steps: number, more: readonly string[]): string[] => [
  ...['src/tools/luthier.js', 'train', '--exp=lmCloud.LmCloudSpmdTest', `--job_log_dir=${directory}`],
  ...[
    'vocabSize=64',
    'maxSeqLen=16',
    'fpropDtype=float32',
    'summaryIntervalSteps=1',
    `numTrainSteps=${steps}`,
  ]
    .concat(['task.train.saveIntervalSteps=5', ...more])
    .flatMap((set) => ['--set', set]),
];
const mesh = (...sizes: number[]): string => `task.mesh.iciMeshShape=[${sizes}]`;
const IN_TWO = 'task.train.numSubBatches=2';

/** Trains, and returns the losses of the steps behind the first ones. */
async function run(
  mpi: Mpi,
  ranks: number,
  ...[directory, steps, more]: Parameters<typeof flags>
): Promise<number[]> {
  const { code, output } = await mpirun(mpi, ranks, flags(directory, steps, more)).ended;
  expect(code, output).toBe(0);
  const lines = readFileSync(join(directory, 'metrics.jsonl'), 'utf8').trim().split('\n');
  return lines
    .map((line) => JSON.parse(line))
    .flatMap(({ program, loss }) => (program === 'train' ? [loss] : []));
}

function expectSame(losses: readonly number[], expected: readonly number[]): void {
  expect(losses.length).toBe(expected.length);
  for (const [i, loss] of losses.entries()) expect(Math.abs(loss - expected[i]!), `${i}`).toBeLessThan(1e-5);
}

const isShort = process.env.SHORT === '1';
const tried = isShort ? mpis.slice(0, 1) : mpis;

describe.skipIf(tried.length === 0).each(tried.map((mpi) => [mpi.name, mpi] as const))('%s', (_, mpi) => {
  test('a mesh has the losses of one process, which goes on from its checkpoint', async () => {
    const [one, split] = [temporaryDirectory(), temporaryDirectory()];
    const expected = await run(mpi, 1, one, 10, [IN_TWO]);
    expect(expected.length).toBe(10);
    await run(mpi, 2, split, 5, [mesh(1, 1, 2), IN_TWO]);
    expectSame(await run(mpi, 1, split, 10, [IN_TWO]), expected);
  });

  test.skipIf(isShort)('meshes go on from checkpoints of each other', async () => {
    const [one, split] = [temporaryDirectory(), temporaryDirectory()];
    const expected = await run(mpi, 1, one, 15, [IN_TWO]);
    await run(mpi, 4, split, 5, [mesh(1, 2, 2)]);
    await run(mpi, 2, split, 10, [mesh(1, 2, 1)]);
    expectSame(await run(mpi, 4, split, 15, [mesh(1, 1, 4), IN_TWO]), expected);
  });
});
