/** @file tfjs's random operations drawn from a key within a program. */
import { createRequire } from 'node:module';
import { randomNormal, truncatedNormal } from '../ops/distributionOps.js';
import { dropout, foldIn, randomUniform } from '../ops/randomOps.js';
import { CompilerError } from '../program/tensors.js';
import * as tf from '../tfjs/tfjs.js';
import type { Distribution, Drawer } from './caughtDraws.js';
import { withDrawer } from './hostDraws.js';

type Draws = Record<'dropout' | 'randomUniform' | 'randomNormal', (...args: any[]) => tf.Tensor>;

/** What tfjs-layers calls, with seeds of its own: its copy of the module's names follows this one. */
const called = createRequire(import.meta.url)('@tensorflow/tfjs-core') as Draws;

function checkDtype(operation: string, dtype: string | undefined): void {
  if (dtype !== undefined && dtype !== 'float32')
    throw new CompilerError(`tf.${operation}: a program draws float32, got ${dtype}; tf.cast converts.`);
}

/** The operations, each call with a key of its own. Seeds have no effect: they would give each run the same numbers. */
function drawsFrom(next: () => tf.Tensor): Draws {
  return {
    dropout: (x: tf.Tensor, rate: number, noiseShape?: readonly (number | null)[] | null) => {
      if (noiseShape === undefined || noiseShape === null) return dropout(x, next(), 1 - rate);
      const shape = noiseShape.map((size, axis) => size ?? x.shape[axis]!);
      return tf.mul(x, dropout(tf.ones(shape), next(), 1 - rate));
    },
    randomUniform: (shape: number[], low = 0, high = 1, dtype?: string) => {
      checkDtype('randomUniform', dtype);
      const drawn = randomUniform(next(), shape);
      return low === 0 && high === 1 ? drawn : tf.add(tf.mul(drawn, high - low), low);
    },
    randomNormal: (shape: number[], mean = 0, deviation = 1, dtype?: string) => {
      checkDtype('randomNormal', dtype);
      return tf.add(tf.mul(randomNormal(next(), shape), deviation), mean);
    },
  };
}

const STANDARD: Readonly<Record<Distribution, (key: tf.Tensor, shape: readonly number[]) => tf.Tensor>> = {
  randomUniform,
  randomNormal,
  truncatedNormal,
};

/**
 * Traces `f` with the draws of tfjs's random operations, and of layers such as dropout, as functions of `key`, so that each
 * run draws anew.
 *
 * @param key int32 [2].
 */
export function withDrawsFrom<T>(key: tf.Tensor, f: () => T): T {
  let count = 0;
  const next = (): tf.Tensor => foldIn(key, count++);
  const drawer: Drawer = (distribution, shape) => STANDARD[distribution](next(), shape);
  const { dropout, randomUniform, randomNormal } = called;
  Object.assign(called, drawsFrom(next));
  try {
    return withDrawer(drawer, f);
  } finally {
    Object.assign(called, { dropout, randomUniform, randomNormal });
  }
}
