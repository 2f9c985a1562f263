/** @file What follows from frozen inputs and constants alone is worked out once, and kept in memory of its own. */
import { describe, expect, it } from 'vitest';
import {
  type CompileOptions,
  compile,
  type HostTensor,
  withPrecision,
} from '../../../../src/compiler/index.js';
import { splitOnce } from '../../../../src/compiler/native/plan/once.js';
import { planNative } from '../../../../src/compiler/native/plan/planGraphs.js';
import { writesOfStep } from '../../../../src/compiler/native/plan/threadSteps.js';
import { verifyPlan } from '../../../../src/compiler/native/plan/verifyPlan.js';
import { rootOf } from '../../../../src/compiler/native/plan/views.js';
import { floats, host, ops } from '../../support.js';
import { hasCompiler } from '../compilerSupport.js';
import { f32, i32, layoutOf, opText, tf } from '../plans.js';

describe('splitOnce', () => {
  const scaled = (x: any, w: any, b: any) => tf.add(tf.matMul(x, w), tf.mul(tf.exp(b), 2));

  it('takes small results of frozen inputs, and nothing that another input enters', () => {
    const { ops: all } = layoutOf(scaled, f32(3, 4), f32(4, 5), f32(5));
    const { once, rest } = splitOnce(all, new Set([1, 2]));
    expect(once.map(opText).map((text) => text.split(' ')[0])).toEqual(['Exp(float32', 'Multiply(float32']);
    expect(rest.map(({ op }) => op)).toEqual(['BatchMatMul', 'Add']);
    expect(splitOnce(all, new Set()).once).toEqual([]);
  });

  it('leaves large results, and results of the program', () => {
    const large = layoutOf((x, w) => tf.add(x, tf.exp(w)), f32(200, 100), f32(200, 100));
    expect(splitOnce(large.ops, new Set([1])).once).toEqual([]);
    const result = layoutOf((w) => tf.exp(w), f32(4));
    expect(splitOnce(result.ops, new Set([0])).once).toEqual([]);
  });

  it('leaves the carry of a loop, which the turns write to, whatever it starts from', () => {
    const loop = (x: any, w: any) =>
      ops.scan((state: any, row: any) => [tf.tanh(tf.add(state, row)), []] as any, tf.exp(w), x)[0] as any;
    for (const start of [loop, (x: any) => loop(x, tf.tensor1d([1, 2, 3]))]) {
      const { plan } = planNative(layoutOf(start, f32(4, 3), f32(3)), new Set([1]));
      const once = plan.steps.slice(0, plan.onceSteps);
      const later = plan.steps.slice(plan.onceSteps).flatMap(writesOfStep).map(rootOf);
      expect(once.flatMap(writesOfStep).filter((buffer) => later.includes(rootOf(buffer)))).toEqual([]);
    }
  });

  it('is held to that: no step writes over what another one keeps', () => {
    const planned = planNative(layoutOf(scaled, f32(64, 4), f32(4, 5), f32(5)), new Set([1, 2])).plan;
    const { steps, onceSteps } = planned;
    const wrong = [
      [new Set([1]), planned, 'a loop step wrong: it runs once, and reads what changes between runs'],
      [
        new Set([1, 2]),
        { ...planned, onceSteps: onceSteps + 1 },
        'a chain step wrong: it runs once, and reads what',
      ],
      [
        new Set([1, 2]),
        { ...planned, steps: [...steps, steps[0]!] },
        'a loop step wrong: it writes over what is kept between runs',
      ],
    ] as const;
    for (const [frozen, plan, message] of wrong) expect(() => verifyPlan(plan, frozen)).toThrow(message);
    const toInput = planNative(layoutOf((w: any) => tf.exp(w), f32(4))).plan;
    const [written] = toInput.steps.flatMap(writesOfStep);
    written!.home = { kind: 'input', index: 0 };
    expect(() => verifyPlan(toInput, new Set())).toThrow(
      'The native engine planned a loop step wrong: it writes to an input.',
    );
  });

  it('packs frozen operands in steps that run once, whose results nothing is placed over', () => {
    const f = (x: any, w: any, b: any) =>
      tf.relu(tf.add(tf.matMul(tf.relu(scaled(x, w, b)), w), tf.sin(tf.cos(b))));
    const { plan, schedule } = planNative(layoutOf(f, f32(64, 5), f32(5, 5), f32(5)), new Set([1, 2]));
    expect(schedule.onceStages).toBe(plan.onceSteps);
    const kinds = plan.steps.map(({ kind }) => kind);
    expect(kinds.slice(0, plan.onceSteps)).toContain('pack');
    expect(kinds.slice(plan.onceSteps)).not.toContain('pack');
    const epochs = plan.steps.map(({ epoch }) => epoch);
    expect(epochs[plan.onceSteps]).toBeGreaterThan(epochs[plan.onceSteps - 1]!);
  });
});

