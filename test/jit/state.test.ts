/** @file Variables and optimizers in compiled functions, against the same functions on tfjs's cpu backend. */
import '@tensorflow/tfjs-backend-cpu';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Tensor } from '../../src/compiler/index.js';
import { type JitOptions, jit } from '../../src/jit/index.js';
import { floats, tf } from '../compiler/support.js';

/** Machine code is not what is tested here. */
const quick: JitOptions = { engine: 'onnx', numThreads: 1 };

beforeEach(async () => {
  await tf.setBackend('cpu');
});
afterEach(() => {
  tf.disposeVariables();
});

const tensor = (shape: number[], seed: number): Tensor => {
  const { data } = floats(shape, -1, 1, seed);
  return tf.tensor(data as Float32Array, shape);
};

function expectSame(actual: Tensor, expected: Tensor, what: string, tolerance = 2e-6): void {
  expect(actual.shape, what).toEqual(expected.shape);
  const [a, e] = [actual.dataSync(), expected.dataSync()];
  for (let i = 0; i < e.length; i++)
    expect(Math.abs(a[i]! - e[i]!), `${what}, element ${i}`).toBeLessThan(tolerance);
}

const OPTIMIZERS: Record<string, () => tf.Optimizer> = {
  sgd: () => tf.train.sgd(0.1),
  momentum: () => tf.train.momentum(0.1, 0.9),
  nesterov: () => tf.train.momentum(0.1, 0.9, true),
  adam: () => tf.train.adam(0.1),
  adagrad: () => tf.train.adagrad(0.1),
  adadelta: () => tf.train.adadelta(0.5),
  adamax: () => tf.train.adamax(0.1, 0.9, 0.999, 1e-7, 0.1),
  rmsprop: () => tf.train.rmsprop(0.05),
  centered: () => tf.train.rmsprop(0.05, 0.9, 0.5, 1e-7, true),
};

describe("tfjs's optimizers train as on the cpu backend", () => {
  test.each(Object.keys(OPTIMIZERS))('%s', async (name) => {
    const [x, y] = [tensor([8, 3], 1), tensor([8, 2], 2)];
    const makeStep = () => {
      const w = tf.variable(tensor([3, 2], 3));
      const b = tf.variable(tf.zeros([2]));
      const optimizer = OPTIMIZERS[name]!();
      const step = (x: Tensor, y: Tensor): Tensor =>
        optimizer.minimize(
          () =>
            tf.mean(
              tf.squaredDifference(tf.add(tf.matMul(x as tf.Tensor2D, w as tf.Tensor2D), b), y),
            ) as tf.Scalar,
          true,
          [w, b],
        )!;
      return { w, b, optimizer, step };
    };
    const [plain, compiled] = [makeStep(), makeStep()];
    let calls = 0;
    const step = jit((x: Tensor, y: Tensor) => {
      calls++;
      return compiled.step(x, y);
    }, quick);
    for (let i = 0; i < 6; i++) {
      if (i === 3) {
        for (const { optimizer } of [plain, compiled]) {
          const settable = optimizer as tf.Optimizer & {
            learningRate: number;
            setLearningRate?(rate: number): void;
          };
          if (settable.setLearningRate) settable.setLearningRate(0.02);
          else settable.learningRate = 0.02;
        }
      }
      const [expected, actual] = [plain.step(x, y), await step(x, y)];
      expectSame(actual, expected, `loss ${i}`);
      expectSame(compiled.w, plain.w, `w after step ${i}`);
      expectSame(compiled.b, plain.b, `b after step ${i}`);
      expect(compiled.optimizer.iterations).toBe(plain.optimizer.iterations);
      if (i === 0) calls = 0;
    }
    // Neither the learning rate nor the step is part of the program.
    expect(calls).toBe(0);
    await step.dispose();
  });
});

