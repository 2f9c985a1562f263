/** @file Steps that ranks take together: the bits of one process with the same sub-batches, and shares that cannot be. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Ranks } from '../../../src/collectives/index.js';
import { BFLOAT16_PRODUCTS, type Bfloat16Products } from '../../../src/compiler/index.js';
import { ConfigError } from '../../../src/hparams/index.js';
import { nextTurn } from '../../../src/programs/ranks/agreement.js';
import { sharedProducts } from '../../../src/programs/ranks/rankStep.js';
import type { TrainReport } from '../../../src/programs/trainProgram.js';
import { partsOfRank, treeSum } from '../../../src/tasks/index.js';
import { hasCompiler } from '../../compiler/native/compilerSupport.js';
import { tinyTraining } from '../tinyTraining.js';
import { ranksInProcess } from './ranksInProcess.js';
import { divided, shareOf } from './rowShares.js';

/** Three steps of so many ranks, or of a process without ranks: what each of them has then. */
async function trained(
  engine: 'onnx' | 'native',
  ranks: readonly (Ranks | undefined)[],
  products: readonly Bfloat16Products[] = [],
) {
  const opened = await Promise.all(
    ranks.map((each, rank) =>
      tinyTraining(engine, 2, {
        ...{ emaDecay: 0.5, edit: divided, input: shareOf(rank, ranks.length) },
        ...(each && { ranks: each }),
        ...(products[rank] && { fpropDtype: 'bfloat16', bfloat16Products: products[rank] }),
      }),
    ),
  );
  const reports: TrainReport[][] = [];
  for (let step = 0; step < 3; step++)
    reports.push(
      await Promise.all(
        opened.map(async ({ program }, rank) => {
          if (rank > 0) await nextTurn(ranks[rank]!);
          return program.run();
        }),
      ),
    );
  const digest = (x: ArrayBufferView) => createHash('sha256').update(new Uint8Array(x.buffer)).digest('hex');
  return opened.map(({ state }, rank) => ({
    buffers: [state.params, ...Object.values(state.slots)].map(digest),
    reports: reports.map((ofStep) => ofStep[rank]!),
  }));
}

describe.each(['onnx', ...(hasCompiler ? ['native' as const] : [])] as const)('on %s', (engine) => {
  test('ranks have the bits of a fused step', async () => {
    const [one] = await trained(engine, [undefined]);
    expect(one!.reports.every(({ update }) => update.gradScale < 1)).toBe(true);
    for (const count of engine === 'native' ? [2, 4] : [2])
      for (const rank of await trained(engine, ranksInProcess(count))) expect(rank).toEqual(one);
  });
});

test.runIf(hasCompiler)(
  'ranks multiply bfloat16 as rank 0 does, whatever their machines prefer',
  async () => {
    const [alone] = await trained('native', [undefined], ['float32 instructions']);
    const products = ['float32 instructions', 'bf16 instructions'] as const;
    for (const rank of await trained('native', ranksInProcess(2), products)) expect(rank).toEqual(alone);
  },
);

test('ranks without the tiles or instructions of rank 0 have all multiply by float32 instructions', () => {
  const [bf16, float32, tiles] = BFLOAT16_PRODUCTS;
  expect(sharedProducts(tiles, [tiles, tiles])).toBe(tiles);
  expect(sharedProducts(tiles, [tiles, bf16])).toBe(float32);
  expect(sharedProducts(bf16, [tiles])).toBe(float32);
  expect(sharedProducts(bf16, [float32])).toBe(float32);
  expect(sharedProducts(float32, [tiles, bf16])).toBe(float32);
});

test('a sum by other neighbours has other bits', () => {
  const parts = () => [1, 2 ** -24, 2 ** -24, 2 ** -24].map((x) => Float32Array.of(x));
  const inOrder = parts().reduce((sum, [x]) => Math.fround(sum + x!), 0);
  expect([treeSum(parts())[0], inOrder]).toEqual([1 + 2 ** -23, 1]);
});

test('each rank takes a power of two of sub-batches', () => {
  expect([partsOfRank(3, 1), partsOfRank(12, 3), partsOfRank(4, 4)]).toEqual([3, 4, 1]);
  for (const [total, ranks] of [
    [1, 2],
    [6, 2],
    [5, 4],
  ] as const)
    expect(() => partsOfRank(total, ranks)).toThrow(
      new ConfigError(
        `task.train.numSubBatches is ${total} on ${ranks} ranks, and each takes as many sub-batches, 1 or 2 or 4 …: ` +
          `set it to ${ranks}, ${2 * ranks} or ${4 * ranks} …`,
        { path: 'task.train.numSubBatches' },
      ),
    );
});
