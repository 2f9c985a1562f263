/**
 * @file Table of how fast this machine's kernels are: measured once, cached beside the runtime, and what products of bfloat16
 * are chosen by.
 */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readRegularFile, writeWhole } from '../../../files/index.js';
import { acquireLock, type Lock, LockedError } from '../../../system/index.js';
import { kernelNames, productRate } from '../library.js';
import type { Toolchain } from './index.js';

/** Ways of multiplying, by their numbers in luthier.h. */
const WAYS = ['float32', 'bfloat16', 'rounded', 'kept'] as const;

/** Products by what bounds them: m rows of k elements by n columns. Packed, the second is 64 MB of float32. */
const SHAPES = {
  arithmetic: { m: 128, n: 768, k: 768, seconds: 0.01 },
  memory: { m: 1, n: 4096, k: 4096, seconds: 0.03 },
} as const;

const bounds = ['arithmetic', 'memory'] as const satisfies readonly (keyof typeof SHAPES)[];

/** Products that are measured. */
export interface RateCase {
  readonly way: (typeof WAYS)[number];
  readonly bound: (typeof bounds)[number];
  readonly threads: number;
}

/** Measured speeds of a machine's kernels. */
export interface KernelTable {
  /** The kernels of float32 and of bfloat16. */
  readonly kernels: string;
  /** FLOP/s of the shortest of several tries. */
  readonly rates: readonly (RateCase & { readonly flops: number })[];
}

/** Instructions by which products of bfloat16 are made: they add in different orders, so that a run keeps to one. */
export const BFLOAT16_PRODUCTS = ['bf16 instructions', 'float32 instructions', 'AMX tiles'] as const;
export type Bfloat16Products = (typeof BFLOAT16_PRODUCTS)[number];

/** Number of the way in luthier.h. Of tiles and bf16 instructions a machine takes those that it has. */
export const wayOf = (products: Bfloat16Products): number =>
  WAYS.indexOf(products === 'float32 instructions' ? 'rounded' : 'bfloat16');

/** The products that a machine makes where others are asked for. @param kernels names of its kernels, by `kernelNames` */
export function productsBy(kernels: string, asked: Bfloat16Products): Bfloat16Products {
  if (asked === 'float32 instructions') return asked;
  if (/\bamx\b/.test(kernels)) return 'AMX tiles';
  return /\bavx512bf16\b/.test(kernels) ? 'bf16 instructions' : 'float32 instructions';
}

/** All cases, on one thread and on all. */
export function rateCases(most = availableParallelism()): RateCase[] {
  const teams = [...new Set([1, most])];
  return bounds.flatMap((bound) => teams.flatMap((threads) => WAYS.map((way) => ({ way, bound, threads }))));
}

/** Advantage of bf16 instructions, beyond what measurements vary by, for which they are taken. */
const WORTHWHILE = 1.05;

/**
 * The faster instructions where arithmetic bounds products. Where memory does, they are level: kept operands take two bytes
 * an element for both. The number of rows has no part in it: a row has the same bits in a batch of any size.
 */
export function chooseBfloat16({ rates }: Pick<KernelTable, 'rates'>): Bfloat16Products {
  const rateOf = (sought: RateCase['way']): number =>
    Math.max(
      0,
      ...rates.flatMap(({ way, bound, flops }) => (way === sought && bound === 'arithmetic' ? flops : [])),
    );
  return rateOf('bfloat16') > WORTHWHILE * rateOf('rounded') ? 'bf16 instructions' : 'float32 instructions';
}

/** Relative difference of the two fastest tries up to which a rate counts as measured. */
const SPREAD = 0.05;
/** Milliseconds after which rates that still spread are taken as they are. */
const MOST_TIME = 4000;

/** Whether the two fastest tries agree. */
function agree(tries: readonly number[]): boolean {
  const [first = 0, second = 0] = tries.toSorted((a, b) => b - a);
  return second > 0 && first <= (1 + SPREAD) * second;
}

/**
 * Measures each case until its two fastest tries agree: a neighbour that takes a core makes tries slower, never faster.
 *
 * @param measure FLOP/s of one try.
 * @param now milliseconds.
 * @returns the fastest tries, and whether all agree within the time limit.
 */
