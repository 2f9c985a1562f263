/** @file BaseOptimizer: learning rate, clipping, regularisation, weight decay and the average of parameters. */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { Configurable, defineTag, instance, tagged } from '../hparams/index.js';
import { check } from './checkFields.js';
import { clipByGlobalNorm, clipBySingleNorm, type Gradients, type GradientTransform } from './clipping.js';
import { BaseSchedule, Constant } from './schedules.js';
import type { UpdateGroup, VariableGroup } from './variableGroup.js';

/** Name of the slot that holds the exponential moving average of the parameters. */
export const EMA = 'ema';

/** Begins the average, if there is one, from the parameters in front of the frozen ones. */
export function beginAverage({
  params,
  slots,
}: {
  readonly params: Float32Array;
  readonly slots: Readonly<Record<string, Float32Array>>;
}): void {
  slots[EMA]?.set(params.subarray(0, slots[EMA].length));
}

/** Tensors by name: slots, each [size of the group], or scalars, each []. */
export type NamedTensors = Readonly<Record<string, Tensor>>;

/** The result of a rule for a group of variables. */
export interface Direction {
  /** The update before the learning rate, [size]: parameters move by -learningRate times it. */
  readonly direction: Tensor;
  /** The rule's state after the step, each [size]. */
  readonly slots: NamedTensors;
}

/** State of a group of variables that a step changes. */
export interface GroupState<T> {
  readonly param: T;
  readonly slots: Readonly<Record<string, T>>;
}

/** Tag of an optimizer's `learningRate`. */
export const LearningRate = defineTag<number>('LearningRate', 'Learning rates of optimizers.');

const weight = z.number().nonnegative().default(0);

/**
 * Base of all optimizers (praxis/optimizers.py). A subclass gives the rule: `direction`, `initialSlots`, and in `scalarsAt`
 * what depends on the step alone.
 *
 * Rules see flat tensors, in which the variables of a group lie side by side: what differs from variable to variable goes
 * through `VariableGroup`.
 */
