import { describe, expect, test } from 'vitest';
import { compile, costAnalysis, evalShape, ops, type Tensor, tf } from '../../../src/compiler/index.js';
import { optimize } from '../../../src/compiler/passes/index.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { engines } from '../engines.js';
import { expectClose, leavesOf, repeatedly } from '../support.js';
import { floats } from '../values.js';
import { type Inputs, programs } from './loopPrograms.js';

const inputs = {
  x: floats([5, 2, 3], -1, 1, 1),
  w: floats([3, 3], -1, 1, 2),
  h: floats([2, 3], -1, 1, 3),
};

const names = Object.keys(programs);

/** All programs at once, so that an engine compiles once. */
const all = (given: Inputs) => Object.fromEntries(names.map((name) => [name, programs[name]!(given)]));

const resultsOf = async (options: Parameters<typeof compile>[2]) => {
  const executable = await compile(all, inputs, options);
  const results = (await repeatedly(executable, inputs)) as Record<string, Parameters<typeof leavesOf>[0]>;
  await executable.dispose();
  return results;
};

let eagerly: ReturnType<typeof resultsOf> | undefined;

describe.each(engines)('%s', (_, { engine, available }) => {
  test.runIf(available)('loops and choices, and their gradients, are those of tfjs', async () => {
    eagerly ??= resultsOf({ engine: 'eager' });
    const expected = await eagerly;
    const actual = await resultsOf({ engine, numThreads: 2 });
    for (const name of names) {
      const [made, known] = [leavesOf(actual[name]!), leavesOf(expected[name]!)];
      expect(made.length, name).toBe(known.length);
      made.forEach((leaf, i) => {
        expectClose(leaf, known[i]!, { relative: 2e-4, absolute: 2e-5 }, `${name}, ${i}`);
      });
    }
  });
});

test('op by op too, results of a choice go by their names, whichever branch orders them', async () => {
  const choice = ({ x }: { x: Tensor }) =>
    ops.cond(
      tf.greater(tf.sum(x), 0) as Tensor,
      () => ({ twice: tf.mul(x, 2), thrice: tf.mul(x, 3) }),
      () => ({ thrice: tf.mul(x, 3), twice: tf.mul(x, 2) }),
      {},
    );
  const executable = await compile(choice, { x: floats([1], 0, 1, 1) }, { engine: 'eager' });
  for (const value of [1, -1]) {
    const x = { shape: [1], dtype: 'float32', data: Float32Array.of(value) } as const;
    const { twice, thrice } = (await executable.run({ x })) as Record<string, { data: Float32Array }>;
    expect([twice!.data[0], thrice!.data[0]]).toEqual([2 * value, 3 * value]);
  }
  await executable.dispose();
});

const spec = (...shape: number[]) => ({ shape, dtype: 'float32' }) as const;

test('the body is traced once, and the program is no larger for more turns', () => {
  let calls = 0;
  const sizeOf = (length: number): number => {
    const f = ({ x, h }: { x: Tensor; h: Tensor }) =>
      tf.grad((start: Tensor) =>
        tf.sum(
          ops.scan(
            (state: Tensor, input: Tensor): [Tensor, []] => {
              calls++;
              return [tf.tanh(tf.add(state, input)), []];
            },
            start,
            x,
          )[0],
        ),
      )(h);
    const { graph } = traceProgram(f, { x: spec(length, 3), h: spec(3) });
    return optimize(graph).nodes.reduce(
      (sum, { bodies }) => sum + 1 + (bodies ?? []).reduce((inner, body) => inner + body.nodes.length, 0),
      0,
    );
  };
  const sizes = [10, 1000].map(sizeOf);
  expect(calls).toBe(2);
  expect(sizes[1]).toBe(sizes[0]);
});

test('FLOPs count once for each turn', () => {
  const product = (a: Tensor, b: Tensor) => tf.matMul(a, b);
  const loop = (a: Tensor, b: Tensor) =>
    ops.scan((state: Tensor): [Tensor, []] => [product(state, b), []], a, [], { length: 7 })[0];
  const [one, many] = [product, loop].map((f) => costAnalysis(f, spec(4, 4), spec(4, 4)).byOp.BatchMatMul!);
  expect(many).toEqual({ count: 7, flops: 7 * one!.flops, bytes: 7 * one!.bytes });
});

