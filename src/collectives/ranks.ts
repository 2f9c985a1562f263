/** @file Collectives of the processes of a job. */

/**
 * The processes that take a step together. All call the same collectives in the same order, with arrays as long as each
 * other's; a call settles once all have made it.
 */
export interface Ranks {
  /** Number of this one, from 0. */
  readonly rank: number;
  readonly count: number;
  /** Replaces this rank's sums by those over all ranks, by the tree of pairs, whose bits do not depend on how many ranks share the parts. */
  allReduce(sums: Float32Array): Promise<void>;
  /** Fills in the blocks of the other ranks: of `count` blocks of `all`, as long as each other, rank i's is the i-th. */
  allGather(all: Uint8Array): Promise<void>;
  /** Replaces the data of all ranks by those of one, by default rank 0. */
  broadcast(data: Uint8Array, root?: number): Promise<void>;
  /** Replaces one rank's bytes by the bitwise or of all ranks' bytes. */
  combine(data: Uint8Array, root: number): Promise<void>;
}

/** Bytes of a broadcast of no fixed length: its length comes first. */
export async function broadcastBytes(ranks: Ranks, data: Uint8Array): Promise<Uint8Array> {
  const length = new Float64Array([data.length]);
  await ranks.broadcast(new Uint8Array(length.buffer));
  const all = ranks.rank === 0 ? data : new Uint8Array(length[0]!);
  if (all.length > 0) await ranks.broadcast(all);
  return all;
}

/** JSON values of all ranks, by rank. */
export async function gatherJson<T>(ranks: Ranks, value: T): Promise<T[]> {
  const own = new TextEncoder().encode(JSON.stringify(value));
  const lengths = new Float64Array(ranks.count);
  lengths[ranks.rank] = own.length;
  await ranks.allGather(new Uint8Array(lengths.buffer));
  const longest = Math.max(...lengths);
  const all = new Uint8Array(longest * ranks.count);
  all.set(own, longest * ranks.rank);
  await ranks.allGather(all);
  const decoder = new TextDecoder();
  return Array.from(lengths, (length, i) => {
    const begin = i * longest;
    return JSON.parse(decoder.decode(all.subarray(begin, begin + length))) as T;
  });
}
