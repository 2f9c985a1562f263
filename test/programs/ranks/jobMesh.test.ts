/** @file Meshes of jobs: those of as many devices as there are ranks, and what the others are told. */
import { expect, test } from 'vitest';
import { build } from '../../../src/hparams/index.js';
import { LanguageModel } from '../../../src/models/index.js';
import { meshOfJob, rowShare, unusedMesh } from '../../../src/programs/ranks/jobMesh.js';
import { optionsOfRank } from '../../../src/programs/ranks/optionsOfRank.js';
import type { JobOptions } from '../../../src/runs/index.js';
import { Mesh, SingleTask, Train } from '../../../src/tasks/index.js';
import { ranksInProcess } from './ranksInProcess.js';

const grid = (iciMeshShape: number[], dcnMeshShape: number[] | null = null) => ({
  mesh: Mesh.config({ iciMeshShape, dcnMeshShape }),
});

test('ranks without a mesh, or with that of one device, share the rows', () => {
  for (const mesh of [null, Mesh.config()]) {
    const made = meshOfJob({ mesh }, 4);
    expect([made.sizes, made.shareOf(3)]).toEqual([[4, 1, 1], { index: 3, count: 4 }]);
  }
  const own = Mesh.config({
    ...{ meshAxisNames: ['mdl', 'batch'], iciMeshShape: [1, 1], inputsSplitMapping: ['batch'] },
  });
  expect(meshOfJob({ mesh: own }, 2).sizes).toEqual([1, 2]);
});

test('ranks that differ along other axes than those of rows read the same ones', () => {
  const mesh = meshOfJob(grid([1, 2, 2]), 4);
  const shares = [0, 1, 2, 3].map((rank) => rowShare({ ranks: { rank, count: 4 } as never, mesh }));
  expect(shares.map(({ index, count }) => `${index}/${count}`)).toEqual(['0/2', '0/2', '1/2', '1/2']);
  expect(rowShare({})).toEqual({ index: 0, count: 1 });
});

test.each([
  [
    grid([1, 4, 2]),
    4,
    'task.mesh is of 8 devices (replica, data, mdl: iciMeshShape [1,4,2]), and there are 4 ranks. Start 8, or set a mesh of 4: ' +
      '--set task.mesh.iciMeshShape=[1,2,2], or --set task.mesh.iciMeshShape=[1,4,1], or --set task.mesh.iciMeshShape=[1,1,4].',
  ],
  [
    grid([1, 2, 2], [2, 1, 1]),
    4,
    'task.mesh is of 8 devices (replica, data, mdl: iciMeshShape [1,2,2], dcnMeshShape [2,1,1]), and there are 4 ranks. Start 8, ' +
      'or set a mesh of 4: --set task.mesh.iciMeshShape=[1,1,2], or --set task.mesh.iciMeshShape=[1,2,1], or --set ' +
      'task.mesh.iciMeshShape=[2,1,1].',
  ],
  [
    grid([1, 1, 1], [2, 1, 1]),
    3,
    'task.mesh is of 2 devices (replica, data, mdl: iciMeshShape [1,1,1], dcnMeshShape [2,1,1]), and there are 3 ranks. Start 2, ' +
      'or set a mesh of 3: --set task.mesh.iciMeshShape=[1,1,3], or --set task.mesh.iciMeshShape=[1,3,1], or --set ' +
      'task.mesh.iciMeshShape=[3,1,1], with --set task.mesh.dcnMeshShape=null.',
  ],
])('a mesh of other devices than ranks: %#', (task, count, message) => {
  expect(() => meshOfJob(task, count)).toThrow(message);
});

const jobOf = (mesh: ReturnType<typeof grid>, numSubBatches = 1): JobOptions => ({
  ...{ name: 'tiny', datasets: [], decodeDatasets: [], moduleUrl: import.meta.url, jobLogDir: 'out' },
  task: SingleTask.config({ model: LanguageModel.config(), train: Train.config({ numSubBatches }), ...mesh }),
  ...{ mode: 'train', overrides: [], classVars: '' },
});

test('each share of rows is a sub-batch, unless the task has its own', async () => {
  for (const [given, expected] of [
    [1, 4],
    [8, 8],
  ] as const) {
    const all = await Promise.all(
      ranksInProcess(4).map((ranks) => optionsOfRank(jobOf(grid([2, 2, 1]), given), ranks)),
    );
    for (const { task, mesh } of all)
      expect([task.train.numSubBatches, mesh!.sizes]).toEqual([expected, [2, 2, 1]]);
  }
});

test('a process alone says that it does not use the mesh', () => {
  const task = ({ mesh }: ReturnType<typeof grid>) => ({ hp: { mesh: build(mesh) } }) as SingleTask;
  expect(unusedMesh({}, task(grid([1, 4, 2])))).toBe(
    'task.mesh is of 8 devices, and this process alone trains the whole model: mpirun -np 8 starts a rank for each.',
  );
  expect(unusedMesh({}, task(grid([1, 1, 1])))).toBeUndefined();
});
