/** @file The founding commands of Pax on four ranks: their experiments by their published names, cut in size, with the axes of their meshes. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { describeMpis } from '../../collectives/describeMpis.js';
import { temporaryDirectory } from '../../command.js';
import { isShort } from '../../faults/campaign.js';
import { expectSame, trainOnRanks } from './trainOnRanks.js';

const text = temporaryDirectory();
for (const part of ['train', 'validation'])
  writeFileSync(join(text, `${part}.txt`), `${part}: how much wood would a woodchuck chuck? `.repeat(200));

const tiny = ['numHeads=4', 'modelDims=32', 'dimsPerHead=8', 'maxSeqLen=16', 'percoreBatchSize=4'].concat([
  // So that ten steps are felt.
  ...['lrWarmup=1', 'learningRate=1e-2', 'fpropDtype=float32', 'summaryIntervalSteps=1'],
]);
const onText = [
  ...['vocabSize=300', `trainFiles=["${join(text, 'train.txt')}"]`],
  `evalFiles=["${join(text, 'validation.txt')}"]`,
];

/** Each with its own settings, and with the mesh of four ranks. */
const commands: [string, string[], string[]][] = [
  ['lm_cloud.LmCloudSpmd2BLimitSteps', ['numLayers=2', 'vocabSize=64'], ['iciMeshShape=[1,2,2]']],
  ['c4.C4Spmd1BAdam4Replicas', ['numLayers=2', ...onText], ['iciMeshShape=[1,4,1]']],
  ['c4.C4Spmd16BAdam32Replicas', ['numLayers=2', ...onText], ['iciMeshShape=[1,2,2]']],
  [
    'c4.C4SpmdPipelineGpt3SmallAdam64Replicas',
    ['numLayers=4', 'numStages=2', 'microbatchSize=2', ...onText],
    ['iciMeshShape=[2,1,2,1]'],
  ],
  [
    'c4_multislice.C4Spmd22BAdam2xv4_128',
    ['numLayers=2', 'hiddenDims=64', ...onText],
    ['iciMeshShape=[1,2,1]', 'dcnMeshShape=[2,1,1]'],
  ],
];

describeMpis((mpi) => {
  test.each(isShort ? commands.slice(-1) : commands)('%s', async (name, settings, mesh) => {
    const train = (ranks: number) => {
      const job = { experiment: `tasks.lm.params.${name}`, directory: temporaryDirectory(), steps: 10 };
      return trainOnRanks(mpi, ranks, job, [...tiny, ...settings, ...mesh]);
    };
    const losses = await train(4);
    expect(losses.length).toBe(10);
    expect(losses.at(-1)).toBeLessThan(losses[0]!);
    expectSame(losses, await train(1));
  });
});
