/** @file BregmanPCA: principal components by a Bregman divergence, learned as inputs pass (praxis/layers/bregman.py). */
import { z } from 'zod';
import { ops, sizeOf, type Tensor, tf } from '../../compiler/index.js';
import type { Config, Report } from '../../hparams/index.js';
import { BaseLayer } from '../core/base.js';
import { bothOf, selected, weighedRows } from '../core/masks.js';
import { constantInit } from '../core/weightInit.js';
import { WeightCollection } from '../core/weights.js';

/** Fields of components and of how they are learned. */
export const bregmanFields = {
  numComponents: z.int().positive().describe('K: principal components.'),
  activationType: z
    .enum(['IDENTITY', 'LEAKY_RELU', 'SOFTMAX'])
    .default('IDENTITY')
    .describe('The activation f whose inputs are linear in the components; it gives the divergence.'),
  negativeSlope: z.number().nonnegative().default(0).describe('Slope of LEAKY_RELU below 0.'),
  meanBeta: z.number().min(0).max(1).default(0.99).describe('Weight of the mean before in its update.'),
  coefficientsLr: z.number().positive().default(0.01).describe('Learning rate of the coefficients.'),
  coefficientsBeta: z.number().min(0).max(1).default(0.9).describe("Momentum of the coefficients' steps."),
  coefficientsSteps: z.int().positive().default(20).describe('Steps that coefficients are found by.'),
  componentsLr: z.number().positive().default(0.01).describe('Learning rate of the components.'),
  componentsBeta: z.number().min(0).max(1).default(0.9).describe("Momentum of the components' steps."),
  startStep: z.int().nonnegative().default(0).describe('The first step that moves components and mean.'),
  endStep: z.int().positive().describe('The step from which they rest.'),
  constantLrSchedule: z
    .boolean()
    .default(true)
    .describe('Whether the rate of the components is constant, and does not fall to 0 at endStep.'),
};

/** Reports steps and slopes that cannot be. */
export function checkBregman(
  {
    startStep,
    endStep,
    activationType,
    negativeSlope,
  }: Pick<Config<BregmanPCA>, 'startStep' | 'endStep' | 'activationType' | 'negativeSlope'>,
  report: Report,
): void {
  if (endStep <= startStep) report(`expected more than startStep ${startStep}`, 'endStep');
  if (activationType === 'LEAKY_RELU' && negativeSlope === 0)
    report('expected a slope above 0 for LEAKY_RELU, whose inverse divides by it', 'negativeSlope');
}

/** x over its Euclidean norm, times the root of its size: a step of size 1 an element. */
function unitStep(x: Tensor, size: Tensor): Tensor {
  const norm = tf.maximum(tf.sqrt(tf.sum(tf.square(x))), 1e-6);
  return tf.mul(x, tf.div(tf.sqrt(size), norm));
}

/**
 * Coefficients c of inputs x ≈ f(c V + μ) that make the Bregman divergence of the activation f smallest, whose gradient by
 * c V + μ is f(c V + μ) - x (Collins et al., 2001; Amid et al., 2022, https://arxiv.org/abs/2210.06738). `coefficientsSteps`
 * steps of normed gradients with momentum, from 0 on, find c. In training, V takes one such step for each batch, and μ is a
 * moving average. No gradient passes.
 *
 * As in Pax, the steps are normed over the batch, so that a row's coefficients depend on the others, and those of a decode are
 * not those of training. Padding and rows of weight 0 have no part in any of it, and have coefficients of 0; Pax leaves them
 * out of the step of V alone.
 */
