/** @file The next training batch with the rows of all ranks, on rank 0. */
import { newHostArray } from '../../compiler/index.js';
import { type Batch, type InputSource, mapBatch, peekBatch } from '../../inputs/index.js';
import type { JobOptions } from '../../runs/index.js';
import { agree, announce } from './agreement.js';
import { rowShare } from './jobMesh.js';

type MeshOfRank = Pick<JobOptions, 'ranks' | 'mesh'>;

/** The next batch of training, not taken: on rank 0 that of all ranks. @returns undefined where the data has ended */
export async function peekWhole(options: MeshOfRank, input: InputSource): Promise<Batch | undefined> {
  if (options.ranks === undefined || rowShare(options).count === 1) return peekBatch(input);
  await announce(options.ranks, 'peek');
  return gatherRows(options, input);
}

/** Gives rank 0 the rows of all ranks. All call it. @returns on other ranks nothing of use */
export async function gatherRows(options: MeshOfRank, input: InputSource): Promise<Batch | undefined> {
  const ranks = options.ranks!;
  const own = await agree(ranks, () => peekBatch(input));
  const ended = Float32Array.of(own === undefined ? 1 : 0);
  await ranks.allReduce(ended);
  if (own === undefined || ended[0]! > 0) return undefined;
  const { count } = rowShare(options);
  const arrays: [ArrayBufferView, Uint8Array][] = [];
  const batch = mapBatch(own, ({ shape: [rows = 1, ...shape], dtype, data }) => {
    const all = newHostArray(dtype, data.length * count);
    arrays.push([data, bytesOf(all)]);
    return { shape: [rows * count, ...shape], dtype, data: all };
  });
  for (const [given, all] of arrays) await gather(options, bytesOf(given), all);
  return batch as unknown as Batch;
}

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

/** Fills `all` with the rows of ranks, one of those that read the same. */
async function gather(options: MeshOfRank, own: Uint8Array, all: Uint8Array): Promise<void> {
  const ranks = options.ranks!;
  const size = own.length;
  const ofRanks = new Uint8Array(size * ranks.count);
  ofRanks.set(own, size * ranks.rank);
  await ranks.allGather(ofRanks);
  for (let rank = 0; rank < ranks.count; rank++) {
    const { index } = rowShare({ ...options, ranks: { ...ranks, rank } });
    all.set(ofRanks.subarray(rank * size, (rank + 1) * size), index * size);
  }
}
