/** @file Ranks in this process, whose collectives wait for one another. */
import type { Ranks } from '../../../src/collectives/index.js';
import { treeSum } from '../../../src/tasks/index.js';

/** @param told hears the bytes that each rank hands to a collective. */
export function ranksInProcess(count: number, told?: (collective: string, bytes: number) => void): Ranks[] {
  /** A call that every rank makes: the last one that comes does it for all. */
  function collective<T extends ArrayBufferView>(forAll: (buffers: readonly T[]) => void) {
    const waiting: { buffer: T; goOn: () => void }[] = [];
    return (rank: number, buffer: T): Promise<void> =>
      new Promise((goOn) => {
        waiting[rank] = { buffer, goOn };
        if (waiting.filter(Boolean).length < count) return;
        const all = waiting.splice(0);
        forAll(all.map((one) => one.buffer));
        for (const one of all) one.goOn();
      });
  }
  const reduce = collective<Float32Array>((buffers) => {
    const total = treeSum(buffers).slice();
    for (const buffer of buffers) buffer.set(total);
  });
  const gather = collective<Uint8Array>((buffers) => {
    const size = buffers[0]!.length / count;
    const blocks = buffers.map((buffer, i) => buffer.slice(i * size, (i + 1) * size));
    for (const buffer of buffers) for (const [i, block] of blocks.entries()) buffer.set(block, i * size);
  });
  const broadcasts = Array.from({ length: count }, (_, root) =>
    collective<Uint8Array>((buffers) => {
      for (const [i, buffer] of buffers.entries()) if (i !== root) buffer.set(buffers[root]!);
    }),
  );
  const combines = Array.from({ length: count }, (_, root) =>
    collective<Uint8Array>((buffers) => {
      for (const [i, buffer] of buffers.entries())
        if (i !== root) for (let j = 0; j < buffer.length; j++) buffers[root]![j]! |= buffer[j]!;
    }),
  );
  return Array.from({ length: count }, (_, rank) => ({
    ...{ rank, count },
    allReduce: (sums) => {
      told?.('allReduce', sums.byteLength);
      return reduce(rank, sums);
    },
    allGather: (all) => {
      told?.('allGather', all.byteLength / count);
      return gather(rank, all);
    },
    broadcast: (data, root = 0) => broadcasts[root]!(rank, data),
    combine: (data, root) => {
      told?.('combine', data.byteLength);
      return combines[root]!(rank, data);
    },
  }));
}
