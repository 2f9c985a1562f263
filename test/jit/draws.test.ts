/** @file tfjs's random operations in compiled functions and layers: numbers of their own in each call. */
import '@tensorflow/tfjs-backend-cpu';
import * as user from '@tensorflow/tfjs';
import { expect, test } from 'vitest';
import type { Tensor } from '../../src/compiler/index.js';
import { compileModel, jit } from '../../src/jit/index.js';

const N = 20_000;

/** Mean, deviation, least and largest. */
function moments(values: ArrayLike<number>): readonly [number, number, number, number] {
  const all = Array.from(values);
  const mean = all.reduce((sum, x) => sum + x, 0) / all.length;
  const variance = all.reduce((sum, x) => sum + (x - mean) ** 2, 0) / all.length;
  return [mean, Math.sqrt(variance), Math.min(...all.slice(0, 9e4)), Math.max(...all.slice(0, 9e4))];
}

/** A deviation of 2 within ±2 deviations of a normal distribution. */
const TRUNCATED = 2 * 0.8796;

test.each<[string, () => Tensor, readonly [number, number], readonly [number, number] | null]>([
  ['randomNormal', () => user.randomNormal([N], 3, 0.5), [3, 0.5], null],
  ['randomStandardNormal', () => user.randomStandardNormal([N / 2, 2]), [0, 1], null],
  ['truncatedNormal', () => user.truncatedNormal([N], 1, 2), [1, TRUNCATED], [-3, 5]],
  ['randomUniform', () => user.randomUniform([N], -2, 4), [1, 6 / Math.sqrt(12)], [-2, 4]],
  ['randomUniformInt', () => user.randomUniformInt([N], 2, 12), [6.5, Math.sqrt(99 / 12)], [2, 11]],
  ['dropout', () => user.dropout(user.ones([N]), 0.25), [1, Math.sqrt(1 / 3)], [0, 4 / 3]],
])('tf.%s draws anew in each call, with its mean, deviation and limits', async (_, draw, wanted, limits) => {
  const drawn = jit(() => ({ all: draw(), again: draw() }), { seed: 5, engine: 'onnx' });
  const calls = [];
  for (let i = 0; i < 3; i++) {
    const { all, again } = (await drawn()) as Record<string, Tensor>;
    calls.push(all!.dataSync(), again!.dataSync());
    expect([all!.shape, all!.dtype]).toEqual([draw().shape, draw().dtype]);
  }
  expect(new Set(calls.map((values) => values.slice(0, 50).join())).size).toBe(6);
  for (const values of calls) {
    const [mean, deviation, least, largest] = moments(values);
    expect(mean).toBeCloseTo(wanted[0], 1);
    expect(deviation).toBeCloseTo(wanted[1], 1);
    if (limits === null) continue;
    expect(least).toBeGreaterThanOrEqual(limits[0]);
    expect(largest).toBeLessThanOrEqual(Math.fround(limits[1]));
  }
  // The same seed, the same numbers.
  const second = jit(() => ({ all: draw(), again: draw() }), { seed: 5, engine: 'onnx' });
  expect(((await second()) as Record<string, Tensor>).all!.dataSync()).toEqual(calls[0]);
  await drawn.dispose();
  await second.dispose();
});

test('one number, none, and what they are computed with', async () => {
  const f = jit(
    (x: Tensor) => ({ one: user.add(x, user.randomNormal([], 100, 0)), none: user.randomNormal([0, 3]) }),
    { engine: 'onnx' },
  );
  const { one, none } = (await f(user.scalar(1))) as Record<string, Tensor>;
  expect([one!.dataSync()[0], none!.shape]).toEqual([101, [0, 3]]);
  await f.dispose();
});

test('first values of variables are drawn from the seed', async () => {
  const firstValue = async (seed: number): Promise<string> => {
    let made: user.Variable | undefined;
    const f = jit(
      () => {
        made ??= user.variable(user.randomNormal([4]));
        return user.add(made, 0);
      },
      { seed, engine: 'onnx' },
    );
    const first = ((await f()) as Tensor).dataSync().join();
    expect(((await f()) as Tensor).dataSync().join()).toBe(first);
    made!.dispose();
    await f.dispose();
    return first;
  };
  const [one, other, again] = [await firstValue(1), await firstValue(2), await firstValue(1)];
  expect(other).not.toBe(one);
  expect(again).toBe(one);
});

/** A layer of a user's own, that draws with an operation which its module has imported. */
class Noise extends user.layers.Layer {
  static className = 'TestNoise';
  override computeOutputShape(shape: user.Shape): user.Shape {
    return shape;
  }
  override call(inputs: Tensor | Tensor[]): Tensor {
    const x = [inputs].flat()[0]!;
    return user.add(x, user.randomNormal([1, 400], 0, 0.1)) as Tensor;
  }
}

test('a layer of its own draws anew in each step and each prediction', async () => {
  const model = user.sequential({
    layers: [
      user.layers.dense({ inputShape: [2], units: 400, useBias: false, kernelInitializer: 'ones' }),
      new Noise({}),
    ],
  });
  model.compile({ optimizer: user.train.sgd(0), loss: 'meanSquaredError' });
  const [x, y] = [user.tensor([[0.5, 0.5]]), user.ones([1, 400])];
  const steps = async (): Promise<number[]> => {
    const compiled = compileModel(model, { engine: 'onnx', seed: 3 });
    const losses = [];
    for (let i = 0; i < 4; i++) losses.push((await compiled.trainOnBatch(x, y)) as number);
    const [a, b] = [(await compiled.predict(x)) as Tensor, (await compiled.predict(x)) as Tensor];
    expect(a.dataSync()).not.toEqual(b.dataSync());
    await compiled.dispose();
    return losses;
  };
  const losses = await steps();
  expect(new Set(losses).size).toBe(4);
  for (const loss of losses) expect(Math.abs(loss - 0.01)).toBeLessThan(5 * 0.01 * Math.sqrt(2 / 400));
  expect(await steps()).toEqual(losses);
});

test('what would repeat its numbers is refused, and leaves tfjs as it was', async () => {
  const { random } = Math;
  const message = async (draw: () => Tensor): Promise<string> =>
    jit(draw, { engine: 'onnx' })().then(
      () => 'no error',
      (error: Error) => error.message.split('\n')[0]!,
    );
  expect(await message(() => user.randomNormal([3], 0, 1, 'float32', 7))).toBe(
    'tf.randomNormal: with a seed, each call and each run would have the same numbers. Leave it out: a compiled function ' +
      'draws from its own seed.',
  );
  expect(await message(() => user.randomNormal([3], 0, 1, 'int32'))).toBe(
    'tf.randomNormal: a program draws float32, got int32; tf.cast converts.',
  );
  expect(await message(() => user.randomNormal([-1]))).toMatch(/shape comprised of positive integers/);
  expect(await message(() => user.randomGamma([3], 1))).toMatch(/^tf\.randomGamma draws once/);
  expect(Math.random).toBe(random);
  expect(user.randomNormal([5]).dataSync().length).toBe(5);
  expect(Object.hasOwn(user.TensorBuffer.prototype, 'values')).toBe(false);
});