/** The message of what tracing `f` throws, without the place. */
function messageOf(f: (...args: any[]) => any, ...specs: any[]): string {
  try {
    evalShape(f, ...specs);
  } catch (error) {
    return (error as Error).message.split('\n')[0]!;
  }
  return 'nothing thrown';
}

const rule = 'A carry keeps its structure, shapes and dtypes from turn to turn.';

test.each([
  [
    'a carry of another shape',
    (h: Tensor, x: Tensor) => ops.scan((c: any, s: any) => [{ h: tf.concat([c.h, s]) }, []], { h }, x),
    `scan: the body returns the carry 'h' as float32[4], and was given float32[2]. ${rule}`,
  ],
  [
    'a carry of another dtype',
    (h: Tensor, x: Tensor) => ops.scan((c: Tensor, s: Tensor) => [tf.less(c, s), []], h, x),
    `scan: the body returns the carry as bool[2], and was given float32[2]. ${rule}`,
  ],
  [
    'a carry without a leaf',
    (h: Tensor, x: Tensor) => ops.scan((c: any) => [{ a: c.a }, []] as any, { a: h, b: h }, x),
    `scan: the body returns a carry without the leaf 'b'. ${rule}`,
  ],
  [
    'a carry with another leaf',
    (h: Tensor, x: Tensor) => ops.scan((c: any) => [{ ...c, z: c.a }, []] as any, { a: h }, x),
    `scan: the body returns a carry with the leaf 'z', which was not given. ${rule}`,
  ],
  [
    'no pair',
    (h: Tensor, x: Tensor) => ops.scan((c: Tensor) => c as any, h, x),
    'scan: expected the body to return [carry, y], a pair of structures of tensors.',
  ],
  [
    'lengths that differ',
    (h: Tensor, x: Tensor) => ops.scan((c: any) => [c, []], [], { h: tf.slice(h, 0, 1), x }),
    "scan: xs 'x' is float32[3,2], and xs 'h' is float32[1]: all leaves of xs, and length where it is given, need the same number of turns along the first axis.",
  ],
  [
    'another length',
    (h: Tensor, x: Tensor) => ops.scan((c: any) => [c, []], h, x, { length: 4 }),
    'scan: xs is float32[3,2], and length is 4: all leaves of xs, and length where it is given, need the same number of turns along the first axis.',
  ],
  [
    'a scalar among the xs',
    (h: Tensor) => ops.scan((c: any) => [c, []], h, { s: tf.sum(h) }),
    "scan: xs 's' is float32[], which has no axis to take a slice of in each turn.",
  ],
  [
    'no length',
    (h: Tensor) => ops.scan((c: any) => [c, []], h, []),
    'scan: xs has no leaves, so that length is needed.',
  ],
  [
    'a length that is none',
    (h: Tensor) => ops.scan((c: any) => [c, []], h, [], { length: -1 }),
    'scan: expected a length of 0 turns or more, got -1.',
  ],
  [
    'a predicate of another dtype',
    (h: Tensor) =>
      ops.cond(
        tf.sum(h),
        (a: Tensor) => a,
        (a) => a,
        h,
      ),
    'cond: expected a scalar of dtype bool, got float32[].',
  ],
  [
    'branches that differ',
    (h: Tensor) =>
      ops.cond(
        tf.scalar(true, 'bool'),
        (a: Tensor) => ({ r: a }),
        (a) => ({ r: tf.sum(a) }),
        h,
      ),
    "cond: onTrue returns float32[2] as result 'r', and onFalse float32[]. Both branches return the same structure, shapes and dtypes.",
  ],
  [
    'a condition that is no bool',
    (h: Tensor) =>
      ops.whileLoop(
        (a) => tf.sum(a),
        (a) => a,
        h,
        { maxSteps: 3 },
      ),
    'whileLoop: the condition: expected a scalar of dtype bool, got float32[].',
  ],
  [
    'no bound',
    (h: Tensor) =>
      ops.whileLoop(
        (a) => tf.less(tf.sum(a), 1),
        (a) => a,
        h,
        {} as any,
      ),
    'whileLoop: expected maxSteps of 0 or more, got undefined.',
  ],
])('%s is refused', (_, f, message) => {
  expect(messageOf(f, spec(2), spec(3, 2))).toBe(message);
});
