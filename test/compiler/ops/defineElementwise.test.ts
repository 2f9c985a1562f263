/** @file Elementwise operations that programs define: values, gradients, fusion, and what is refused. */
import { describe, expect, test } from 'vitest';
import {
  compile,
  costAnalysis,
  defineElementwise,
  type Engine,
  evalShape,
} from '../../../src/compiler/index.js';
import { hasCode } from '../../../src/compiler/native/c/hasCode.js';
import { lowerToC } from '../../../src/compiler/native/c/lowerToC.js';
import { planPlace } from '../../../src/compiler/native/stored/storedPlan.js';
import { optimize } from '../../../src/compiler/passes/index.js';
import { fingerprint } from '../../../src/compiler/program/fingerprint.js';
import { opNames } from '../../../src/compiler/rules/index.js';
import { traceProgram } from '../../../src/compiler/trace/tracedProgram.js';
import { engines } from '../engines.js';
import { host, leavesOf, repeatedly, tf } from '../support.js';

/** x * y / (1 + a |x|), with a gradient of its own and C code. */
const squash = defineElementwise('TestSquash', {
  inputs: ['x', 'y'],
  flops: 5,
  meaning: ([x, y], { a }) => tf.div(tf.mul(x!, y!), tf.add(1, tf.mul(tf.abs(x!), a as number))),
  gradient: (dy, [x, y], _, { a }) => {
    const below = tf.add(1, tf.mul(tf.abs(x!), a as number));
    return [tf.div(tf.mul(dy, y!), tf.square(below)), tf.div(tf.mul(dy, x!), below)];
  },
  c: ([x, y], { a }, float) => `(${x} * ${y} / (1.f + ${float(a as number)} * lt_absf(${x})))`,
});

/** The same without a gradient and code of its own. */
const plain = defineElementwise('TestPlainSquash', {
  inputs: ['x', 'y'],
  flops: 5,
  meaning: ([x, y], { a }) => tf.div(tf.mul(x!, y!), tf.add(1, tf.mul(tf.abs(x!), a as number))),
});

const x = [-3, -0.5, 0, 0.25, 1, 8];
const y = [2, -1.5];
const a = 0.5;
const inputs = [host([3, 2], x), host([2], y)];

/** Value, gradients by x and by the broadcast y, in plain loops. */
const expected = () => {
  const value = x.map((v, i) => (v * y[i % 2]!) / (1 + a * Math.abs(v)));
  const byX = x.map((v, i) => (y[i % 2]! * value[i]!) / (1 + a * Math.abs(v)) ** 2);
  const byY = y.map((_, k) =>
    x.reduce((sum, v, i) => (i % 2 === k ? sum + (v * value[i]!) / (1 + a * Math.abs(v)) : sum), 0),
  );
  return [value, byX, byY];
};

const program =
  (f: typeof squash) =>
  ([u, v]: any): any => {
    const loss = (p: any, q: any): any => {
      const out = f([p, q], { a });
      return tf.mul(tf.sum(tf.square(out)), 0.5);
    };
    return [f([u, v], { a }), ...tf.grads(loss)([u, v])];
  };

describe.each(engines)('%s', (_, { engine, available }) => {
  test.skipIf(!available).each([
    ['with a gradient and code of its own', squash],
    ['with a meaning alone', plain],
  ])('%s', async (_name, f) => {
    const executable = await compile(program(f), inputs as any, { engine: engine as Engine, numThreads: 1 });
    const results = leavesOf((await repeatedly(executable, inputs as any)) as any);
    await executable.dispose();
    expected().forEach((want, i) => {
      want.forEach((number, k) => {
        expect(results[i]!.data[k]).toBeCloseTo(number, 5);
      });
    });
  });
});

const traced = (f: typeof squash, scale = a) =>
  traceProgram(([u, v]: any): any => f([tf.neg(u), v], { a: scale }), inputs as any);

test('its C expression is a part of a fused loop; without one, its meaning is', () => {
  const source = (f: typeof squash) => {
    const lowered = lowerToC(optimize(traced(f).graph));
    return 'missing' in lowered ? lowered.missing : lowered.source;
  };
  expect(source(squash)).toMatch(
    /const float v0 = \(-.*\n.*const float v1 = \(v0 \* .* \/ \(1\.f \+ 0\.5f \* lt_absf\(v0\)\)\);/,
  );
  expect(source(plain)).not.toContain('0.5f * lt_absf');
  expect(hasCode('TestSquash')).toBe(true);
});

test('FLOPs are those per element, and it is one operation', () => {
  const { byOp } = costAnalysis((u: any, v: any) => squash([u, v], { a }), ...inputs);
  expect(byOp).toEqual({ TestSquash: { count: 1, flops: 30, bytes: 4 * (6 + 2 + 6) } });
});

test("is none of Luthier's: plans of it are not stored, and fingerprints know it by its meaning", () => {
  expect(opNames()).not.toContain('TestSquash');
  expect(planPlace(undefined as never, [traced(squash).graph], { name: '', defines: [] }, 'v')).toBe(
    undefined,
  );
  expect(fingerprint(traced(squash))).toBe(fingerprint(traced(plain)));
  expect(fingerprint(traced(squash, 0.25))).not.toBe(fingerprint(traced(squash)));
});

describe('refused are', () => {
  const spec = (shape: number[], dtype = 'float32') => ({ shape, dtype }) as any;
  const call =
    (...specs: any[]) =>
    () =>
      evalShape((...given: any[]) => squash(given, { a }) as any, ...specs);

  test('other names', () => {
    const define = (name: string) => () =>
      defineElementwise(name, { inputs: ['x'], flops: 1, meaning: ([u]) => u! });
    expect(define('swish')).toThrow(
      "defineElementwise: expected a capitalized word as name, such as 'Swish', got 'swish'.",
    );
    expect(define('Erf')).toThrow("Operation 'Erf' is defined twice.");
    expect(define('TestSquash')).toThrow("Operation 'TestSquash' is defined twice.");
  });

  test('operands that do not fit', () => {
    expect(call(spec([2]), spec([2], 'int32'))).toThrow(
      'testSquash: expected float32 (tf.cast converts), got float32[2] and int32[2].',
    );
    expect(call(spec([2]), spec([3]))).toThrow(
      'testSquash: expected shapes that broadcast, got [2] and [3], of 2 and 3 in dimension 0.',
    );
    expect(call(spec([2]))).toThrow('testSquash: expected 2 tensors: x, y, got float32[2].');
  });
});