export async function measureRates(
  cases: readonly RateCase[],
  measure: (rateCase: RateCase) => Promise<number>,
  now: () => number = () => performance.now(),
): Promise<{ readonly rates: KernelTable['rates']; readonly isSettled: boolean }> {
  const tries = cases.map((): number[] => []);
  const start = now();
  let spread = cases.map((_, i) => i);
  while (spread.length > 0 && now() - start < MOST_TIME) {
    for (const i of spread) tries[i]!.push(await measure(cases[i]!));
    spread = spread.filter((i) => !agree(tries[i]!));
  }
  const rates = cases.map((rateCase, i) => ({ ...rateCase, flops: Math.max(...tries[i]!) }));
  return { rates, isSettled: spread.length === 0 };
}

/** The table in a file; undefined where it is missing, damaged, or of other cases. */
export function readTable(path: string, cases = rateCases()): KernelTable | undefined {
  try {
    // Read without zod, which programs that only compile need not load.
    const { kernels, rates } = JSON.parse(readRegularFile(path).toString()) as KernelTable;
    const known = cases.map(({ way, bound, threads }) =>
      rates.find((rate) => rate.way === way && rate.bound === bound && rate.threads === threads),
    );
    const isWhole =
      typeof kernels === 'string' && known.every((rate) => rate !== undefined && rate.flops > 0);
    return isWhole ? { kernels, rates } : undefined;
  } catch {
    return undefined;
  }
}

/** Between looks at what another process measures, and for how long; both in milliseconds. */
const POLL = 50;
const MOST_WAITING = 3 * MOST_TIME;

/** A lock; `held` while another process has it, undefined where the folder can't be written. */
async function lockOf(path: string): Promise<Lock | 'held' | undefined> {
  try {
    return await acquireLock(path);
  } catch (error) {
    return error instanceof LockedError ? 'held' : undefined;
  }
}

/**
 * The table in a file, or else made and kept there, by one process at a time: two that measure at once slow each other.
 *
 * @param make gives a table, and whether it is good enough to be kept.
 * @param isNew whether one that is there is made again.
 */
export async function sharedTable(
  path: string,
  make: () => Promise<KernelTable & { readonly isSettled: boolean }>,
  isNew = false,
): Promise<KernelTable> {
  const start = performance.now();
  let lock = await lockOf(`${path}.lock`);
  for (; lock === 'held' && performance.now() - start < MOST_WAITING; lock = await lockOf(`${path}.lock`)) {
    await sleep(POLL);
  }
  try {
    const found = isNew ? undefined : readTable(path);
    if (found !== undefined) return found;
    const { isSettled, ...table } = await make();
    if (isSettled && typeof lock === 'object') keep(path, table);
    return table;
  } finally {
    if (typeof lock === 'object') lock.release();
  }
}

function keep(path: string, table: KernelTable): void {
  try {
    writeWhole(path, `${JSON.stringify(table, undefined, 1)}\n`);
  } catch {
    // A full disk: the table serves this process alone.
  }
}

/** The bound of products and the number of threads, such as `arithmetic, 2 threads`. */
export const boundText = ({ bound, threads }: Pick<RateCase, 'bound' | 'threads'>): string =>
  `${bound}, ${threads} ${threads === 1 ? 'thread' : 'threads'}`;

/** GFLOP/s by the cases that were measured, such as `bfloat16, arithmetic, 2 threads`. */
export const namedRates = ({ rates }: KernelTable): Record<string, number> =>
  Object.fromEntries(
    rates.map((rate) => [`${rate.way}, ${boundText(rate)}`, Math.round(rate.flops / 1e8) / 10]),
  );

const tables = new Map<string, Promise<KernelTable>>();

/**
 * The machine's table, from the cache or measured now, which takes a second or two. Kernels that LUTHIER_KERNEL forces have
 * their own.
 *
 * @param isNew whether it is measured again.
 */
export function kernelTable({ runtime, env }: Toolchain, isNew = false): Promise<KernelTable> {
  const forced = (env.LUTHIER_KERNEL ?? '').replace(/\W/g, '');
  const path = join(runtime.folder, `rates${forced && `-${forced}`}.json`);
  const known = tables.get(path);
  if (known !== undefined && !isNew) return known;
  const measure = ({ way, bound, threads }: RateCase): Promise<number> =>
    productRate(runtime.library, WAYS.indexOf(way), SHAPES[bound], threads);
  const made = readOrMake(path, isNew, async () => ({
    kernels: await kernelNames(runtime.library),
    ...(await measureRates(rateCases(), measure)),
  }));
  tables.set(path, made);
  return made;
}

async function readOrMake(
  path: string,
  isNew: boolean,
  make: Parameters<typeof sharedTable>[1],
): Promise<KernelTable> {
  const found = isNew ? undefined : readTable(path);
  return found ?? sharedTable(path, make, isNew);
}
