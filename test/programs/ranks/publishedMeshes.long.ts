/** @file Pax's published language models, as one rank of their own meshes trains them: how much its collectives send. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import * as c4 from '../../../experiments/c4.js';
import * as lmCloud from '../../../experiments/lmCloud.js';
import { sizeOf } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import { partitionedGradients } from '../../../src/programs/ranks/splitStep.js';
import type { Shard, SingleTask } from '../../../src/tasks/index.js';
import { temporaryDirectory } from '../../command.js';

/** Collectives of the gradients of a rank's rows, as a dump tells them. */
function collectivesOf(Experiment: new (constants: object) => any): { told: string[]; task: SingleTask } {
  const experiment = new Experiment({});
  const task = build(experiment.task()) as SingleTask;
  const mesh = task.hp.mesh!;
  const specs = (build(experiment.datasets()[0]) as any).paddedBatchSpecs();
  const { count } = mesh.shareOf(0);
  const batch = Object.fromEntries(
    Object.entries<any>(specs).map(
      ([
        name,
        {
          shape: [rows, ...rest],
          dtype,
        },
      ]) => [name, { shape: [rows / count, ...rest], dtype }],
    ),
  );
  const params = Object.fromEntries(task.variables.map(({ path, shape, dtype }) => [path, { shape, dtype }]));
  const inputs = { params, batch, prngKeys: { shape: [1, 2], dtype: 'int32' } };
  const folder = temporaryDirectory();
  vi.stubEnv('LUTHIER_DUMP', folder);
  partitionedGradients(task, inputs as never, mesh, 'gradient_step', { abstract: true });
  vi.unstubAllEnvs();
  const [dump] = readdirSync(folder) as [string];
  return {
    told: readFileSync(join(folder, dump, 'collectives.txt'), 'utf8')
      .trim()
      .split('\n'),
    task,
  };
}

/** How often weights are gathered and their gradients scattered, and with how many bytes in all. */
function expected({ variables }: SingleTask, shards: readonly Shard[]) {
  const layersOf = ({ path }: Shard): number =>
    variables.find((variable) => variable.path === path)!.repeatPrefix[0] ?? 1;
  const sum = (of: (shard: Shard) => number): number => shards.reduce((total, shard) => total + of(shard), 0);
  // Those of repeated layers by each turn, and once more for its gradient.
  const passes = (shard: Shard): number => (layersOf(shard) > 1 ? 2 : 1);
  return {
    gathers: sum((shard) => passes(shard) * layersOf(shard)),
    gathered: sum((shard) => passes(shard) * 4 * sizeOf(shard.shape)),
    scatters: sum(layersOf),
    bytes: sum(({ shape }) => 4 * sizeOf(shape)),
  };
}

test.each([
  ['lmCloud.LmCloudSpmd2BLimitSteps', lmCloud.LmCloudSpmd2BLimitSteps],
  ['c4.C4Spmd1BAdam4Replicas', c4.C4Spmd1BAdam4Replicas],
  ['lmCloud.LmCloudSpmdMultislice2B', lmCloud.LmCloudSpmdMultislice2B],
])('%s gathers each weight where it is read, and scatters its gradient', (_, Experiment) => {
  const { told, task } = collectivesOf(Experiment as never);
  const mesh = task.hp.mesh!;
  const data = mesh.groupOf(['data']).axes;
  const split = mesh
    .shards(task.variables, 0)
    .filter(({ axes }) => axes.flat().some((axis) => data.includes(axis)));
  const ways = mesh.ways(['data']);
  const { gathers, gathered, scatters, bytes } = expected(task, split);
  expect(told).toEqual([
    `${gathers} AllGather of ${ways} ranks: ${gathered} bytes`,
    `${scatters} ReduceScatter of ${ways} ranks: ${bytes * ways} bytes`,
  ]);
});

test.each([
  ['c4.C4Spmd16BAdam32Replicas', c4.C4Spmd16BAdam32Replicas, 16, 2],
  ['lmCloud.LmCloudSpmd1024B', lmCloud.LmCloudSpmd1024B, 256, 8],
])(
  '%s splits depths, heads and classes besides: no rank has logits or weights of its model axis whole',
  (...args) => {
    const [, Experiment, data, mdl] = args;
    const { told, task } = collectivesOf(Experiment as never);
    const split = task.hp.mesh!.shards(task.variables, 0).filter(({ axes }) => axes.flat().includes(1));
    const { gathers, gathered, scatters, bytes } = expected(task, split);
    expect(told).toContain(`${gathers} AllGather of ${data} ranks: ${gathered} bytes`);
    expect(told).toContain(`${scatters} ReduceScatter of ${data} ranks: ${bytes * data} bytes`);
    expect(
      told
        .filter((each) => each.includes(`of ${mdl} ranks`))
        .map((each) => each.replace(/\d+ (\w+) .*/, '$1')),
    ).toEqual(['AllToAll', 'AllReduce', 'AllGather', 'ReduceScatter']);
  },
);

// Iterations: microbatches times repeats, and one less than stages. Each hands on a parcel, and its gradient; streams, those of a batch, too.
test.each([
  ['lmCloud.LmCloudSpmdPipelineMultislice2B', lmCloud.LmCloudSpmdPipelineMultislice2B, 2, 32 + 1, 4],
  [
    'lmCloud.LmCloudSpmdPipelineMultislice2BCircular',
    lmCloud.LmCloudSpmdPipelineMultislice2BCircular,
    2,
    49,
    4,
  ],
  ['lmCloud.LmCloudSpmdPipeline9B', lmCloud.LmCloudSpmdPipeline9B, 16, 128 + 15, 2],
  ['lmCloud.LmCloudSpmdPipeline175B', lmCloud.LmCloudSpmdPipeline175B, 8, 48 + 7, 2],
  ['c4.C4SpmdPipelineGpt3SmallAdam64Replicas', c4.C4SpmdPipelineGpt3SmallAdam64Replicas, 4, 32 + 3, 2],
])('stages of %s hand on microbatches', (_, Experiment, stages, iterations, handed) => {
  const { told } = collectivesOf(Experiment as never);
  const permutes = told.filter((each) => each.includes('CollectivePermute'));
  expect(permutes.map((each) => each.replace(/:.*/, ''))).toEqual([
    `${iterations * handed} CollectivePermute of ${stages} ranks`,
  ]);
});
