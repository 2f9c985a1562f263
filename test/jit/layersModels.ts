/** @file Layers models for tests, in pairs of the same weights, and comparisons of them. */
import { createRequire } from 'node:module';
import { expect } from 'vitest';
import type { Tensor } from '../../src/compiler/index.js';
import type { JitOptions } from '../../src/jit/index.js';
import { floats, tf } from '../compiler/support.js';

// As the compiler does: one copy of the engine.
export const tfjs = createRequire(import.meta.url)('@tensorflow/tfjs') as any;
export const quick: JitOptions = { engine: 'onnx', numThreads: 1, seed: 7 };

export const tensor = (shape: number[], seed: number): Tensor =>
  tf.tensor(floats(shape, -1, 1, seed).data as Float32Array, shape);

export const oneHot = (rows: number, classes: number): Tensor => {
  const ids = Array.from({ length: rows }, (_, i) => i % classes);
  return tf.tidy(() => tf.oneHot(tf.tensor1d(ids, 'int32'), classes, 1, 0, 'float32'));
};

export function expectSame(actual: Tensor, expected: Tensor, what: string, tolerance = 2e-5): void {
  expect(actual.shape, what).toEqual(expected.shape);
  const [a, e] = [actual.dataSync(), expected.dataSync()];
  for (let i = 0; i < e.length; i++)
    expect(Math.abs(a[i]! - e[i]!), `${what}, element ${i}: ${a[i]}, ${e[i]}`).toBeLessThan(tolerance);
}

/** Two models of the same weights. */
export function twins(make: () => any): [any, any] {
  const [a, b] = [make(), make()];
  b.setWeights(a.getWeights());
  return [a, b];
}

export function expectSameWeights(actual: any, expected: any, tolerance?: number): void {
  const [a, e] = [actual.getWeights(), expected.getWeights()];
  expect(a.length).toBe(e.length);
  e.forEach((weight: Tensor, i: number) => void expectSame(a[i], weight, `weight ${i}`, tolerance));
}

export const convnet = (): any =>
  tfjs.sequential({
    layers: [
      tfjs.layers.conv2d({
        inputShape: [8, 8, 2],
        filters: 4,
        kernelSize: 3,
        padding: 'same',
        useBias: false,
      }),
      tfjs.layers.batchNormalization(),
      tfjs.layers.activation({ activation: 'relu' }),
      tfjs.layers.maxPooling2d({ poolSize: 2 }),
      tfjs.layers.flatten(),
      tfjs.layers.dense({
        units: 3,
        activation: 'softmax',
        kernelRegularizer: tfjs.regularizers.l2({ l2: 0.01 }),
      }),
    ],
  });
