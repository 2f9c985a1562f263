/** @file The check that the shards of several hosts are disjoint and, together, the rows that one host reads. */
import { createHash } from 'node:crypto';
import type { HostTensor } from '../../compiler/program/index.js';
import { build, type Config, copyWith } from '../../hparams/index.js';
import { arraysOf, type BaseInput, type Batch, InputError, type InputState } from '../../inputs/index.js';
import { UsageError } from '../../system/text/index.js';
import { readBatches } from '../datasets.js';

/** Numbers of hosts that are compared with one. */
const HOSTS = [2, 4] as const;

/** Comparison of the hosts' data with one host's. */
export interface ShardVerdict {
  readonly hosts: number;
  /** Rows that they gave more often than one host does: on two hosts, or none of its rows. */
  readonly surplus: number;
  /** Rows of one host that none of them gave. */
  readonly missing: number;
  /** Whether their batches, one host's behind another's, are in one host's order. */
  readonly isSameOrder: boolean;
  /** Whether all hosts end after the same number of batches. */
  readonly endTogether: boolean;
  /** Why these hosts were not compared, though each can read its data. */
  readonly skipped?: string;
  /** Why a host cannot read its data. */
  readonly error?: string;
}

/** The check of all numbers of hosts. */
export interface ShardCheck {
  /** Batches of one host, and its rows, padding aside. */
  readonly batches: number;
  readonly rows: number;
  /** Whether these are all the data. */
  readonly isWhole: boolean;
  /** Rows of one host that equal an earlier one: of another epoch, or twice in the data. */
  readonly repeated: number;
  readonly verdicts: readonly ShardVerdict[];
  readonly holds: boolean;
}

type RowPart = readonly [name: string, values: HostTensor['data']];

/**
 * Whether a row is padding. Where the batch has weights: of no weight, and without a token. Elsewhere: as `emptyBatch`
 * makes rows, of zeros.
 */
function isPadding(parts: readonly RowPart[]): boolean {
  const all = (name: string, value: number) =>
    parts.every(([of, values]) => of !== name || values.every((x: number) => x === value));
  if (parts.some(([name]) => name === 'weights')) return all('weights', 0) && all('paddings', 1);
  return parts.every(([name, values]) => values.every((x: number) => x === (name === 'paddings' ? 1 : 0)));
}

/** A digest for each row of a batch, over all arrays; null for a row of padding. */
function rowDigests(batch: Batch): (string | null)[] {
  const arrays = [...arraysOf(batch)];
  const rows = arrays[0]?.[1].shape[0] ?? 0;
  return Array.from({ length: rows }, (_, row) => {
    const parts = arrays.map(([path, { data }]): RowPart => {
      const size = data.length / rows;
      return [path.split('.').at(-1)!, data.subarray(row * size, (row + 1) * size)];
    });
    if (isPadding(parts)) return null;
    const hash = createHash('sha256');
    for (const [, { buffer, byteOffset, byteLength }] of parts)
      hash.update(new Uint8Array(buffer, byteOffset, byteLength));
    return hash.digest('base64');
  });
}

type Digests = (string | null)[][];

interface Shard {
  /** Digests of the rows, batch by batch. */
  readonly batches: Digests;
  readonly isAtEnd: boolean;
}

async function shardOf(
  config: Config<BaseInput>,
  hosts: number,
  host: number,
  limit: number,
): Promise<Shard> {
  const input = build(copyWith(config, { numInfeedHosts: hosts, infeedHostIndex: host }));
  try {
    const batches: Digests = [];
    for await (const batch of readBatches(input, limit)) batches.push(rowDigests(batch));
    return { batches, isAtEnd: batches.length < limit };
  } finally {
    await input.close();
  }
}

/** Lanes of the data by a state: their rows are dealt to hosts lane by lane, so hosts meet after each has had its turn. */
function lanesOf(state: InputState): number {
  const { lanes } = state;
  if (Array.isArray(lanes)) return lanes.length;
  const nested = Object.values(state).filter((part) => typeof part === 'object' && part !== null);
  return nested.reduce((product: number, part) => leastMultiple(product, lanesOf(part as InputState)), 1);
}

