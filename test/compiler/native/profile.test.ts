/** @file Profiles of programs: parts with their layers and work, times that add up, spans that follow each other. */
import { afterAll, describe, expect, it } from 'vitest';
import {
  compile,
  type Executable,
  memoryBandwidth,
  ops,
  type Part,
  Profiler,
  tf,
  valueAndGrad,
  withPrecision,
  withScope,
} from '../../../src/compiler/index.js';
import { lowerToC } from '../../../src/compiler/native/c/lowerToC.js';
import { partsOf } from '../../../src/compiler/native/plan/profiledParts.js';
import { optimize } from '../../../src/compiler/passes/index.js';
import { ProgramProfile } from '../../../src/compiler/profile/profiler.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { hasCompiler } from './compilerSupport.js';
import { openSource } from './programs.js';

const [rows, width, hidden] = [192, 32, 64];

const specs = {
  x: { shape: [rows, width], dtype: 'float32' },
  w1: { shape: [width, hidden], dtype: 'float32' },
  w2: { shape: [hidden, width], dtype: 'float32' },
} as const;

/** Two layers with a loss and gradients. */
function twoLayers({ x, ...params }: any): any {
  const loss = ({ w1, w2 }: any) => {
    const inner = withScope('net/first', () => ops.gelu(tf.matMul(x, w1) as any));
    const out = withScope('net/second', () => tf.matMul(inner, w2));
    return { value: tf.mean(tf.square(out)) as tf.Tensor, aux: {} };
  };
  const { value, grads } = valueAndGrad(loss, params);
  return { value, grads };
}

function partsIn(f: (inputs: any) => any, inputs: any): Part[] {
  const lowered = lowerToC(optimize(traceProgram(f, inputs).graph));
  if ('missing' in lowered) throw new Error(lowered.missing);
  return partsOf(lowered.plan).flat();
}

const flopsIn = (parts: readonly Part[], scope: string): number =>
  parts.reduce(
    (sum, { flops, shares }) => sum + flops * (shares.find((share) => share.scope === scope)?.share ?? 0),
    0,
  );

describe('parts', () => {
  it('have all FLOPs of products, each with its layer, in the forward pass and in the gradient', () => {
    const parts = partsIn(twoLayers, specs);
    const product = 2 * rows * width * hidden;
    expect(flopsIn(parts, 'net/first')).toBe(product);
    expect(flopsIn(parts, 'net/second')).toBe(product);
    // The gradient of x is not asked for.
    expect(flopsIn(parts, 'grad net/first')).toBeCloseTo(product);
    expect(flopsIn(parts, 'grad net/second')).toBeCloseTo(2 * product);
    for (const { shares } of parts)
      expect(shares.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 10);
  });

  it('count only the visible pairs of causal attention', () => {
    const [batch, time, heads, dims] = [2, 8, 4, 16];
    const head = { shape: [batch, time, heads, dims], dtype: 'float32' };
    const attend = (causal: boolean) =>
      partsIn(({ q, k, v }) => ops.attention(q, k, v, { causal }), { q: head, k: head, v: head });
    const attention = (causal: boolean) => attend(causal).find(({ kind }) => kind === 'attention')!;
    const pairs = batch * heads * time * time;
    expect(attention(false).flops).toBe(4 * pairs * dims);
    expect(attention(true).flops).toBe(4 * ((pairs * (time + 1)) / (2 * time)) * dims);
  });

  it('count bytes where they cross from memory to threads, and bfloat16 as two', () => {
    const vector = { x: { shape: [1000], dtype: 'float32' }, y: { shape: [1000], dtype: 'float32' } };
    const [loop, ...others] = partsIn(({ x, y }) => tf.add(tf.mul(x, y), x), vector);
    expect(others).toEqual([]);
    expect(loop).toMatchObject({ kind: 'loop', label: 'Multiply, Add', bytes: 3 * 4000, flops: 0 });
    const product = (precision: 'float32' | 'bfloat16') =>
      partsIn(({ x, w1 }) => withPrecision(precision, () => tf.matMul(x, w1)), {
        x: specs.x,
        w1: specs.w1,
      }).find(({ kind }) => kind === 'product')!;
    const ends = 4 * rows * (width + hidden);
    expect(product('float32').bytes).toBe(ends + 4 * width * hidden);
    expect(product('bfloat16').bytes).toBe(ends + 2 * width * hidden);
    expect(product('bfloat16').label).toBe(`${rows}x${width} by ${width}x${hidden} bf16`);
  });
});

