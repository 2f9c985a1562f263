/** @file Pax's published language models, as one rank of their own meshes trains them: how much its collectives send. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import * as c4 from '../../../experiments/c4.js';
import * as lmCloud from '../../../experiments/lmCloud.js';
import { partitionProgram, type Sharding, sizeOf, traceProgram } from '../../../src/compiler/index.js';
import { build } from '../../../src/hparams/index.js';
import { splitActivations } from '../../../src/layers/index.js';
import { gradientStep, type SingleTask } from '../../../src/tasks/index.js';
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
  const step = gradientStep(task);
  const traced = traceProgram(
    (inputs) =>
      splitActivations(
        (...tensor) => mesh.activationAxes(...tensor),
        () => step(inputs),
      ),
    { params, batch, prngKeys: { shape: [1, 2], dtype: 'int32' } } as never,
    { abstract: true },
  );
  const shards = new Map(mesh.shards(task.variables, 0).map(({ path, axes }) => [path, axes]));
  const under =
    (prefix: string) =>
    (path: string): Sharding | undefined =>
      path.startsWith(prefix) ? shards.get(path.slice(prefix.length)) : undefined;
  const folder = temporaryDirectory();
  vi.stubEnv('LUTHIER_DUMP', folder);
  const { axes: rowAxes } = mesh.groupOf(mesh.hp.inputsSplitMapping);
  partitionProgram(
    traced,
    { inputs: under('params.'), outputs: under('sums.grads.'), rowAxes, axisNames: mesh.axisNames },
    mesh.sizes,
  );
  vi.unstubAllEnvs();
  const [dump] = readdirSync(folder) as [string];
  return {
    told: readFileSync(join(folder, dump, 'collectives.txt'), 'utf8')
      .trim()
      .split('\n'),
    task,
  };
}

test.each([
  ['lmCloud.LmCloudSpmd2BLimitSteps', lmCloud.LmCloudSpmd2BLimitSteps],
  ['c4.C4Spmd1BAdam4Replicas', c4.C4Spmd1BAdam4Replicas],
  ['lmCloud.LmCloudSpmdMultislice2B', lmCloud.LmCloudSpmdMultislice2B],
])('%s gathers each weight, and scatters its gradient', (_, Experiment) => {
  const { told, task } = collectivesOf(Experiment as never);
  const mesh = task.hp.mesh!;
  const data = mesh.groupOf(['data']).axes;
  const split = mesh
    .shards(task.variables, 0)
    .filter(({ axes }) => axes.flat().some((axis) => data.includes(axis)));
  const bytes = split.reduce((sum, { whole }) => sum + 4 * sizeOf(whole), 0);
  const ways = mesh.ways(['data']);
  expect(told).toEqual([
    `${split.length} AllGather of ${ways} ranks: ${bytes / ways} bytes`,
    `${split.length} ReduceScatter of ${ways} ranks: ${bytes} bytes`,
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
    const bytes = split.reduce((sum, { shape }) => sum + 4 * sizeOf(shape), 0);
    expect(told).toContain(`${split.length} AllGather of ${data} ranks: ${bytes} bytes`);
    expect(told).toContain(`${split.length} ReduceScatter of ${data} ranks: ${bytes * data} bytes`);
    expect(
      told
        .filter((each) => each.includes(`of ${mdl} ranks`))
        .map((each) => each.replace(/\d+ (\w+) .*/, '$1')),
    ).toEqual(['AllToAll', 'AllReduce', 'AllGather', 'ReduceScatter']);
  },
);
