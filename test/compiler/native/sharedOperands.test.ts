/** @file Programs that multiply by the same frozen inputs pack them once, in memory that they share. */
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  type Bfloat16Products,
  chooseBfloat16,
  compile,
  type HostTensor,
  kernelRates,
  nativeTools,
  type Precision,
  withPrecision,
} from '../../../src/compiler/index.js';
import { roundOperand } from '../../../src/compiler/program/precision.js';
import { loadMapFile } from '../../../src/files/index.js';
import { temporaryDirectory } from '../../command.js';
import { longTest } from '../../longTest.js';
import { floats } from '../support.js';
import { hasCompiler, sharedBytes } from './compilerSupport.js';
import { f32, tf } from './plans.js';

const [depth, columns] = [48, 96];
/** Bytes of the packed operand: this many columns are whole panels of every kernel. */
const PACKED = depth * columns * 4;

/** [rows, depth] times w, in a program of its own. */
const product = (rows: number, frozen = ['w']) =>
  compile(
    ({ x, w }: any) => ({ y: tf.matMul(x, w) }),
    { x: f32(rows, depth), w: f32(depth, columns) },
    {
      ...{ engine: 'native', numThreads: 2, name: `product of ${rows}` },
      frozen,
    },
  );

const weights = (seed: number) => floats([depth, columns], -1, 1, seed).data as Float32Array;

function boundTo(executable: Awaited<ReturnType<typeof product>>, rows: number, w: Float32Array) {
  const call = executable.bind({ inputs: { x: floats([rows, depth], -1, 1, rows).data, w } });
  return async () => [...((await call.run()) as { y: HostTensor }).y.data];
}

/** Resident bytes of a mapped file. */
function residentOf(path: string): number {
  const [, own] = readFileSync('/proc/self/smaps', 'utf8').split(path);
  return 1024 * Number(/^Rss:\s*(\d+)/m.exec(own!)![1]);
}

/** What a program gives that packs w anew in each run. */
async function expected(rows: number, w: Float32Array): Promise<number[]> {
  const plain = await product(rows, []);
  const y = await boundTo(plain, rows, w)();
  await plain.dispose();
  return y;
}

