/** @file Random elementwise programs: the WebAssembly loop agrees with ONNX Runtime and with tfjs's cpu backend. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Tensor } from '../../../src/compiler/index.js';
import { runs } from '../../faults/campaign.js';
import { compiledResults, expectCloseToLargest, floats, host, runLoop, tf } from '../support.js';

/** PROGRAMS and SEED in the environment run others than those of every test run. */
const numRuns = Number(process.env.PROGRAMS ?? runs(100, 40));
const seed = Number(process.env.SEED ?? 20260202);

/** Operations whose results are bounded by their operands', so that no program runs away. */
const OPERATIONS: Record<string, (a: Tensor, b: Tensor, c: Tensor) => Tensor> = {
  add: (a, b) => tf.mul(tf.add(a, b), 0.5),
  sub: (a, b) => tf.mul(tf.sub(a, b), 0.5),
  mul: (a, b) => tf.minimum(tf.maximum(tf.mul(a, b), -4), 4),
  div: (a, b) => tf.div(a, tf.add(tf.abs(b), 1)),
  maximum: (a, b) => tf.maximum(a, b),
  minimum: (a, b) => tf.minimum(a, b),
  sqrt: (a) => tf.sqrt(tf.add(tf.abs(a), 0.5)),
  rsqrt: (a) => tf.rsqrt(tf.add(tf.square(a), 1)),
  reciprocal: (a) => tf.reciprocal(tf.add(tf.abs(a), 1)),
  difference: (a, b) => tf.mul(tf.squaredDifference(a, b), 0.05),
  addN: (a, b, c) => tf.div(tf.addN([a, ...[b, c].filter((x) => tf.util.arraysEqual(x.shape, a.shape))]), 3),
  neg: (a) => tf.neg(a),
  constant: (a) => tf.add(tf.mul(a, 0.5), tf.fill(a.shape, 0.25)),
};

interface Step {
  readonly operation: string;
  /** Which of the earlier values are the operands, as parts of their number. */
  readonly operands: readonly number[];
}

const part = fc.integer({ min: 0, max: 999 });
const step: fc.Arbitrary<Step> = fc.record({
  operation: fc.constantFrom(...Object.keys(OPERATIONS)),
  operands: fc.tuple(part, part, part),
});
/** A choice compares inputs, never results: a rounding must not turn it. */
const program = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 12 }),
  choice: fc.constantFrom('greater', 'lessEqual', 'equal', 'notEqual', 'both', 'neither'),
  size: fc.integer({ min: 2, max: 67 }),
});

function chosen(kind: string, a: Tensor, b: Tensor): Tensor {
  if (kind === 'both') return tf.logicalAnd(tf.greater(a, 0), tf.less(b, 0));
  if (kind === 'neither') return tf.logicalNot(tf.logicalOr(tf.greater(a, 0), tf.greaterEqual(b, 0)));
  return { greater: tf.greater, lessEqual: tf.lessEqual, equal: tf.equal, notEqual: tf.notEqual }[kind]!(
    a,
    b,
  );
}

test('random elementwise programs agree with both other engines', async () => {
  await fc.assert(
    fc.asyncProperty(program, async ({ steps, choice, size }) => {
      const inputs = [
        floats([size], -2, 2, 1),
        floats([size], -2, 2, 2),
        floats([], -2, 2, 3),
        host([1], [0.75]),
      ];
      const f = (given: Tensor[]): Tensor[] => {
        const values = [...given];
        for (const { operation, operands } of steps) {
          const [a, b, c] = operands.map((x) => values[Math.floor((x * values.length) / 1000)]!);
          values.push(OPERATIONS[operation]!(a!, b!, c!));
        }
        const [x, y] = given;
        // The last value may be a scalar, which is no output of a loop.
        const last = tf.add(values.at(-1)!, y!);
        return [tf.where(chosen(choice, x!, y!), last, tf.neg(x!)), last];
      };
      const loop = await runLoop(f as any, inputs);
      for (const engine of ['onnx', 'eager'] as const) {
        const expected = await compiledResults(f as any, inputs, { engine });
        expect(loop.length).toBe(expected.length);
        loop.forEach((tensor, i) => {
          expectCloseToLargest(tensor, expected[i]!, `output ${i} against ${engine}`);
        });
      }
    }),
    { numRuns, seed },
  );
});
