/** @file Rules of one's own: per variable and with slots of any shape and dtype; results that do not fit. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { type NarrowType, narrow, tf, widen } from '../../../src/compiler/index.js';
import { type Config, ConfigError } from '../../../src/hparams/index.js';
import {
  BaseOptimizer,
  type Direction,
  type RuleInputs,
  type SlotSpecs,
  type SlotVariable,
  slotLike,
} from '../../../src/learners/index.js';
import { bench, learnerOf, noise } from '../fixtures.js';

/** Slots and results as a test wants them. */
class Custom extends BaseOptimizer.with({
  perVariable: z.boolean().default(true),
  kind: z.enum([
    'block',
    'bytes',
    'narrow',
    'shape',
    'lost',
    'unknown',
    'uneven',
    'dtypes',
    'average',
    'direction',
  ]),
}) {
  override get isPerVariable(): boolean {
    return this.hp.perVariable;
  }

  slotSpecs(variable: SlotVariable): SlotSpecs {
    const { kind } = this.hp;
    if (kind === 'block') return { scale: { shape: [2], fill: 3 } };
    if (kind === 'bytes') return { q: { ...slotLike(variable, -5), dtype: 'int8' } };
    if (kind === 'narrow')
      return {
        b: slotLike(variable, 0.1, 'bfloat16'),
        h: slotLike(variable, 0.1, 'float16'),
        u: slotLike(variable, 5, 'uint8'),
      };
    if (kind === 'uneven')
      return variable.path === 'b'
        ? { m: slotLike(variable), n: slotLike(variable) }
        : { m: slotLike(variable) };
    if (kind === 'dtypes')
      return { m: { ...slotLike(variable), dtype: variable.path === 'b' ? 'int8' : 'float32' } };
    if (kind === 'average') return { ema: slotLike(variable) };
    return { m: slotLike(variable) };
  }

  protected direction({ grad, param, slots, scalars, variables }: RuleInputs): Direction {
    const { kind } = this.hp;
    if (kind === 'block') {
      const scale = tf.add(slots.scale!, tf.stack([tf.sum(grad), tf.max(param)]));
      return { direction: tf.mul(grad, tf.slice(scale, [0], [1])), slots: { scale } };
    }
    if (kind === 'bytes') return { direction: grad, slots: { q: tf.add(slots.q!, tf.mul(grad, 100)) } };
    if (kind === 'narrow') {
      const next = Object.entries(slots).map(([name, slot]) => [name, tf.add(slot, tf.mul(grad, 100))]);
      // The step takes the slot before it is rounded.
      return { direction: Object.fromEntries(next).b, slots: Object.fromEntries(next) };
    }
    if (kind === 'shape') return { direction: grad, slots: { m: tf.sum(grad) } };
    if (kind === 'lost') return { direction: grad, slots: {} };
    if (kind === 'direction') return { direction: tf.mul(scalars.learningRate!, 2), slots };
    return { direction: grad, slots: { ...slots, [`more of ${variables.name}`]: grad } };
  }
}

const custom = (kind: Config<Custom>['kind'], perVariable = true) =>
  learnerOf(Custom.config({ learningRate: 1, kind, perVariable }));

test('a rule of single variables sees each in its shape, with slots of any shape, and stacked ones one by one', async () => {
  const { step, read } = await bench({ a: [1, 2, 3, 4, 5, 6], b: [1, 9] }, custom('block'), {
    shapes: { a: [2, 3], b: [2] },
    repeatPrefix: { a: [2] },
  });
  expect(read('a', 'scale')).toEqual([3, 3, 3, 3]);
  await step(0, { a: [1, 1, 1, 0, 0, -1], b: [0, 2] });
  expect(read('a', 'scale')).toEqual([6, 6, 2, 9]);
  expect(read('a')).toEqual([1 - 6, 2 - 6, 3 - 6, 4, 5, 6 + 2]);
  expect(read('b', 'scale')).toEqual([5, 12]);
  expect(read('b')).toEqual([1, 9 - 10]);
});

