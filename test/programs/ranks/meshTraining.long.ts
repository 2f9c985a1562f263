/** @file Training on meshes under mpirun: losses of one process, and checkpoints that any mesh and one process go on from. */
import { expect, test } from 'vitest';
import { describeMpis } from '../../collectives/describeMpis.js';
import type { Mpi } from '../../collectives/mpirun.js';
import { temporaryDirectory } from '../../command.js';
import { isShort } from '../../faults/campaign.js';
import { evaluationsIn, expectSame, trainOnRanks } from './trainOnRanks.js';

/** A model of two layers that Pax splits over data and mdl, or another one. */
const small = ['vocabSize=64', 'maxSeqLen=16', 'fpropDtype=float32', 'summaryIntervalSteps=1'].concat([
  ...['task.train.saveIntervalSteps=5', 'task.train.evalIntervalSteps=5'],
]);
const mesh = (...sizes: number[]): string => `task.mesh.iciMeshShape=[${sizes}]`;
const IN_TWO = 'task.train.numSubBatches=2';

/** Two stages that each microbatch passes three times, each a slice of one device. */
const pipeline = ['numLayers=6', 'modelDims=32', 'dimsPerHead=8', 'iciMeshShape=[1,1,1,1]'].concat([
  ...['percoreBatchSize=4', 'microbatchSize=2', IN_TWO],
]);

const run = (
  mpi: Mpi,
  ranks: number,
  directory: string,
  steps: number,
  more: readonly string[],
  name = 'LmCloudSpmdTest',
) => trainOnRanks(mpi, ranks, { experiment: `lmCloud.${name}`, directory, steps }, [...small, ...more]);

describeMpis((mpi) => {
  test('a mesh has the losses of one process, which goes on from its checkpoint', async () => {
    const [one, split] = [temporaryDirectory(), temporaryDirectory()];
    const expected = await run(mpi, 1, one, 10, [IN_TWO]);
    expect(expected.length).toBe(10);
    await run(mpi, 2, split, 5, [mesh(1, 1, 2), IN_TWO]);
    expectSame(await run(mpi, 1, split, 10, [IN_TWO]), expected);
    const [evaluated, asExpected] = [evaluationsIn(split), evaluationsIn(one)];
    expect(Object.keys(evaluated)).toEqual(Object.keys(asExpected));
    expect(Object.keys(evaluated).length).toBeGreaterThan(1);
    expectSame(Object.values(evaluated), Object.values(asExpected));
  });

  test.skipIf(isShort)('meshes go on from checkpoints of each other', async () => {
    const [one, split] = [temporaryDirectory(), temporaryDirectory()];
    const expected = await run(mpi, 1, one, 15, [IN_TWO]);
    await run(mpi, 4, split, 5, [mesh(1, 2, 2)]);
    await run(mpi, 2, split, 10, [mesh(1, 2, 1)]);
    expectSame(await run(mpi, 4, split, 15, [mesh(1, 1, 4), IN_TWO]), expected);
  });

  test('stages on ranks have the losses of one process, which goes on from their checkpoint, as stages of two ranks do', async () => {
    const [one, split] = [temporaryDirectory(), temporaryDirectory()];
    const train = (ranks: number, directory: string, steps: number, ...more: string[]) =>
      run(mpi, ranks, directory, steps, [...pipeline, ...more], 'LmCloudSpmdPipelineMultislice2BCircular');
    const steps = isShort ? 10 : 15;
    const expected = await train(1, one, steps);
    await train(2, split, 5);
    if (!isShort) await train(4, split, 10, mesh(1, 1, 2, 1));
    expectSame(await train(1, split, steps), expected);
  });
});