describe('a profile', () => {
  const part = (label: string): Part => ({ kind: 'loop', label, shares: [], flops: 0, bytes: 0 });
  const [a, b] = [part('a'), part('b')];
  const open = () => new ProgramProfile('p', 'native', 'float32', 2, [[a], [b]]);
  // Thread, step, part, from, to: the second thread comes later, and waits at the end.
  const spans = Float64Array.from(
    [
      [0, 0, 0, 10, 12],
      [0, 1, -1, 12, 13],
      [0, 1, 0, 13, 16],
      [1, 0, 0, 11, 13],
      [1, 1, -1, 13, 13],
      [1, 1, 0, 13, 15],
    ].flat(),
  );

  it('adds up: parts and waiting are the threads’ time', () => {
    const profile = open();
    profile.add(8, 1, spans);
    expect(profile.times.map(({ part, seconds, count }) => [part.label, seconds, count])).toEqual([
      ['a', 4, 1],
      ['b', 5, 1],
    ]);
    expect(profile).toMatchObject({ runs: 1, seconds: 8, insideSeconds: 6, waitingSeconds: 3 });
    // Two runs, the second of which waits for the first, and a part that is done in two blocks.
    const again = [0, 0, -1, 16, 17, 0, 0, 0, 17, 18, 0, 0, 0, 18, 20];
    profile.add(8, 2, Float64Array.from([...spans.subarray(0, 15), ...again]));
    expect(profile.times.map(({ seconds, count }) => [seconds, count])).toEqual([
      [9, 3],
      [8, 2],
    ]);
    expect(profile).toMatchObject({ runs: 3, seconds: 16, insideSeconds: 16, waitingSeconds: 5 });
    expect([...profile.lastRun()].slice(0, 4)).toEqual([
      { thread: 0, part: a, from: 10, to: 12 },
      { thread: 0, part: null, from: 12, to: 13 },
      { thread: 0, part: b, from: 13, to: 16 },
      { thread: 0, part: null, from: 16, to: 17 },
    ]);
  });

  it('begins anew', async () => {
    const profiler = new Profiler();
    const profile = profiler.open('p', 'onnx', 'float32');
    profile.add(1, 2);
    await profiler.phase('input', () => 3);
    expect([...profiler.phases.keys()]).toEqual(['input']);
    profiler.restart();
    expect(profile).toMatchObject({ runs: 0, seconds: 0, times: [] });
    expect(profiler.phases.size).toBe(0);
    await expect(profiler.phase('update', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect([...profiler.phases.keys()]).toEqual(['update']);
  });
});

describe.skipIf(!hasCompiler)('machine code', () => {
  const opened: Executable[] = [];
  afterAll(() => Promise.all(opened.map((executable) => executable.dispose())));

  const run = async (profiler: Profiler | undefined, times: number, numThreads: number) => {
    const executable = await compile(twoLayers, specs, {
      engine: 'native',
      name: 'two',
      numThreads,
      profiler,
    });
    opened.push(executable);
    const filled = (size: number) => Float32Array.from({ length: size }, (_, i) => Math.sin(i));
    const call = executable.bind({
      inputs: { x: filled(rows * width), w1: filled(width * hidden), w2: filled(hidden * width) },
    });
    for (let i = 0; i < times; i++) await call.run();
    return call.outputs;
  };

  it.each([1, 2])('tells what each of %i threads did, part by part', async (threads) => {
    const profiler = new Profiler();
    await run(profiler, 3, threads);
    const [profile, ...others] = profiler.programs;
    expect(others).toEqual([]);
    expect(profile).toMatchObject({ name: 'two', runner: 'native', runs: 3, threads, precision: 'float32' });
    for (const { seconds, count } of profile!.times) {
      expect(seconds).toBeGreaterThan(0);
      expect(count).toBe(3);
    }
    const busy = profile!.times.reduce((sum, { seconds }) => sum + seconds, 0);
    expect(busy + profile!.waitingSeconds).toBeCloseTo(threads * profile!.insideSeconds, 9);
    expect(profile!.insideSeconds).toBeLessThanOrEqual(profile!.seconds);
    // A thread's spans have no gaps: each starts where the one before ended.
    const spans = [...profile!.lastRun()];
    for (let thread = 0; thread < threads; thread++) {
      const own = spans.filter((span) => span.thread === thread);
      expect(own.length).toBeGreaterThan(3);
      for (const [i, { from }] of own.slice(1).entries()) expect(from).toBe(own[i]!.to);
    }
  });

  it.each([1, 2])(
    'counts each turn of a loop, and the turns that take a branch, on %i threads',
    async (threads) => {
      const profiler = new Profiler();
      const f = ({ x, w }: any): any =>
        ops.scan(
          (state: tf.Tensor, row: tf.Tensor) => {
            const next = tf.tanh(tf.matMul(state, w)) as tf.Tensor;
            const isLarge = tf.greater(tf.sum(row), 10);
            return [
              next,
              ops.cond(
                isLarge,
                (given) => tf.exp(given),
                (given) => tf.sin(given),
                next,
              ),
            ];
          },
          tf.ones([4, 8]),
          x,
        )[1];
      const inputs = {
        x: { shape: [5, 2], dtype: 'float32' },
        w: { shape: [8, 8], dtype: 'float32' },
      } as const;
      const executable = await compile(f, inputs, {
        engine: 'native',
        name: 'loop',
        numThreads: threads,
        profiler,
      });
      opened.push(executable);
      const call = executable.bind({
        inputs: { x: Float32Array.of(9, 9, 0, 0, 9, 9, 1, 1, 1, 1), w: new Float32Array(64).fill(0.1) },
      });
      for (let i = 0; i < 3; i++) await call.run(2);
      const [profile] = profiler.programs;
      const countOf = (label: string) => profile!.times.find(({ part }) => part.label === label)!.count;
      expect(profile!.runs).toBe(6);
      expect(['4x8 by 8x8', 'Exp', 'Sin'].map(countOf)).toEqual([6 * 5, 6 * 2, 6 * 3]);
    },
  );

  it('is compared with the memory bandwidth', async () => {
    expect(await memoryBandwidth(2)).toBeGreaterThan(0);
    expect(await memoryBandwidth(1)).toBeLessThan(Number.POSITIVE_INFINITY);
  });

  it('does not change any bit', async () => {
    expect(await run(new Profiler(), 1, 2)).toEqual(await run(undefined, 1, 2));
  });

  it('adds marks only to profiled programs', async () => {
    const lowered = lowerToC(optimize(traceProgram(twoLayers, specs).graph));
    if ('missing' in lowered) throw new Error(lowered.missing);
    expect(lowered.source).toContain('LT_MARK(0);');
    // Without a profile nobody asks for spans, and none are kept.
    const backend = await openSource(lowered.source, [], { name: 'plain', threads: 1 });
    await backend.dispose();
  });

  it('is distinguished from engines that time whole runs only', async () => {
    const profiler = new Profiler();
    const options = { engine: 'onnx', name: 'runtime', profiler } as const;
    const executable = await compile(({ x }) => tf.relu(x), { x: specs.x }, options);
    opened.push(executable);
    const call = executable.bind({ inputs: { x: new Float32Array(rows * width) } });
    await call.run(2);
    await call.run();
    expect(profiler.programs).toHaveLength(1);
    expect(profiler.programs[0]).toMatchObject({
      name: 'runtime',
      runner: 'onnx',
      runs: 3,
      threads: 0,
      times: [],
    });
    expect(profiler.programs[0]!.seconds).toBeGreaterThan(0);
  });
});