test.each([true, false])(
  'int8: the nearest integers from -127 to 127, per variable %s',
  async (perVariable) => {
    const { step, read, slots } = await bench(
      { a: noise(1, 6), b: noise(2, 17) },
      custom('bytes', perVariable),
      { shapes: { a: [2, 3], b: [17] } },
    );
    expect(slots.q).toBeInstanceOf(Int8Array);
    expect(read('a', 'q')).toEqual(new Array(6).fill(-5));
    const b = Array.from({ length: 17 }, (_, i) => (i - 8) / 100);
    await step(0, { a: [0.5, -0.5, 9, -9, 0.026, -1.21], b });
    expect(read('a', 'q')).toEqual([45, -55, 127, -127, -2, -126]);
    expect(read('b', 'q')).toEqual(b.map((_, i) => i - 13));
    await step(1, { a: [0, 0, 0, 0, 0, 0], b: b.map(() => 0.01) });
    expect(read('a', 'q')).toEqual([45, -55, 127, -127, -2, -126]);
    expect(read('b', 'q')).toEqual(b.map((_, i) => i - 12));
  },
);

test.each([true, false])(
  'bfloat16, float16 and uint8: the nearest of what the rule gives, which goes on from there, per variable %s',
  async (perVariable) => {
    const size = 17;
    const { step, read, slots } = await bench({ a: new Array(size).fill(0) }, custom('narrow', perVariable));
    const at = (value: number, dtype: NarrowType) => [...narrow(Float32Array.of(value), dtype)];
    expect(Object.values(slots).map((slot) => slot.constructor)).toEqual([
      Uint16Array,
      Uint16Array,
      Uint8Array,
    ]);
    expect([read('a', 'b')[16], read('a', 'h')[16], read('a', 'u')[16]]).toEqual([
      at(0.1, 'bfloat16')[0],
      at(0.1, 'float16')[0],
      5,
    ]);
    const grads = noise(3, size).map(Math.fround);
    const held = {
      b: widen(Uint16Array.from(read('a', 'b')), 'bfloat16'),
      h: widen(Uint16Array.from(read('a', 'h')), 'float16'),
    };
    const added = (before: ArrayLike<number>) =>
      Float32Array.from(grads, (g, i) => before[i]! + Math.fround(g * 100));
    const [b, h] = [added(held.b), added(held.h)];
    await step(0, { a: grads });
    expect(read('a', 'b')).toEqual([...narrow(b, 'bfloat16')]);
    expect(read('a', 'h')).toEqual([...narrow(h, 'float16')]);
    expect(read('a', 'u')).toEqual(grads.map((g) => Math.max(0, Math.round(5 + g * 100))));
    expect(read('a')).toEqual([...b].map((x) => -x));
    await step(1, { a: grads });
    expect(read('a', 'b')).toEqual([...narrow(added(widen(narrow(b, 'bfloat16'), 'bfloat16')), 'bfloat16')]);
  },
);

test.each<[Config<Custom>['kind'], boolean, string]>([
  ['shape', true, "Custom: the rule gives [] as slot 'm' of 'a', and expected is [2, 3]."],
  ['lost', true, "Custom: the rule gives nothing as slot 'm' of 'a', and expected is [2, 3]."],
  ['lost', false, "Custom: the rule gives nothing as slot 'm' of 'decay', and expected is [32]."],
  ['direction', true, "Custom: the rule gives [] as direction of 'a', and expected is [2, 3]."],
  ['unknown', true, "Custom: the rule gives a slot 'more of decay:a' of 'a', which slotSpecs does not name."],
  [
    'block',
    false,
    "Custom: the slot 'scale' of 'a' has shape [2], and an elementwise rule needs the variable's, [2, 3]. Let " +
      'isPerVariable be true for a rule that sees one variable at a time.',
  ],
  [
    'uneven',
    false,
    "Custom: the slots of 'b' are m, n, and those of variables before it m. An elementwise rule has the same slots for " +
      'all. Let isPerVariable be true for a rule that sees one variable at a time.',
  ],
  [
    'dtypes',
    true,
    "The slot 'm' is float32 for 'a' and int8 for 'b': give it two names, or both optimizers the same slotDtype.",
  ],
  [
    'average',
    true,
    "Custom: the slot 'ema' of 'a': the name is that of the average of parameters, emaDecay.",
  ],
])('%s, per variable %s: what does not fit is named', async (kind, perVariable, message) => {
  const failure = bench({ a: noise(1, 6), b: [1] }, custom(kind, perVariable), { shapes: { a: [2, 3] } });
  const error = await failure.catch((error: unknown) => error);
  expect(error).toBeInstanceOf(ConfigError);
  expect((error as Error).message).toBe(message);
});
