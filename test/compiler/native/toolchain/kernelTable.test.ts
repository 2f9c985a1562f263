/** @file The table of measured kernels: how it is measured and kept, and what is chosen by it. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, test } from 'vitest';
import {
  BFLOAT16_PRODUCTS,
  chooseBfloat16,
  type KernelTable,
  measureRates,
  namedRates,
  productsBy,
  type RateCase,
  rateCases,
  readTable,
  sharedTable,
} from '../../../../src/compiler/native/toolchain/kernelTable.js';
import { temporaryDirectory } from '../../../command.js';

/** Arithmetic in GFLOP/s of each way on two threads; memory and one thread as given. */
function tableOf(
  { float32 = 383, bfloat16 = 198, rounded = 383, kept = 340 },
  others = 20,
): KernelTable & { readonly isSettled: boolean } {
  const speeds = { float32, bfloat16, rounded, kept };
  const rates = rateCases(2).map((rateCase) => {
    const isMost = rateCase.bound === 'arithmetic' && rateCase.threads === 2;
    return { ...rateCase, flops: (isMost ? speeds[rateCase.way] : others) * 1e9 };
  });
  return { kernels: 'simulated', rates, isSettled: true };
}

describe('products of bfloat16', () => {
  it('are made by float32 instructions where bf16 instructions are slow', () =>
    expect(chooseBfloat16(tableOf({}))).toBe('float32 instructions'));

  it('are made by bf16 instructions where these are faster by more than measurements vary', () => {
    expect(chooseBfloat16(tableOf({ bfloat16: 760 }))).toBe('bf16 instructions');
    expect(chooseBfloat16(tableOf({ bfloat16: 395 }))).toBe('float32 instructions');
  });

  it('are named by what a machine has: tiles, bf16 instructions or neither', () => {
    const named = (kernel: string) => `avx512 (float32), ${kernel} (bfloat16)`;
    const made = (kernel: string) =>
      BFLOAT16_PRODUCTS.map((asked) => productsBy(named(kernel), asked).split(' ')[0]);
    expect(BFLOAT16_PRODUCTS.map((asked) => asked.split(' ')[0])).toEqual(['bf16', 'float32', 'AMX']);
    expect(made('amx')).toEqual(['AMX', 'float32', 'AMX']);
    expect(made('avx512bf16')).toEqual(['bf16', 'float32', 'bf16']);
    expect(made('avx2')).toEqual(['float32', 'float32', 'float32']);
  });

  it('are chosen whatever the speed of few rows, which memory bounds', () => {
    const { rates } = tableOf({});
    const fast = rates.map((rate) =>
      rate.bound === 'memory' && rate.way === 'bfloat16' ? { ...rate, flops: 1e15 } : rate,
    );
    expect(chooseBfloat16({ rates: fast })).toBe('float32 instructions');
  });
});

test('rates have names', () =>
  expect(Object.entries(namedRates(tableOf({}))).slice(0, 6)).toEqual([
    ['float32, arithmetic, 1 thread', 20],
    ['bfloat16, arithmetic, 1 thread', 20],
    ['rounded, arithmetic, 1 thread', 20],
    ['kept, arithmetic, 1 thread', 20],
    ['float32, arithmetic, 2 threads', 383],
    ['bfloat16, arithmetic, 2 threads', 198],
  ]));

describe('measuring', () => {
  const cases: readonly RateCase[] = [
    { way: 'float32', bound: 'arithmetic', threads: 1 },
    { way: 'bfloat16', bound: 'arithmetic', threads: 1 },
  ];

  /** Tries that give these rates in turn, 0.7 seconds each. */
  async function measured(tries: Readonly<Partial<Record<RateCase['way'], readonly number[]>>>) {
    const counts = { float32: 0, bfloat16: 0, rounded: 0, kept: 0 };
    let time = 0;
    const measure = async ({ way }: RateCase): Promise<number> => {
      time += 700;
      const all = tries[way]!;
      return all[Math.min(counts[way]++, all.length - 1)]!;
    };
    const { rates, isSettled } = await measureRates(cases, measure, () => time);
    return { flops: rates.map(({ flops }) => flops), isSettled, counts: [counts.float32, counts.bfloat16] };
  }

  it('ends once the two fastest tries of each case agree', async () =>
    expect(await measured({ float32: [100, 97], bfloat16: [200, 201] })).toEqual({
      flops: [100, 201],
      isSettled: true,
      counts: [2, 2],
    }));

  it('is repeated for what spreads, and takes the fastest try', async () =>
    expect(await measured({ float32: [100, 100], bfloat16: [80, 200, 198] })).toEqual({
      flops: [100, 200],
      isSettled: true,
      counts: [2, 3],
    }));

  it('ends in time on a machine where all spreads, unsettled', async () =>
    expect(await measured({ float32: [10, 20, 40, 80, 160, 320], bfloat16: [1, 1] })).toEqual({
      flops: [80, 1],
      isSettled: false,
      counts: [4, 2],
    }));
});

describe('the file of a table', () => {
  const place = (): string => join(temporaryDirectory(), 'rates.json');
  const cases = rateCases(2);
  const { isSettled: _, ...kept } = tableOf({});

  it('is made once, and then read', async () => {
    const path = place();
    expect(await sharedTable(path, async () => tableOf({}))).toEqual(kept);
    expect(readTable(path, cases)).toEqual(kept);
  });

  it('is measured once by two at the same time', async () => {
    const path = place();
    let measuring = 0;
    const make = async () => {
      measuring++;
      await sleep(100);
      return { ...tableOf({}), rates: [...tableOf({}).rates, ...everyCase] };
    };
    const everyCase = rateCases().map((rateCase) => ({ ...rateCase, flops: 1e9 }));
    const [one, other] = await Promise.all([sharedTable(path, make), sharedTable(path, make)]);
    expect(measuring).toBe(1);
    expect(one).toEqual(other);
  });

  it.each([
    ['torn', (text: string) => text.slice(0, text.length / 2)],
    ['empty', () => ''],
    ['of no rates', () => '{"kernels": "simulated", "rates": []}'],
    ['of impossible rates', (text: string) => text.replaceAll('20000000000', '-1')],
  ])('that is %s is made again', async (_, damage) => {
    const path = place();
    await sharedTable(path, async () => tableOf({}));
    writeFileSync(path, damage(readFileSync(path, 'utf8')));
    expect(readTable(path, cases)).toBeUndefined();
    await sharedTable(path, async () => tableOf({}));
    expect(readTable(path, cases)).toEqual(kept);
  });

  it('is not kept where measurements have spread to the end', async () => {
    const path = place();
    expect(await sharedTable(path, async () => ({ ...tableOf({}), isSettled: false }))).toEqual(kept);
    expect(readTable(path, cases)).toBeUndefined();
  });

  it('is replaced where it is measured again', async () => {
    const path = place();
    await sharedTable(path, async () => tableOf({}));
    const again = await sharedTable(path, async () => tableOf({ bfloat16: 760 }), true);
    expect(chooseBfloat16(again)).toBe('bf16 instructions');
    expect(readTable(path, cases)).toEqual(again);
  });

  it('serves one process where it cannot be written', async () => {
    const path = join(temporaryDirectory(), 'missing', 'rates.json');
    expect(await sharedTable(path, async () => tableOf({}))).toEqual(kept);
    mkdirSync(join(path), { recursive: true });
    expect(await sharedTable(path, async () => tableOf({}))).toEqual(kept);
  });
});
