/** @file What every optimizer is: rates, regularisation, clipping fields, and an elementwise rule on chunks. */
import { z } from 'zod';
import { type Tensor, tf } from '../compiler/index.js';
import { Configurable, instance } from '../hparams/index.js';
import { check } from './check.js';
import { BaseSchedule, ConstantSchedule } from './schedules.js';

/** Groups of a layout that optimizers tell apart. */
export type UpdateGroup = 'decay' | 'noDecay';

/** Group of the variables that no update touches. */
export const FROZEN = 'frozen';

/** Name of the slot that holds the exponential moving average of the parameters. */
export const EMA = 'ema';

/** Named tensors: slots of shape [chunk], or scalars of shape []. */
export type NamedTensors = Record<string, Tensor>;

/** What the optimizer wants to do to one chunk. */
export interface Direction {
  /** The update before the step size, [chunk]: parameters move by -rate times it. */
  direction: Tensor;
  /** The optimizer's state after the step, each [chunk]. */
  slots: NamedTensors;
}

/** Parameters after a step, [chunk], and state, each [chunk]. */
export interface Applied {
  param: Tensor;
  slots: NamedTensors;
}

/** What the host knows about the step to come. */
export interface StepContext {
  /** Finished train steps, 0 for the first update. */
  step: number;
  /** Learning rate of this step. */
  learningRate: number;
  /** Factor of the gradient by global-norm clipping, 1 where it does not clip. */
  gradScale: number;
}

const weight = z.number().nonnegative().default(0);

/**
 * Fields of all optimizers (praxis/optimizers.py, BaseOptimizer).
 *
 * An optimizer is an elementwise rule: it sees pieces ("chunks") of the flat parameters, never whole variables. All that
 * depends on the step alone is a scalar which the host computes in double precision (`hostScalars`), so that a chunk costs
 * as few passes as it can.
 */
export abstract class BaseOptimizer extends Configurable.with({
  learningRate: z
    .number()
    .nonnegative()
    .describe('Factor of lrSchedule; their product is the learning rate.'),
  lrSchedule: instance(BaseSchedule, () => ConstantSchedule.config()).describe(
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

  /** Names of the rule's state, each as large as the parameters, zero before the first step. */
  abstract get slotNames(): readonly string[];

  /** Whether an average of the parameters is kept, the slot `ema`, which begins as a copy of them. */
  get averages(): boolean {
    return this.hp.emaDecay > 0;
  }

  /** Names of all that is kept between steps: the rule's slots, and the average. */
  get stateNames(): readonly string[] {
    return this.averages ? [...this.slotNames, EMA] : this.slotNames;
  }

  /** The largest root mean square of a variable's update, as a bound on `direction`; infinite where there is none. */
  directionRmsBound(_context: StepContext): number {
    return Number.POSITIVE_INFINITY;
  }

  /** Whether `directionRmsBound` is ever finite: the update then takes two passes. */
  get boundsDirection(): boolean {
    return false;
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

  /** The scalars that `direction` reads at this step, by name; they are rounded to float32 when they are fed. */
  protected abstract directionScalars(context: StepContext): Record<string, number>;

  /** What `direction` is multiplied by before it is subtracted: the learning rate and what corrects it. */
  protected abstract directionRate(context: StepContext): number;

  /**
   * The step before its size.
   *
   * @param grad gradient, [chunk]. Where the context has a gradScale other than 1, scalars must bring it in.
   * @param slots state before the step, each [chunk].
   * @param scalars those of `directionScalars`, each [].
   */
  protected abstract direction(grad: Tensor, slots: NamedTensors, scalars: NamedTensors): Direction;

  /** Whether the gradient of a group is changed by the parameters themselves. */
  regularizes(group: UpdateGroup): boolean {
    return group === 'decay' && (this.hp.l1RegularizerWeight > 0 || this.hp.l2RegularizerWeight > 0);
  }

  /** The scalars that `directionOf` reads. */
  directionInputs(context: StepContext, group: UpdateGroup): Record<string, number> {
    // A regulariser is added to the clipped gradient, so clipping can't wait for the scalars of the direction.
    if (!this.regularizes(group)) return this.directionScalars(context);
    return { ...this.directionScalars({ ...context, gradScale: 1 }), gradScale: context.gradScale };
  }

  /** The scalars that `apply` reads. */
  applyInputs(context: StepContext, group: UpdateGroup): Record<string, number> {
    const rate = this.directionRate(this.regularizes(group) ? { ...context, gradScale: 1 } : context);
    const decay = group === 'decay' ? this.hp.decoupledWeightDecay : 0;
    return {
      rate,
      ...(decay > 0 ? { keep: 1 - context.learningRate * decay } : {}),
      ...(this.averages ? { toEma: 1 - this.emaDecayAt(context.step) } : {}),
    };
  }

  /** The average follows quickly while there is little to average (praxis/optimizers.py, apply_ema). */
  private emaDecayAt(step: number): number {
    return Math.min(this.hp.emaDecay, (1 + step) / (10 + step));
  }

  /** All scalars of a step, by name: exactly those that `update` reads. */
  hostScalars(context: StepContext, group: UpdateGroup): Record<string, number> {
    return { ...this.directionInputs(context, group), ...this.applyInputs(context, group) };
  }

  /**
   * The direction of a chunk, regularisers included.
   *
   * @param param parameters, [chunk]; read only where the optimizer regularises the group.
   */
  directionOf(
    param: Tensor | null,
    grad: Tensor,
    slots: NamedTensors,
    scalars: NamedTensors,
    group: UpdateGroup,
  ): Direction {
    if (!this.regularizes(group) || param === null) return this.direction(grad, slots, scalars);
    const { l1RegularizerWeight: l1, l2RegularizerWeight: l2 } = this.hp;
    let total = tf.mul(grad, scalars.gradScale!);
    if (l2 > 0) total = tf.add(total, tf.mul(param, l2));
    if (l1 > 0) total = tf.add(total, tf.mul(tf.sign(param), l1));
    return this.direction(total, slots, scalars);
  }

  /**
   * The parameters after the step, [chunk]: shrunk by weight decay, moved by -rate times `direction`; and their average,
   * where one is kept: ema + (1 - decay) (param - ema).
   *
   * @param before state before the step; only the average is read.
   */
  apply(param: Tensor, direction: Tensor, before: NamedTensors, scalars: NamedTensors): Applied {
    const shrunk = scalars.keep === undefined ? param : tf.mul(param, scalars.keep);
    const moved = tf.sub(shrunk, tf.mul(direction, scalars.rate!));
    if (!this.averages) return { param: moved, slots: {} };
    const ema = before[EMA]!;
    return { param: moved, slots: { [EMA]: tf.add(ema, tf.mul(tf.sub(moved, ema), scalars.toEma!)) } };
  }

  /**
   * One step of a chunk.
   *
   * @param param parameters, [chunk].
   * @param grad gradient as it came from the loss, not clipped, [chunk].
   * @param slots state before the step, each [chunk].
   * @param scalars those of `hostScalars`, each [].
   */
  update(
    param: Tensor,
    grad: Tensor,
    slots: NamedTensors,
    scalars: NamedTensors,
    group: UpdateGroup,
  ): Applied {
    const next = this.directionOf(param, grad, slots, scalars, group);
    const applied = this.apply(param, next.direction, slots, scalars);
    return { param: applied.param, slots: { ...next.slots, ...applied.slots } };
  }
}
