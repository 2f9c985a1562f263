/** @file The bi-tempered logistic loss (praxis/layers/losses.py; Amid et al., 2019, "Robust bi-tempered logistic loss"). */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import type { Config, Report } from '../hparams/index.js';
import { BaseLayer } from './core/base.js';
import { constantInit } from './core/weightInit.js';
import { type Theta, WeightCollection } from './core/weights.js';

/** Temperatures of a pass, scalars. */
export interface Temperatures {
  readonly t1: Tensor;
  readonly t2: Tensor;
}

/** Iterations that find the normaliser of the probabilities. */
const ITERATIONS = 5;

/** log_t(x) = (x^(1 - t) - 1) / (1 - t), and log(x) for t = 1. */
function logT(x: Tensor, t: Tensor): Tensor {
  const order = tf.sub(1, t);
  const isPlain = tf.equal(order, 0);
  const safe = tf.where(isPlain, tf.scalar(1), order);
  return tf.where(isPlain, tf.log(x), tf.div(tf.sub(tf.pow(x, safe), 1), safe));
}

/** exp_t(x) = max(0, 1 + (1 - t) x)^(1 / (1 - t)), and exp(x) for t = 1. */
function expT(x: Tensor, t: Tensor): Tensor {
  const order = tf.sub(1, t);
  const isPlain = tf.equal(order, 0);
  const safe = tf.where(isPlain, tf.scalar(1), order);
  return tf.where(isPlain, tf.exp(x), tf.pow(tf.relu(tf.add(1, tf.mul(safe, x))), tf.div(1, safe)));
}

/**
 * Tempered softmax exp_t(logits - λ) of logits [..., V], with λ such that a row sums to 1: a fixed point, found by iteration
 * for t of 1 or more (algorithm 1).
 */
function temperedSoftmax(logits: Tensor, t: Tensor): Tensor {
  const largest = tf.max(logits, -1, true);
  const shifted = tf.sub(logits, largest) as Tensor;
  const partition = (x: Tensor): Tensor => tf.sum(expT(x, t), -1, true);
  let scaled = shifted;
  for (let i = 0; i < ITERATIONS; i++) scaled = tf.mul(shifted, tf.pow(partition(scaled), tf.sub(1, t)));
  return expT(tf.add(shifted, logT(tf.div(1, partition(scaled)), t)) as Tensor, t);
}

/**
 * A softmax cross-entropy with two temperatures: t1 below 1 bounds the loss of a row, t2 above 1 gives the probabilities
 * heavy tails. At (1, 1) it is the cross-entropy.
 */
export class BiTemperedLoss extends BaseLayer.with({
  t1: z
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe('Temperature of the logarithm: below 1, the loss is bounded.'),
  t2: z
    .number()
    .min(1)
    .default(1)
    .describe('Temperature of the probabilities: above 1, their tails are heavy.'),
  labelSmoothing: z
    .number()
    .min(0)
    .lt(1)
    .default(0)
    .describe('Probability that moves from the label to all other classes.'),
  startStep: z
    .int()
    .nonnegative()
    .default(0)
    .describe('Training step at which the temperatures leave (1, 1).'),
  endStep: z
    .int()
    .nonnegative()
    .default(0)
    .describe('Training step at which they reach (t1, t2), linearly; 0: they are (t1, t2) from the start.'),
}) {
  declare readonly theta: Theta<'count'>;

  static override validate({ startStep, endStep }: Config<BiTemperedLoss>, report: Report): void {
    if (endStep > 0 && endStep < startStep) report(`expected startStep (${startStep}) or later`, 'endStep');
  }

  protected override setup(): void {
    this.createVariable('count', {
      shape: [],
      dtype: 'float32',
      init: constantInit(0),
      collections: [WeightCollection.NON_TRAINABLE],
    });
  }

  /** Temperatures of the pass, called once in it; training counts its steps with them, evaluation has the last ones. */
  temperatures(): Temperatures {
    const { t1, t2, startStep, endStep } = this.hp;
    if (this.doEval) return { t1: tf.scalar(t1), t2: tf.scalar(t2) };
    const count = this.getVar('count');
    this.updateVar('count', tf.add(count, 1));
    if (endStep === 0) return { t1: tf.scalar(t1), t2: tf.scalar(t2) };
    const share = tf.clipByValue(tf.div(tf.sub(count, startStep), Math.max(endStep - startStep, 1)), 0, 1);
    const between = (t: number): Tensor => tf.add(1, tf.mul(share, t - 1));
    return { t1: between(t1), t2: between(t2) };
  }

  /** The loss of rows of logits [..., V] with target probabilities of the same shape: [...]. */
  fprop(logits: Tensor, probabilities: Tensor, temperatures = this.temperatures()): Tensor {
    return biTempered(logits, smoothed(probabilities, this.hp.labelSmoothing), temperatures);
  }
}

function smoothed(probabilities: Tensor, smoothing: number): Tensor {
  if (smoothing === 0) return probabilities;
  const classes = probabilities.shape.at(-1)!;
  const other = smoothing / (classes - 1);
  return tf.add(tf.mul(probabilities, 1 - classes * other), other);
}

/** Added to targets within a logarithm. */
const TINY = 1e-10;

/** Σ y (log_t1(y) - log_t1(p)) - (y^(2 - t1) - p^(2 - t1)) / (2 - t1), with p the tempered softmax at t2. */
function biTempered(logits: Tensor, targets: Tensor, { t1, t2 }: Temperatures): Tensor {
  const loss = tf.customGrad((...args: any[]) => {
    const [x, save] = args as [Tensor, (tensors: Tensor[]) => void];
    const order = tf.sub(2, t1);
    const p = temperedSoftmax(x, t2);
    const divergence = tf.sub(logT(tf.add(targets, TINY), t1), logT(p, t1));
    // A class without a target has no first term, though its probability may be 0.
    const first = tf.where(tf.greater(targets, 0), tf.mul(targets, divergence), tf.scalar(0));
    const second = tf.div(tf.sub(tf.pow(targets, order), tf.pow(p, order)), order);
    save([p, targets, tf.sub(t2, t1), t2]);
    return {
      value: tf.sum(tf.sub(first, second), -1) as Tensor,
      gradFunc: (dy: Tensor, saved: Tensor[]) => gradientOfLogits(dy, saved),
    };
  });
  return loss(logits);
}

/**
 * Equation 9: with f = (p - y) p^(t2 - t1) and the escort distribution e = p^t2 / Σ p^t2, the gradient by the logits is
 * f - e Σ f.
 */
function gradientOfLogits(dy: Tensor, [p, targets, difference, t2]: Tensor[]): Tensor {
  const f = tf.mul(tf.sub(p!, targets!), tf.pow(p!, difference!));
  const escort = tf.pow(p!, t2!);
  const share = tf.div(escort, tf.sum(escort, -1, true));
  return tf.mul(tf.expandDims(dy, -1), tf.sub(f, tf.mul(share, tf.sum(f, -1, true))));
}
