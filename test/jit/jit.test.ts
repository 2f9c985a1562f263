/** @file jit: its cache, arguments and results. */
import { expect, test } from 'vitest';
import type { Tensor } from '../../src/compiler/index.js';
import { type JitOptions, jit } from '../../src/jit/index.js';
import { hasCompiler } from '../compiler/native/compilerSupport.js';
import { host, tf } from '../compiler/support.js';
import { longTest } from '../longTest.js';

test('a function is traced once for each signature', async () => {
  let calls = 0;
  const f = jit((x: Tensor, y: { z: Tensor }) => {
    calls++;
    return { sum: tf.add(x, y.z), parts: [tf.neg(x)] };
  });
  const result: any = await f(host([2], [1, 2]), { z: host([], [3]) });
  expect(result).toEqual({ sum: host([2], [4, 5]), parts: [host([2], [-1, -2])] });
  await f(host([2], [5, 6]), { z: host([], [7]) });
  expect(calls).toBe(1);
  await f(host([3], [1, 2, 3]), { z: host([], [3]) });
  expect(calls).toBe(2);
  await f(host([3], [1, 2, 3], 'int32'), { z: host([], [3], 'int32') });
  expect(calls).toBe(3);
  // The first two are still there.
  await f(host([2], [1, 2]), { z: host([], [3]) });
  await f(host([3], [1, 2, 3]), { z: host([], [3]) });
  expect(calls).toBe(3);
});

test('concurrent calls share one compilation', async () => {
  let calls = 0;
  const f = jit((x: Tensor) => {
    calls++;
    return tf.square(x);
  });
  const results = await Promise.all([1, 2, 3].map((v) => f(host([1], [v]))));
  expect(results).toEqual([1, 4, 9].map((v) => host([1], [v])));
  expect(calls).toBe(1);
});

test('a failed compilation is tried again', async () => {
  let calls = 0;
  const f = jit((x: Tensor) => {
    if (calls++ === 0) throw new Error('the first time');
    return tf.neg(x);
  });
  await expect(f(host([1], [2]))).rejects.toThrow('the first time');
  expect(await f(host([1], [2]))).toEqual(host([1], [-2]));
});

const quick: JitOptions = { engine: 'onnx', numThreads: 1 };

test('arrays and numbers are arguments; strings, booleans and nulls choose the program', async () => {
  let calls = 0;
  const f = jit((x: any, { by, how, bias }: any) => {
    calls++;
    const scaled = how === 'times' ? tf.mul(x, by) : tf.add(x, by);
    return { value: bias === null ? scaled : tf.add(scaled, bias), how };
  }, quick);
  const nested = [
    [1, 2],
    [3, 4],
  ];
  expect(await f(nested, { by: 3, how: 'times', bias: null })).toEqual({
    value: host([2, 2], [3, 6, 9, 12]),
    how: 'times',
  });
  await f(nested, { by: 5, how: 'times', bias: null });
  expect(calls).toBe(1);
  expect(await f(Float32Array.of(1, 2), { by: 3, how: 'plus', bias: Int32Array.of(7, 8) })).toEqual({
    value: host([2], [11, 13]),
    how: 'plus',
  });
  expect(calls).toBe(2);
  await expect(f([[1], [2, 3]], { by: 1, how: 'plus', bias: null })).rejects.toThrow(
    'Expected nested arrays of one shape',
  );
  await expect(f(new Float64Array(2), { by: 1, how: 'plus', bias: null })).rejects.toThrow(
    'got Float64Array',
  );
});

test('the programs used last are kept, until all are freed', async () => {
  const traced: number[] = [];
  const f = jit(
    (x: Tensor) => {
      traced.push(x.size);
      return tf.neg(x);
    },
    { ...quick, maxPrograms: 2 },
  );
  for (const size of [1, 2, 1, 3, 1, 2]) await f(new Float32Array(size));
  expect(traced).toEqual([1, 2, 3, 2]);
  expect(f.numPrograms).toBe(2);
  await f.dispose();
  expect(f.numPrograms).toBe(0);
  await f(new Float32Array(1));
  expect(traced).toEqual([1, 2, 3, 2, 1]);
  expect(() => jit(tf.neg, { maxPrograms: 0 })).toThrow(
    'expected maxPrograms to be a positive integer, got 0',
  );
});

longTest(
  'programs that are let go free their memory',
  async () => {
    const { setFlagsFromString } = await import('node:v8');
    setFlagsFromString('--expose-gc');
    const collect = (await import('node:vm')).runInNewContext('gc') as () => void;
    const f = jit((x: Tensor) => tf.sum(tf.topk(tf.matMul(x as any, x as any, false, true), 2).values), {
      numThreads: 1,
      engine: 'native',
      maxPrograms: 1,
    });
    const memory: number[] = [];
    for (let i = 0; i < 4; i++) {
      const rows = 3000 + i;
      await f({ shape: [rows, 2], dtype: 'float32', data: new Float32Array(2 * rows) });
      expect(f.numPrograms).toBe(1);
      await new Promise(setImmediate);
      collect();
      memory.push(process.memoryUsage().rss / 2 ** 20);
    }
    // A program has 36 MB for the product.
    expect(memory.at(-1)! - memory[0]!, memory.join(' ')).toBeLessThan(64);
    await f.dispose();
  },
  hasCompiler,
);

test('a value that is read is an error, or breaks the graph where asked', async () => {
  const clip = (x: Tensor): Tensor => (tf.sum(x).dataSync()[0]! > 3 ? tf.zerosLike(x) : tf.neg(x));
  await expect(jit(clip, quick)(host([2], [1, 2]))).rejects.toThrow(
    /value of a traced tensor float32\[\] was read.*graphBreaks/,
  );
  const notices: string[] = [];
  const options: JitOptions = { ...quick, graphBreaks: true, notify: (notice) => notices.push(notice) };
  const f = jit(clip, options);
  expect(await f(host([2], [1, 2]))).toEqual(host([2], [-1, -2]));
  expect(await f(host([2], [2, 2]))).toEqual(host([2], [0, 0]));
  expect(await f(host([1], [2]))).toEqual(host([1], [-2]));
  expect(notices).toEqual([
    expect.stringMatching(
      /^clip can't be compiled and runs operation by operation on tfjs's backend cpu: The value/,
    ),
  ]);
});

test('a call within another one, and a promise, are refused', async () => {
  const late = jit(async (x: Tensor) => tf.neg(x), quick);
  await expect(late(host([1], [1]))).rejects.toThrow("Got a promise at 'result'");
  expect(await jit((x: Tensor) => tf.logicalNot(x), quick)([true, false])).toEqual(host([2], [0, 1], 'bool'));
  const inner = jit((x: Tensor) => tf.neg(x), quick);
  const outer = jit((x: Tensor) => inner(x), quick);
  await expect(outer(host([1], [1]))).rejects.toThrow('jit was called within a function that is compiled');
});