function leastMultiple(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y > 0) [x, y] = [y, x % y];
  return (a / x) * b;
}

/** Rows of all hosts in the order of the global batches: host 0's of the first, host 1's of the first, … */
function inOrder(shards: readonly Shard[]): string[] {
  const length = Math.max(...shards.map(({ batches }) => batches.length));
  return Array.from({ length }, (_, t) => shards.flatMap(({ batches }) => batches[t] ?? []))
    .flat()
    .filter((digest) => digest !== null);
}

function compared(
  hosts: number,
  shards: readonly Shard[],
  one: readonly string[],
  isWhole: boolean,
): ShardVerdict {
  const rows = inOrder(shards);
  const left = new Map<string, number>();
  for (const digest of one) left.set(digest, (left.get(digest) ?? 0) + 1);
  let surplus = 0;
  for (const digest of rows) {
    const count = left.get(digest) ?? 0;
    if (count === 0) surplus++;
    else left.set(digest, count - 1);
  }
  const missing = [...left.values()].reduce((sum, count) => sum + count, 0);
  const isSameOrder = rows.length === one.length && rows.every((digest, i) => digest === one[i]);
  const counts = new Set(shards.map(({ batches }) => batches.length));
  const endTogether = counts.size === 1 && shards.every(({ isAtEnd }) => isAtEnd === isWhole);
  return { hosts, surplus, missing, isSameOrder, endTogether };
}

/** The verdict on hosts whose rows were not read. */
const unread = (hosts: number, why: Pick<ShardVerdict, 'skipped' | 'error'>): ShardVerdict => ({
  ...{ hosts, surplus: 0, missing: 0, isSameOrder: false, endTogether: true },
  ...why,
});

/**
 * Compares the rows of 2 and of 4 hosts, by their digests, with those of one host.
 *
 * @param limit batches of one host to compare, Infinity for all the data. Several hosts read as many between them: all
 *   end a whole round of the lanes, so up to a round more is read.
 * @throws UsageError for all of endless data
 */
export async function checkShards(config: Config<BaseInput>, limit: number): Promise<ShardCheck> {
  const alone = build(copyWith(config, { numInfeedHosts: 1, infeedHostIndex: 0 }));
  const lanes = lanesOf(alone.getState());
  const { isEndless, name } = alone;
  await alone.close();
  if (isEndless && limit === Number.POSITIVE_INFINITY)
    throw new UsageError(`--shards=all: dataset '${name}' has no end; expected a number of batches.`);
  const round = leastMultiple(Math.max(...HOSTS), lanes);
  const one = await shardOf(config, 1, 0, Math.ceil(limit / round) * round);
  const rows = inOrder([one]);
  const verdicts: ShardVerdict[] = [];
  for (const hosts of HOSTS) {
    if (lanes > 1 && lanes % hosts !== 0) {
      const skipped = `${lanes} lanes are no multiple of ${hosts}, so hosts pass through them at different speeds`;
      verdicts.push(unread(hosts, { skipped }));
      continue;
    }
    // One batch more than there should be shows whether the data ends.
    const each = Math.ceil(one.batches.length / hosts) + (one.isAtEnd ? 1 : 0);
    try {
      const shards: Shard[] = [];
      for (let host = 0; host < hosts; host++) shards.push(await shardOf(config, hosts, host, each));
      verdicts.push(compared(hosts, shards, rows, one.isAtEnd));
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      verdicts.push(unread(hosts, { error: error.message }));
    }
  }
  return {
    ...{ batches: one.batches.length, rows: rows.length, isWhole: one.isAtEnd, verdicts },
    repeated: rows.length - new Set(rows).size,
    holds: verdicts.every(
      ({ surplus, missing, endTogether, error }) =>
        surplus + missing === 0 && endTogether && error === undefined,
    ),
  };
}
