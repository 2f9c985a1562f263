/** @file Loops whose inner axes are short: reductions in passes, small operands repeated, rows without division. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Tensor, valueAndGrad } from '../../../../src/compiler/index.js';
import { writeLoop } from '../../../../src/compiler/native/c/emitLoop.js';
import { passesOf } from '../../../../src/compiler/native/plan/shortAxes.js';
import { draw, runs, title } from '../../../faults/campaign.js';
import { compiledResults, expectClose, floats, tf } from '../../support.js';
import { hasCompiler } from '../compilerSupport.js';
import { f32, planOf, unitText } from '../plans.js';

/** A group norm of images [batch, height, width, channels], with 1 + gamma and beta for each channel. */
function groupNorm(x: Tensor, gamma: Tensor, beta: Tensor, groups: number): Tensor {
  const [batch, height, width, channels] = x.shape as [number, number, number, number];
  const each = tf.reshape(x, [batch, height, width, groups, channels / groups]) as Tensor;
  const centered = tf.sub(each, tf.mean(each, [1, 2, 4], true));
  const variance = tf.mean(tf.square(centered), [1, 2, 4], true);
  const unit = tf.mul(centered, tf.rsqrt(tf.add(variance, 1e-3)));
  return tf.add(tf.mul(tf.reshape(unit, x.shape), tf.add(gamma, 1)), beta);
}

/** The gradients of a norm by all that it reads, weighted by dy. */
const withGradients =
  (norm: (x: Tensor, gamma: Tensor, beta: Tensor) => Tensor) => (x: any, gamma: any, beta: any, dy: any) => {
    const loss = (p: { x: Tensor; gamma: Tensor; beta: Tensor }) => ({
      value: tf.sum(tf.mul(norm(p.x, p.gamma, p.beta), dy)) as Tensor,
      aux: {},
    });
    const { value, grads } = valueAndGrad(loss, { x, gamma, beta });
    return [value, grads.x, grads.gamma, grads.beta];
  };

/** The lines of a loop's function that run for each row. */
const rowLines = (text: string): string[] => text.slice(text.indexOf('for (int64_t r = r0')).split('\n');

const loopsOf = (...args: Parameters<typeof planOf>) =>
  planOf(...args).units.flatMap((unit) => (unit.kind === 'loop' ? [unit] : []));

test.each([
  [24, 8],
  [64, 32],
])(
  'a group norm of %i channels, forward and backward, copies no image and divides no row',
  (channels, groups) => {
    const image = f32(4, 32, 32, channels);
    const norm = withGradients((x, gamma, beta) => groupNorm(x, gamma, beta, groups));
    const loops = loopsOf(norm, image, f32(channels), f32(channels), image);
    const large = loops.filter(({ rows, columns }) => rows * columns >= 4 * 32 * 32 * channels);
    expect(large.map(({ rows, columns }) => `${rows}x${columns}`)).toEqual(Array(5).fill(`4096x${channels}`));
    expect(large.flatMap(({ nodes }) => nodes.map(({ op }) => op))).not.toContain('Copy');
    expect(
      large.map((unit) => writeLoop(unit, false).text).filter((text) => text.includes('i1')),
    ).toHaveLength(4);
    const lines = loops.flatMap((unit) => rowLines(writeLoop(unit, false).text));
    expect(lines.filter((line) => /[/%] \d+\b(?!\.)/.test(line))).toEqual([]);
  },
);

test.each([
  ['rows of each item', [8, 64, 64, 24], [1, 2], [[1, 2]]],
  ['groups of a few channels', [8, 64, 64, 8, 3], [1, 2, 4], [[1, 2], [4]]],
  ['channels in front', [8, 64, 32, 32], [0, 2, 3], [[2, 3], [0]]],
  ['a few channels', [8, 64, 64, 3], [0, 1, 2], [[0, 1], [2]]],
  ['axes apart', [8, 64, 20, 32], [0, 2], [[2], [0]]],
  ['axes of size 1', [8, 1, 64, 1, 32], [1, 2, 3], [[1, 2, 3]]],
  ['everything', [8, 4], [0, 1], [[0, 1]]],
] as const)('%s are reduced in passes in the order of memory', (_, shape, axes, passes) => {
  expect(passesOf([...shape], [...axes])).toEqual(passes);
});