export class BregmanPCA extends BaseLayer.with({
  inputDims: z
    .union([z.int().positive(), z.array(z.int().positive()).min(1)])
    .describe('Shape of an input, or its depth.'),
  ...bregmanFields,
}) {
  static override validate(config: Config<BregmanPCA>, report: Report): void {
    checkBregman(config, report);
  }

  protected override setup(): void {
    const { numComponents } = this.hp;
    const collections = [WeightCollection.NON_TRAINABLE];
    const shape = [numComponents, ...this.#inputShape];
    this.createVariable('step', { shape: [], init: constantInit(0), collections });
    this.createVariable('mean', { shape: [1, ...this.#inputShape], init: constantInit(0), collections });
    this.createVariable('components', { shape, collections });
    this.createVariable('components_momentum', { shape, init: constantInit(0), collections });
  }

  get #inputShape(): readonly number[] {
    const { inputDims } = this.hp;
    return typeof inputDims === 'number' ? [inputDims] : inputDims;
  }

  /** The inputs [B, ...] of coefficients [B, K]. */
  reconstruct(coefficients: Tensor): Tensor {
    const state = { mean: this.#flat('mean'), components: this.#flat('components') };
    const outputs = this.#activated(this.#linear(coefficients, state));
    return tf.reshape(outputs, [coefficients.shape[0]!, ...this.#inputShape]);
  }

  /**
   * Coefficients [B, K] of inputs [B, ...].
   *
   * @param kept bool [B]: false for padding, which has coefficients of 0; all are kept where absent.
   */
  fprop(inputs: Tensor, kept?: Tensor): Tensor {
    const { numComponents } = this.hp;
    const rows = inputs.shape[0]!;
    if (inputs.shape.slice(1).join() !== this.#inputShape.join())
      throw this.error(
        `expected inputs [B, ${this.#inputShape.join(', ')}], got [${inputs.shape.join(', ')}].`,
      );
    if (rows === 0) return tf.zeros([0, numComponents]);
    const flat = tf.reshape(ops.stopGradient(inputs), [rows, this.#size]) as Tensor;
    const counted = bothOf(kept && (tf.reshape(kept, [rows, 1]) as Tensor), weighedRows(this, flat));
    const x = counted ? selected(flat, counted) : flat;
    const before = { mean: this.#flat('mean'), components: this.#flat('components') };
    if (this.doEval) return this.#coefficients(x, before, counted);
    const { rate, isLearning } = this.#schedule();
    const mean = this.#movedMean(x, counted, before.mean, isLearning);
    const coefficients = this.#coefficients(x, { ...before, mean }, counted);
    this.#moveComponents(x, counted, coefficients, { ...before, mean }, rate, isLearning);
    return coefficients;
  }

  get #size(): number {
    return sizeOf(this.#inputShape);
  }

  /** A variable [N, ...] as [N, size]. */
  #flat(name: string): Tensor {
    const value = this.getVar(name);
    return tf.reshape(value, [value.shape[0]!, this.#size]);
  }

  #linear(coefficients: Tensor, { mean, components }: State): Tensor {
    return tf.add(tf.matMul(coefficients, components), mean);
  }

  #activated(x: Tensor): Tensor {
    const { activationType, negativeSlope } = this.hp;
    if (activationType === 'IDENTITY') return x;
    if (activationType === 'LEAKY_RELU') return tf.leakyRelu(x, negativeSlope);
    const shaped = tf.reshape(x, [x.shape[0]!, ...this.#inputShape]);
    return tf.reshape(tf.softmax(shaped), x.shape);
  }

  /** The inverse of the activation, for a mean of inputs [1, size]. */
  #inverse(x: Tensor): Tensor {
    const { activationType, negativeSlope } = this.hp;
    if (activationType === 'IDENTITY') return x;
    if (activationType === 'LEAKY_RELU') return tf.leakyRelu(x, 1 / negativeSlope);
    const logs = tf.log(tf.maximum(tf.reshape(x, [1, ...this.#inputShape]), 1e-6));
    return tf.reshape(tf.sub(logs, tf.mean(logs, -1, true)), x.shape);
  }

  /** f(c V + μ) - x, the gradient of the divergence by c V + μ, a mean over rows. */
  #residual(x: Tensor, counted: Tensor | undefined, coefficients: Tensor, state: State): Tensor {
    const difference = tf.sub(this.#activated(this.#linear(coefficients, state)), x) as Tensor;
    return tf.div(counted ? selected(difference, counted) : difference, x.shape[0]!);
  }

  #coefficients(x: Tensor, state: State, counted: Tensor | undefined): Tensor {
    const { numComponents, coefficientsSteps: steps, coefficientsLr, coefficientsBeta: beta } = this.hp;
    const zeros = tf.zeros([x.shape[0]!, numComponents]) as Tensor;
    const size = tf.mul(rowsOf(x, counted), numComponents) as Tensor;
    const turn = ({ c, momentum }: Carry, rate: Tensor): [Carry, readonly []] => {
      const gradient = tf.matMul(this.#residual(x, counted, c, state), state.components, false, true);
      const next = tf.add(tf.mul(momentum, beta), tf.mul(unitStep(gradient, size), 1 - beta)) as Tensor;
      return [{ c: tf.sub(c, tf.mul(next, rate)) as Tensor, momentum: next }, []];
    };
    const rates = tf.tensor1d(Array.from({ length: steps }, (_, i) => coefficientsLr * (1 - i / steps)));
    const [{ c }] = ops.scan<Carry, Tensor, readonly []>(turn, { c: zeros, momentum: zeros }, rates);
    return ops.stopGradient(c);
  }

  /** The rate of this step's move of the components, and whether there is one, 0 or 1; counts the step. */
  #schedule(): { readonly rate: Tensor; readonly isLearning: Tensor } {
    const { startStep, endStep, constantLrSchedule, componentsLr } = this.hp;
    const step = this.getVar('step');
    this.updateVar('step', tf.add(step, 1));
    const isWithin = tf.logicalAnd(tf.greaterEqual(step, startStep), tf.less(step, endStep));
    const isLearning = tf.cast(isWithin, 'float32') as Tensor;
    if (constantLrSchedule) return { rate: tf.mul(isLearning, componentsLr) as Tensor, isLearning };
    const left = tf.maximum(tf.sub(1, tf.div(tf.sub(step, startStep), endStep - startStep)), 0);
    return { rate: tf.mul(tf.mul(isLearning, left), componentsLr) as Tensor, isLearning };
  }

  #movedMean(x: Tensor, counted: Tensor | undefined, before: Tensor, isLearning: Tensor): Tensor {
    const count = rowsOf(x, counted);
    const batchMean = this.#inverse(tf.div(tf.sum(x, 0, true), tf.maximum(count, 1)));
    const share = tf.mul(isLearning, 1 - this.hp.meanBeta);
    const moved = tf.add(before, tf.mul(tf.sub(batchMean, before), share)) as Tensor;
    const mean = counted ? (tf.where(tf.greater(count, 0), moved, before) as Tensor) : moved;
    this.updateVar('mean', tf.reshape(mean, [1, ...this.#inputShape]));
    return mean;
  }

  #moveComponents(
    x: Tensor,
    counted: Tensor | undefined,
    coefficients: Tensor,
    state: State,
    rate: Tensor,
    isLearning: Tensor,
  ): void {
    const { numComponents, componentsBeta: beta } = this.hp;
    const gradient = tf.matMul(coefficients, this.#residual(x, counted, coefficients, state), true);
    const momentum = tf.add(
      tf.mul(this.#flat('components_momentum'), beta),
      tf.mul(tf.mul(unitStep(gradient, tf.scalar(gradient.size)), isLearning), 1 - beta),
    ) as Tensor;
    const components = tf.sub(state.components, tf.mul(momentum, rate)) as Tensor;
    const shape = [numComponents, ...this.#inputShape];
    this.updateVar('components', tf.reshape(components, shape));
    this.updateVar('components_momentum', tf.reshape(momentum, shape));
  }
}

/** Number of the rows of x that count. */
const rowsOf = (x: Tensor, counted: Tensor | undefined): Tensor =>
  counted ? tf.sum(tf.cast(counted, 'float32')) : tf.scalar(x.shape[0]!);

type State = Readonly<Record<'mean' | 'components', Tensor>>;
type Carry = { readonly c: Tensor; readonly momentum: Tensor };
