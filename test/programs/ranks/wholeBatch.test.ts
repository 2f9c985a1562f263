/** @file Training batches with the rows of all ranks, as one process reads them. */
import { expect, test } from 'vitest';
import { build } from '../../../src/hparams/index.js';
import { EndOfData } from '../../../src/inputs/index.js';
import { nextTurn } from '../../../src/programs/ranks/agreement.js';
import { gatherRows, peekWhole } from '../../../src/programs/ranks/wholeBatch.js';
import { Mesh } from '../../../src/tasks/index.js';
import { ranksInProcess } from './ranksInProcess.js';
import { shareOf } from './rowShares.js';

/** Rank 0's next batch; input of rank 1 may have ended. */
async function peeked(mesh: Mesh, isEnded = false) {
  const all = ranksInProcess(mesh.ways()).map((ranks, rank) => {
    const { index, count } = mesh.shareOf(rank);
    const input = shareOf(index, count);
    if (isEnded && rank === 1) input.peek = () => Promise.reject(new EndOfData('train'));
    return { options: { ranks, mesh }, input };
  });
  const [batch] = await Promise.all(
    all.map(async ({ options, input }, rank) => {
      if (rank === 0) return peekWhole(options, input);
      expect(await nextTurn(options.ranks)).toBe('peek');
      return gatherRows(options, input);
    }),
  );
  return batch;
}

const grid = (...iciMeshShape: number[]): Mesh => build(Mesh.config({ iciMeshShape }));

test.each([[[1, 2, 1]], [[2, 2, 1]], [[1, 2, 2]]])(
  'the mesh %j has the rows of one process, in their order',
  async (shape) => {
    expect(await peeked(grid(...shape))).toEqual(await shareOf(0, 1).peek());
  },
);

test('where the data of one rank have ended, there is no batch', async () => {
  expect(await peeked(grid(1, 2, 1), true)).toBeUndefined();
});