export abstract class BaseOptimizer extends Configurable.with({
  learningRate: tagged(
    z.number().nonnegative().describe('Factor of lrSchedule; their product is the learning rate.'),
    LearningRate,
  ),
  lrSchedule: instance(BaseSchedule, () => Constant.config()).describe(
    'Learning rate as a function of the step.',
  ),
  l2RegularizerWeight: weight.describe('Adds this much of the variable to its gradient.'),
  l1RegularizerWeight: weight.describe("Adds this much of the variable's sign to its gradient."),
  decoupledWeightDecay: weight.describe(
    'Shrinks variables by learning rate times this, beside the gradient step (Loshchilov and Hutter, 2019).',
  ),
  skipLp1dVectors: z
    .boolean()
    .default(false)
    .describe('Leaves scalars and vectors (biases, norm scales) out of regularisation and weight decay.'),
  clipGradientNormToValue: weight.describe('Largest norm of all gradients together; 0 does not clip.'),
  clipGradientSingleNormToValue: weight.describe("Largest norm of one variable's gradient; 0 does not clip."),
  emaDecay: z
    .number()
    .min(0)
    .lt(1)
    .default(0)
    .describe(
      'Decay of the moving average of the parameters, at most (1 + step) / (10 + step); 0 keeps none.',
    ),
}) {
  static override readonly isAbstract = true;

  override setup(): void {
    const hp = this.hp;
    check(
      this,
      hp.decoupledWeightDecay === 0 || (hp.l1RegularizerWeight === 0 && hp.l2RegularizerWeight === 0),
      'decoupledWeightDecay cannot be mixed with l1RegularizerWeight or l2RegularizerWeight.',
    );
    check(
      this,
      hp.clipGradientNormToValue === 0 || hp.clipGradientSingleNormToValue === 0,
      'clipGradientNormToValue and clipGradientSingleNormToValue are exclusive: ' +
        `got ${hp.clipGradientNormToValue} and ${hp.clipGradientSingleNormToValue}.`,
    );
  }

  /**
   * The rule's slots by name, each as large as the parameters that are not frozen, and the value of all their elements before the first step:
   * 0 for means of gradients, above 0 for what Adagrad divides by.
   */
  abstract initialSlots(): Readonly<Record<string, number>>;

  /**
   * The rule: the step before the learning rate.
   *
   * @param grad gradient, clipped and regularised, [size].
   * @param slots state before the step, each [size].
   * @param scalars those of `scalarsAt`, each [].
   * @param variables which elements are one variable's.
   */
  protected abstract direction(
    grad: Tensor,
    slots: NamedTensors,
    scalars: NamedTensors,
    variables: VariableGroup,
  ): Direction;

  /** The scalars that `direction` reads, computed by the host in double precision. @param step finished train steps. */
  protected scalarsAt(_step: number): Record<string, number> {
    return {};
  }

  /** Transforms of the gradients before the rule sees them, in their order. */
  protected gradientTransforms(): GradientTransform[] {
    const { clipGradientNormToValue: global, clipGradientSingleNormToValue: single } = this.hp;
    if (global > 0) return [clipByGlobalNorm(global)];
    return single > 0 ? [clipBySingleNorm(single)] : [];
  }

  /** Whether an average of the parameters is kept, the slot `ema`, which begins as a copy of them. */
  get averages(): boolean {
    return this.hp.emaDecay > 0;
  }

  /** Names of all slots: those of the rule, and the average. */
  get stateNames(): readonly string[] {
    const slots = Object.keys(this.initialSlots());
    return this.averages ? [...slots, EMA] : slots;
  }

  /** The learning rate at a step (0 for the first update). */
  learningRateAt(step: number): number {
    return this.hp.learningRate * this.hp.lrSchedule.valueAt(step);
  }

  /** The group of a variable: whether regularisation and weight decay reach it. */
  groupOf(variable: { shape: readonly number[]; skipLpRegularization: boolean }): UpdateGroup {
    const isVector = variable.shape.length <= 1;
    return variable.skipLpRegularization || (this.hp.skipLp1dVectors && isVector) ? 'noDecay' : 'decay';
  }

  /** All scalars of a step, by name: those that `update` reads. */
  hostScalars(step: number, group: UpdateGroup): Record<string, number> {
    const learningRate = this.learningRateAt(step);
    const decay = group === 'decay' ? this.hp.decoupledWeightDecay : 0;
    return {
      ...this.scalarsAt(step),
      learningRate,
      ...(decay > 0 ? { keep: 1 - learningRate * decay } : {}),
      ...(this.averages ? { toEma: 1 - this.emaDecayAt(step) } : {}),
    };
  }

  /** The average follows quickly while there is little to average (praxis/optimizers.py, apply_ema). */
  private emaDecayAt(step: number): number {
    return Math.min(this.hp.emaDecay, (1 + step) / (10 + step));
  }

  /** Gradients after the transforms, before regularisation. */
  transformGradients(gradients: Gradients): Gradients {
    return this.gradientTransforms().reduce((changed, transform) => transform(changed), gradients);
  }

  /**
   * One step of a group: parameters shrink by weight decay and move by -learningRate times `direction`, and their average
   * becomes ema + (1 - decay) (param - ema).
   *
   * @param before tensors of [size of the group].
   * @param grad gradient after the transforms, [size].
   * @param scalars those of `hostScalars`, each [].
   */
  update(
    { param, slots }: GroupState<Tensor>,
    grad: Tensor,
    scalars: NamedTensors,
    variables: VariableGroup,
  ): GroupState<Tensor> {
    const regularized = variables.name === 'decay' ? this.regularize(grad, param) : grad;
    const next = this.direction(regularized, slots, scalars, variables);
    const shrunk = scalars.keep === undefined ? param : tf.mul(param, scalars.keep);
    const moved = tf.sub(shrunk, tf.mul(next.direction, scalars.learningRate!));
    if (!this.averages) return { param: moved, slots: next.slots };
    const ema = slots[EMA]!;
    const average = tf.add(ema, tf.mul(tf.sub(moved, ema), scalars.toEma!));
    return { param: moved, slots: { ...next.slots, [EMA]: average } };
  }

  /** grad + l2 param + l1 sign(param) */
  private regularize(grad: Tensor, param: Tensor): Tensor {
    const { l1RegularizerWeight: l1, l2RegularizerWeight: l2 } = this.hp;
    const withL2 = l2 > 0 ? tf.add(grad, tf.mul(param, l2)) : grad;
    return l1 > 0 ? tf.add(withL2, tf.mul(tf.sign(param), l1)) : withL2;
  }
}