describe('variables', () => {
  test('are read before and after calls, and assigned in between', async () => {
    const total = tf.variable(tf.tensor([1, 2]));
    const add = jit((x: Tensor) => {
      total.assign(tf.add(total, x));
      return tf.sum(total);
    }, quick);
    const one = tf.tensor([1, 1]);
    const before = total.dataSync();
    expect((await add(one)).dataSync()).toEqual(Float32Array.of(5));
    const between = total.dataSync();
    expect((await add(one)).dataSync()).toEqual(Float32Array.of(7));
    expect([before, between, await total.data()]).toEqual([
      Float32Array.of(1, 2),
      Float32Array.of(2, 3),
      Float32Array.of(3, 4),
    ]);
    // Operations of the backend read them too.
    expect(tf.mul(total, 2).dataSync()).toEqual(Float32Array.of(6, 8));
    total.assign(tf.tensor([10, 20]));
    expect((await add(one)).dataSync()).toEqual(Float32Array.of(32));
    expect(total.dataSync()).toEqual(Float32Array.of(11, 21));
  });

  test('leave their values to clones', async () => {
    const counter = tf.variable(tf.scalar(0));
    const count = jit(() => {
      counter.assign(tf.add(counter, 1));
    }, quick);
    await count();
    const copies = [counter.clone(), tf.reshape(counter, [1])];
    await count();
    await count();
    expect(copies.map((copy) => [...copy.dataSync()])).toEqual([[1], [1]]);
    tf.dispose(copies);
    expect(counter.dataSync()[0]).toBe(3);
    await count();
    expect(counter.dataSync()[0]).toBe(4);
  });

  test('belong to all functions that use them, whose calls run in order', async () => {
    const [w, unused] = [tf.variable(tf.scalar(1)), tf.variable(tf.zeros([1000]))];
    const double = jit(() => {
      w.assign(tf.mul(w, 2));
    }, quick);
    const read = jit((x: Tensor) => tf.add(x, w), quick);
    const results = [double(), read(tf.scalar(0)), double(), double(), read(tf.scalar(1))];
    const [, two, , , nine] = await Promise.all(results);
    expect([two!.dataSync()[0], nine!.dataSync()[0]]).toEqual([2, 9]);
    expect(unused.dataSync()[0]).toBe(0);
  });

  test('that a function makes at its first call keep what they were given, and the memory of tfjs is as without jit', async () => {
    const steps = () => {
      let slot: tf.Variable | undefined;
      return (x: Tensor) => {
        slot ??= tf.tidy(() => tf.variable(tf.add(tf.mul(x, 2), tf.ones([2]))));
        slot.assign(tf.add(slot, x));
        return tf.neg(slot);
      };
    };
    const x = tf.tensor([1, 2]);
    const counts = async (step: (x: Tensor) => Tensor | Promise<Tensor>): Promise<unknown> => {
      const { numTensors, numBytes, numDataBuffers } = tf.memory();
      const results = [];
      for (let i = 0; i < 3; i++) {
        const result = await step(x);
        results.push([...result.dataSync()]);
        result.dispose();
      }
      const after = tf.memory();
      return [
        results,
        after.numTensors - numTensors,
        after.numBytes - numBytes,
        after.numDataBuffers - numDataBuffers,
        tf.getBackend(),
      ];
    };
    const eager = steps();
    const plain = await counts((x) => tf.tidy(() => eager(x)));
    const step = jit(steps(), quick);
    const compiled = await counts((x) => step(x));
    expect(compiled).toEqual(plain);
  });

  test('made at every call are refused; one that is disposed of may be replaced', async () => {
    const make = jit((x: Tensor) => tf.add(tf.variable(x), 1), quick);
    const [x, registered] = [tf.scalar(1), (): number => Object.keys(tf.engine().registeredVariables).length];
    await expect(make(x)).rejects.toThrow('makes variables at every call');
    // Those of the first trace have values.
    expect(registered()).toBe(1);
    let w = tf.variable(x);
    const step = jit(() => tf.neg(w), quick);
    expect((await step()).dataSync()[0]).toBe(-1);
    w.dispose();
    w = tf.variable(tf.scalar(5));
    expect((await step()).dataSync()[0]).toBe(-5);
  });

  test('whose trainable flag changes are trained as it says', async () => {
    const [a, b] = [tf.variable(tf.scalar(1)), tf.variable(tf.scalar(1))];
    const optimizer = tf.train.sgd(0.5);
    const step = jit(() => optimizer.minimize(() => tf.mul(a, b) as tf.Scalar, true)!, quick);
    await step();
    expect([a.dataSync()[0], b.dataSync()[0]]).toEqual([0.5, 0.5]);
    b.trainable = false;
    await step();
    expect([a.dataSync()[0], b.dataSync()[0]]).toEqual([0.25, 0.5]);
  });
});

describe("numbers of an optimizer's own", () => {
  class Scheduled extends tf.Optimizer {
    static className = 'Scheduled';
    learningRate = 1;
    constructor(readonly rate: (self: { iterations: number; learningRate: number }) => number) {
      super();
    }
    applyGradients(gradients: tf.NamedTensorMap): void {
      for (const [name, gradient] of Object.entries(gradients)) {
        const variable = tf.engine().registeredVariables[name]!;
        variable.assign(tf.sub(variable, tf.mul(gradient, this.rate(this))));
      }
      this.incrementIterations();
    }
    getConfig() {
      return {};
    }
  }

  const training = (rate: Scheduled['rate']) => {
    const w = tf.variable(tf.scalar(0));
    const optimizer = new Scheduled(rate);
    let calls = 0;
    const step = jit(() => {
      calls++;
      return optimizer.minimize(() => tf.mul(w, 1) as tf.Scalar, true)!;
    }, quick);
    return { w, optimizer, step, calls: () => calls };
  };

  test('a counter that is used by its value is an input', async () => {
    const { w, step, calls } = training(({ iterations }) => iterations);
    for (let i = 0; i < 2; i++) await step();
    const before = calls();
    for (let i = 0; i < 3; i++) await step();
    expect(w.dataSync()[0]).toBe(-(0 + 1 + 2 + 3 + 4));
    expect(calls()).toBe(before);
  });

  test('a learning rate and its negative are two inputs', async () => {
    const w = tf.variable(tf.scalar(1));
    const optimizer = tf.train.sgd(0.5);
    const rate = () => (optimizer as unknown as { learningRate: number }).learningRate;
    const step = jit(() => {
      const loss = optimizer.minimize(() => tf.mul(w, 1) as tf.Scalar, true)!;
      return tf.stack([loss, tf.mul(loss, rate()), tf.mul(loss, -rate())]);
    }, quick);
    expect((await step()).dataSync()).toEqual(Float32Array.of(1, 0.5, -0.5));
    (optimizer as unknown as { setLearningRate(rate: number): void }).setLearningRate(0.25);
    expect((await step()).dataSync()).toEqual(Float32Array.of(0.5, 0.125, -0.125));
  });

  test('a counter that is computed with in JavaScript is refused', async () => {
    const { step } = training(({ iterations }) => 1 / (1 + iterations));
    await expect(step()).rejects.toThrow("Scheduled computes with its number 'iterations_'");
  });

  test('a learning rate that is computed with in JavaScript makes another program', async () => {
    const { w, optimizer, step } = training(({ learningRate }) => learningRate ** 2);
    await step();
    optimizer.learningRate = 3;
    await step();
    await step();
    expect(w.dataSync()[0]).toBe(-(1 + 9 + 9));
    expect(step.numPrograms).toBe(1);
  });
});