describe.skipIf(!hasCompiler)('a program with frozen inputs', () => {
  const options: CompileOptions = { engine: 'native', numThreads: 2, frozen: ['p'], name: 'frozen' };
  const f = ({ x, p }: any) => ({
    y: withPrecision('bfloat16', () => tf.add(tf.matMul(x, p.w), tf.exp(p.b))),
  });
  const spec = (rows: number) => ({ x: f32(rows, 6), p: { w: f32(6, 7), b: f32(7) } });
  const values = (seed: number) => ({
    w: floats([6, 7], -1, 1, seed).data,
    b: floats([7], -1, 1, seed + 1).data,
  });

  it.each([1, 5, 70])(
    'sees what has changed after refresh, and other arrays at once, %i rows',
    async (rows) => {
      const executable = await compile(f, spec(rows), options);
      const plain = await compile(f, spec(rows), { ...options, frozen: [] });
      const x = floats([rows, 6], -1, 1, 9).data;
      const [first, second] = [values(1), values(3)];
      const expected = async (p: typeof first) => [
        ...((await plain.bind({ inputs: { x, p } }).run()) as { y: HostTensor }).y.data,
      ];
      const [a, b] = [first, second].map((p) => executable.bind({ inputs: { x, p } }));
      const run = async (call: typeof a) => [...((await call!.run()) as { y: HostTensor }).y.data];
      const before = await expected(first);
      expect(await run(a)).toEqual(before);
      // Other arrays are seen without being told.
      expect(await run(b)).toEqual(await expected(second));
      expect(await run(a)).toEqual(before);
      // Other inputs may change at any time.
      x.fill(0.5);
      expect(await run(a)).toEqual(await expected(first));
      first.w.set(values(5).w);
      first.b.set(values(5).b);
      executable.refresh();
      expect(await run(a)).toEqual(await expected(first));
      await executable.dispose();
      await plain.dispose();
      expect(() => executable.refresh()).toThrow('frozen: the program has been disposed of.');
    },
  );

  it('keeps requested inputs in bfloat16, in place', async () => {
    const cached = ({ cache, rows, at }: any) => {
      const next = ops.updateSlice(cache, rows, at, 0);
      return { cache: next, sum: tf.sum(next, 0), largest: tf.topk(tf.reshape(next, [12]), 1).values };
    };
    const specs = { cache: f32(4, 3), rows: f32(1, 3), at: i32() };
    const executable = await compile(cached, specs, {
      engine: 'native',
      storages: { cache: 'bfloat16' },
      name: 'cached',
    });
    const [cache, next] = executable.newInputs(['cache', 'rows']) as [Uint16Array, Float32Array];
    expect(cache).toEqual(new Uint16Array(12));
    expect(next).toEqual(new Float32Array(3));
    expect([next.buffer === cache.buffer, next.byteOffset]).toEqual([true, 64]);
    const [rows, at] = [new Float32Array([1, 2, 3 + 2 ** -10]), new Int32Array([2])];
    const call = executable.bind({
      inputs: { cache, rows, at },
      outputs: { cache, sum: null, largest: null },
    });
    const { sum, largest } = (await call.run()) as { sum: HostTensor; largest: HostTensor };
    expect([...cache]).toEqual([0, 0, 0, 0, 0, 0, 0x3f80, 0x4000, 0x4040, 0, 0, 0]);
    at[0] = 0;
    await call.run();
    expect([...sum.data]).toEqual([2, 4, 6]);
    expect([...largest.data]).toEqual([3]);
    expect(() => executable.bind({ inputs: { cache: new Float32Array(12), rows, at } })).toThrow(
      "cached: input 'cache' is bfloat16[4,3] and needs a Uint16Array of 12 elements, got a Float32Array of 12.",
    );
    await executable.dispose();
  });

  it('writes a slice to other memory where it is bound so', async () => {
    const g = ({ x, rows, at }: any) => ({ y: ops.updateSlice(x, rows, at, 1) });
    const inputs = { x: floats([2, 5, 3]), rows: floats([2, 2, 3], 3, 4), at: host([], [2], 'int32') };
    const executable = await compile(g, inputs, { engine: 'native', numThreads: 2 });
    const { x, rows } = inputs;
    const { y } = (await executable.run(inputs)) as { y: HostTensor };
    const expected = Float32Array.from(x.data);
    for (const b of [0, 1]) expected.set(rows.data.subarray(6 * b, 6 * b + 6), 15 * b + 6);
    expect(y.data).toEqual(expected);
    await executable.dispose();
  });
});