describe.skipIf(!hasCompiler)('packed operands', () => {
  // Programs of other files in this process may share some, too.
  let before = 0;
  beforeEach(async () => {
    before = await sharedBytes();
  });
  const moreBytes = async () => (await sharedBytes()) - before;

  it('are shared by programs of few rows and of many, until the last one is disposed of', async () => {
    const w = weights(1);
    const [few, many] = [await product(2), await product(64)];
    expect(await moreBytes()).toBe(0);
    expect(await boundTo(few, 2, w)()).toEqual(await expected(2, w));
    expect(await moreBytes()).toBe(PACKED);
    const runMany = boundTo(many, 64, w);
    expect(await runMany()).toEqual(await expected(64, w));
    expect(await moreBytes()).toBe(PACKED);
    await few.dispose();
    expect(await runMany()).toEqual(await expected(64, w));
    expect(await moreBytes()).toBe(PACKED);
    await many.dispose();
    expect(await moreBytes()).toBe(0);
  });

  it('are those of other arrays, or of another layout, in memory of their own', async () => {
    const [w, other] = [weights(1), weights(2)];
    const [one, two] = [await product(2), await product(3)];
    const runs = [boundTo(one, 2, w), boundTo(two, 3, other), boundTo(two, 3, w)] as const;
    expect([await runs[0](), await runs[1]()]).toEqual([await expected(2, w), await expected(3, other)]);
    expect(await moreBytes()).toBe(2 * PACKED);
    // The program leaves the one for the other.
    expect(await runs[2]()).toEqual(await expected(3, w));
    expect(await moreBytes()).toBe(PACKED);
    const transposed = await compile(
      ({ x, w }: any) => ({ y: tf.matMul(x, w, false, true) }),
      { x: f32(2, depth), w: f32(columns, depth) },
      { engine: 'native', frozen: ['w'], name: 'transposed' },
    );
    const y = await boundTo(transposed, 2, w)();
    expect(y).not.toEqual(await expected(2, w));
    expect(await moreBytes()).toBe(2 * PACKED);
    for (const executable of [one, two, transposed]) await executable.dispose();
    expect(await moreBytes()).toBe(0);
  });

  it('follow what has changed, in each program that is told', async () => {
    const w = weights(1);
    const [few, many] = [await product(2), await product(64)];
    const [runFew, runMany] = [boundTo(few, 2, w), boundTo(many, 64, w)];
    await Promise.all([runFew(), runMany()]);
    w.set(weights(5));
    for (const executable of [few, many]) executable.refresh();
    // At the same time: runs of the process's threads take turns.
    expect(await Promise.all([runMany(), runFew()])).toEqual([await expected(64, w), await expected(2, w)]);
    for (const executable of [few, many]) await executable.dispose();
  });

  it('of an input that is another one in each run of a call are shared with no program', async () => {
    const [w, stacked] = [weights(1), new Float32Array([...weights(1), ...weights(2), ...weights(3)])];
    const [one, moving] = [await product(2), await product(64)];
    const run = boundTo(one, 2, w);
    await run();
    const x = floats([64, depth], -1, 1, 64).data as Float32Array;
    const call = moving.bind({ inputs: { x, w: stacked }, runs: 3 });
    const { y } = (await call.run(3)) as { y: HostTensor };
    const parts = [1, 2, 3].map((seed) => expected(64, weights(seed)));
    expect([...y.data]).toEqual((await Promise.all(parts)).flat());
    expect(await moreBytes()).toBe(2 * PACKED);
    expect(await run()).toEqual(await expected(2, w));
    for (const executable of [one, moving]) await executable.dispose();
  });

  it.skipIf(process.platform !== 'linux')(
    'leave nothing in memory of the file that they come from, but what was changed there',
    async () => {
      const map = await loadMapFile();
      const [rows, width] = [1024, 512];
      const w = floats([rows, width], -1, 1, 3).data as Float32Array;
      const x = floats([2, rows], -1, 1, 4).data as Float32Array;
      for (const transposed of [false, true]) {
        const path = join(temporaryDirectory(), 'weights');
        writeFileSync(path, w);
        const file = openSync(path, 'r');
        const mapped = new Float32Array(map!(file, path)!);
        closeSync(file);
        const executable = await compile(
          ({ x, w }: any) => ({
            y: tf.matMul(x, transposed ? tf.reshape(w, [width, rows]) : w, false, transposed),
          }),
          { x: f32(2, rows), w: f32(rows, width) },
          { engine: 'native', numThreads: 2, frozen: ['w'], name: `mapped ${transposed}` },
        );
        const runOf = (weights: Float32Array) => {
          const call = executable.bind({ inputs: { x, w: weights } });
          return async () => [...((await call.run()) as { y: HostTensor }).y.data];
        };
        const [run, expected] = [runOf(mapped), await runOf(w)()];
        expect(mapped.reduce((sum, value) => sum + value)).not.toBe(0);
        expect(residentOf(path)).toBe(w.byteLength);
        expect(await run()).toEqual(expected);
        // A page at each end of a part may be in use by the other thread.
        expect(residentOf(path)).toBeLessThan(w.byteLength / 4);
        const changed = Float32Array.from(w).fill(0.5, 5000, 6000);
        const expectedThen = await runOf(changed)();
        mapped.fill(0.5, 5000, 6000);
        executable.refresh();
        expect(await run()).toEqual(expectedThen);
        expect(await run()).toEqual(expectedThen);
        expect(mapped.every((value, i) => value === changed[i])).toBe(true);
        await executable.dispose();
      }
    },
  );

  it('of another precision, or of a part of the array, are packed for themselves', async () => {
    const w = weights(1);
    const parts: [number, number, Precision][] = [
      [depth, columns, 'float32'],
      [depth, columns, 'bfloat16'],
      [depth / 2, columns, 'float32'],
      [depth, columns / 2, 'float32'],
    ];
    const programs = [];
    let packed = 0;
    for (const [k, n, precision] of parts) {
      const f = ({ x, w }: any) => ({
        y: withPrecision(precision, () => tf.matMul(x, tf.slice(w, [0, 0], [k, n]))),
      });
      const options = { engine: 'native', frozen: ['w'], name: `${k} ${n} ${precision}` } as const;
      const executable = await compile(f, { x: f32(2, k), w: f32(depth, columns) }, options);
      const x = floats([2, k], -1, 1, 7).data as Float32Array;
      const { y } = (await executable.bind({ inputs: { x, w } }).run()) as { y: HostTensor };
      const [a, b] = [x, w].map((values) => roundOperand(values, precision));
      for (const [i, value] of y.data.entries()) {
        let sum = 0;
        for (let d = 0; d < k; d++) sum += a![Math.floor(i / n) * k + d]! * b![d * columns + (i % n)]!;
        expect(value, `${k} ${n} ${precision}, element ${i}`).toBeCloseTo(sum, 5);
      }
      const bytes = await moreBytes();
      expect(bytes, `${k} ${n} ${precision} is packed for itself`).toBeGreaterThan(packed);
      packed = bytes;
      programs.push(executable);
    }
    for (const executable of programs) await executable.dispose();
    expect(await moreBytes()).toBe(0);
  });

  longTest(
    'of bfloat16 take two bytes an element by either instructions, and float32 instructions give the bits of operands packed anew',
    async () => {
      const w = weights(1);
      const rounded = (products: Bfloat16Products, rows: number, frozen = ['w']) =>
        compile(
          ({ x, w }: any) => ({ y: withPrecision('bfloat16', () => tf.matMul(x, w)) }),
          { x: f32(rows, depth), w: f32(depth, columns) },
          { engine: 'native', numThreads: 2, name: products, bfloat16Products: products, frozen },
        );
      const x = roundOperand(floats([3, depth], -1, 1, 3).data as Float32Array, 'bfloat16');
      const exact = roundOperand(w, 'bfloat16');
      const results: number[][] = [];
      for (const products of ['bf16 instructions', 'float32 instructions'] as const) {
        const [few, many] = [await rounded(products, 3), await rounded(products, 64)];
        const anew = await rounded(products, 3, []);
        const y = await boundTo(few, 3, w)();
        results.push(y);
        expect(await boundTo(anew, 3, w)()).toEqual(y);
        for (const [i, value] of y.entries()) {
          let sum = 0;
          for (let d = 0; d < depth; d++)
            sum += x[Math.floor(i / columns) * depth + d]! * exact[d * columns + (i % columns)]!;
          expect(value).toBeCloseTo(sum, 5);
        }
        await boundTo(many, 64, w)();
        expect(await moreBytes()).toBe(PACKED / 2);
        for (const executable of [few, many, anew]) await executable.dispose();
      }
      // By the instruction, pairs are added first.
      if ((await nativeTools())!.kernels.includes('avx512bf16')) expect(results[0]).not.toEqual(results[1]);
      else expect(results[0]).toEqual(results[1]);
    },
  );

  it('of bfloat16 are made as the table says, where the program says nothing', async () => {
    const chosen = chooseBfloat16((await kernelRates())!);
    const product = (bfloat16Products?: Bfloat16Products) =>
      compile(
        ({ x, w }: any) => ({ y: withPrecision('bfloat16', () => tf.matMul(x, w)) }),
        { x: f32(5, depth), w: f32(depth, columns) },
        { engine: 'native', name: 'chosen', bfloat16Products },
      );
    const [one, other] = [await product(), await product(chosen)];
    expect(await boundTo(one, 5, weights(4))()).toEqual(await boundTo(other, 5, weights(4))());
    for (const executable of [one, other]) await executable.dispose();
  });
});