test('a number for each group of a few channels is repeated for each channel, once for all readers', () => {
  const f = (x: any, scale: any, shift: any) => tf.add(tf.mul(x, scale), tf.div(shift, scale));
  const each = f32(64, 40, 8, 3);
  expect(planOf(f, each, f32(64, 1, 8, 1), f32(64, 40, 8, 3)).units.map(unitText)).toEqual([
    'loop 512x3 Copy',
    'loop 2560x24 Multiply RealDiv Add',
  ]);
});

test('an operand as large as the result is not repeated', () => {
  const f = (x: any, scale: any) => tf.mul(x, scale);
  const texts = planOf(f, f32(2560, 8, 3), f32(2560, 8, 1)).units.map(unitText);
  expect(texts).toEqual(['loop 20480x3 Multiply']);
});

/** A tensor of a few axes, many of them short, the axes of a reduction, and an order of axes. */
const cases = fc
  .array(fc.constantFrom<number>(1, 2, 3, 5, 7, 8, 17, 40), { minLength: 2, maxLength: 5 })
  .filter((shape) => shape.reduce((size, dim) => size * dim, 1) <= 40_000)
  .chain((shape) => {
    const all = shape.map((_, axis) => axis);
    return fc.record({
      shape: fc.constant(shape),
      axes: fc.subarray(all, { minLength: 1 }),
      perm: fc.shuffledSubarray(all, { minLength: all.length, maxLength: all.length }),
      first: fc.boolean(),
    });
  });

type Case = typeof cases extends fc.Arbitrary<infer C> ? C : never;

/** A norm over axes, its gradient, and every kind of reduction, of a tensor in one order or another. */
const reductions =
  ({ axes, perm, first }: Case) =>
  ({ x, dy }: { x: Tensor; dy: Tensor }): Tensor[] => {
    const norm = (given: Tensor): Tensor => {
      const turned = first ? tf.transpose(given, perm) : given;
      const { mean, variance } = tf.moments(turned, axes, true);
      const unit = tf.mul(tf.sub(turned, mean), tf.rsqrt(tf.add(variance, 0.5))) as Tensor;
      return first ? unit : tf.transpose(unit, perm);
    };
    const loss = (p: { x: Tensor }) => ({
      value: tf.sum(tf.mul(tf.sin(norm(p.x)), tf.transpose(dy, perm))) as Tensor,
      aux: {},
    });
    const { value, grads } = valueAndGrad(loss, { x });
    const whole = tf.cast(tf.mul(x, 4), 'int32');
    const isLarge = tf.greater(x, -1.9);
    return [
      ...[value, grads.x, norm(x), tf.transpose(x, perm)],
      ...[tf.max(x, axes), tf.min(tf.square(x), axes), tf.sum(whole, axes), tf.all(isLarge, axes)],
      ...[tf.any(isLarge, axes, true), tf.prod(tf.add(tf.mul(x, 0.01), 1), axes)],
    ] as Tensor[];
  };

describe.skipIf(!hasCompiler)(title('loops over short axes'), () => {
  test.each(draw(cases, runs(60, 3), 0x5a0e))('have the results of tfjs: %o', async (drawn) => {
    const inputs = { x: floats(drawn.shape), dy: floats(drawn.shape, -1, 1, 4) };
    const program = reductions(drawn) as never;
    const actual = await compiledResults(program, inputs, { engine: 'native', numThreads: 2 });
    const expected = await compiledResults(program, inputs, { engine: 'eager' });
    expected.forEach((result, i) => {
      const tolerance = { relative: 1e-3, absolute: i < 3 ? 1e-3 : 1e-4 };
      expectClose(actual[i]!, result, tolerance, `output ${i}`);
    });
  });
});
