/** @file A hundred steps of lm.Small in float32 on meshes of four ranks: the bits of one process, or its losses. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { describeMpis } from '../../collectives/describeMpis.js';
import type { Mpi } from '../../collectives/mpirun.js';
import { temporaryDirectory } from '../../command.js';
import { expectSame, trainOnRanks } from './trainOnRanks.js';

const STEPS = 100;
const project = resolve('test/fixtures/meshes');

async function train(mpi: Mpi, ranks: number, mesh: string, ...more: string[]) {
  const directory = temporaryDirectory();
  const job = { experiment: 'smallMeshes.SmallOnMesh', directory, steps: STEPS, project };
  const losses = await trainOnRanks(mpi, ranks, job, [`mesh=${mesh}`, 'task.train.numSubBatches=4', ...more]);
  const state = readFileSync(join(directory, 'checkpoints/checkpoint_00000100/state.safetensors'));
  return { losses, state };
}

/** Losses of ten steps within 1e-5, and of the last within 1e-3. */
function expectNear(losses: readonly number[], expected: readonly number[]): void {
  expect(losses.length).toBe(STEPS);
  expectSame(losses.slice(0, 10), expected.slice(0, 10));
  expect(Math.abs(losses.at(-1)! - expected.at(-1)!)).toBeLessThan(1e-3);
}

describeMpis((mpi) => {
  test('replicas of rows have the bits of one process', async () => {
    const one = await train(mpi, 1, 'none');
    const { losses, state } = await train(mpi, 4, 'replicas');
    expect(losses).toEqual(one.losses);
    expect(Buffer.compare(state, one.state)).toBe(0);
  });

  test('experts over data_expert have the losses of one process', async () => {
    const one = await train(mpi, 1, 'none', 'experts=true');
    expectNear((await train(mpi, 4, 'experts', 'experts=true')).losses, one.losses);
  });
}, 0);
