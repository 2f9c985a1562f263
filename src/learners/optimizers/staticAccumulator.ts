/** @file StaticAccumulator: steps of another optimizer with the mean gradient of several steps. */
import { z } from 'zod';
import { ops, type Tensor, tf } from '../../compiler/index.js';
import { instance } from '../../hparams/index.js';
import { check } from '../checkFields.js';
import { Constant } from '../schedules/schedules.js';
import { BaseOptimizer, type GroupState } from './optimizer.js';
import type { Direction, NamedTensors, RuleInputs } from './rule.js';
import type { SlotSpecs, SlotVariable } from './slots.js';
import type { VariableGroup } from './variableGroup.js';

/**
 * Adds up the gradients of `numSubBatches` steps, then takes one step of `optimizer` with their mean (Pax's
 * ShardedStaticAccumulator). The steps between move nothing. A step that is not valid is not counted.
 *
 * Clipping and `emaDecay` are those of the accumulator, for the gradient and the parameters of each step, as in Pax. All else
 * is `optimizer`'s, weight decay too; its schedule counts its own steps. `train.numSubBatches`, which splits a batch, needs no
 * memory for the sum.
 */
export class StaticAccumulator extends BaseOptimizer.with({
  learningRate: z.number().default(1).describe('1: the learning rate is that of `optimizer`.'),
  optimizer: instance(BaseOptimizer, null).describe(
    'The optimizer that takes a step with the mean gradient.',
  ),
  numSubBatches: z
    .int()
    .positive()
    .default(1)
    .describe('Steps whose gradients make one step of `optimizer`.'),
}) {
  override setup(): void {
    super.setup();
    const { hp } = this;
    const { optimizer } = hp;
    const outside = {
      learningRate: hp.learningRate !== 1,
      lrSchedule: !(hp.lrSchedule instanceof Constant),
      decoupledWeightDecay: hp.decoupledWeightDecay > 0,
      l1RegularizerWeight: hp.l1RegularizerWeight > 0,
      l2RegularizerWeight: hp.l2RegularizerWeight > 0,
      cautious: hp.cautious,
      slotDtype: hp.slotDtype !== 'float32',
      ewcRegularizerWeight: hp.ewcRegularizerWeight > 0,
    };
    for (const [field, isSet] of Object.entries(outside))
      check(this, !isSet, `${field} is a matter of the step with the mean gradient: set optimizer.${field}.`);
    const inside = ['clipGradientNormToValue', 'clipGradientSingleNormToValue', 'emaDecay'] as const;
    for (const field of inside)
      check(
        this,
        optimizer.hp[field] === 0,
        `optimizer.${field} is a matter of each step: set ${field} beside optimizer.`,
      );
  }

  /** How many gradients a variable's sum has is a number of its own. */
  override get isPerVariable(): boolean {
    return true;
  }

  slotSpecs(variable: SlotVariable): SlotSpecs {
    const own = { gradientSum: { shape: variable.shape }, gradientCount: { shape: [1] } };
    return { ...this.hp.optimizer.storedSpecs(variable), ...own };
  }

  override learningRateAt(step: number): number {
    return this.hp.optimizer.learningRateAt(this.stepOf(step));
  }

  override decays(variable: { shape: readonly number[]; skipLpRegularization: boolean }): boolean {
    return this.hp.optimizer.decays(variable);
  }

  override hostScalars(step: number, decays: boolean): Record<string, number> {
    return this.hp.optimizer.hostScalars(this.stepOf(step), decays);
  }

  override update(
    { param, slots }: GroupState<Tensor>,
    grad: Tensor,
    scalars: NamedTensors,
    variables: VariableGroup,
  ): GroupState<Tensor> {
    const { gradientSum, gradientCount, ...inner } = slots;
    const { direction: mean, slots: own } = this.direction({ grad, param, slots, scalars, variables });
    const isFull = tf.greaterEqual(tf.max(own.gradientCount!), this.hp.numSubBatches);
    const before = { param, slots: { ...inner } };
    return ops.cond(
      isFull as Tensor,
      (state: typeof before) => {
        const after = this.hp.optimizer.update(state, mean, scalars, variables);
        const empty = {
          gradientSum: tf.zerosLike(gradientSum!),
          gradientCount: tf.zerosLike(gradientCount!),
        };
        return { param: after.param, slots: { ...after.slots, ...empty } };
      },
      (state) => ({ param: state.param, slots: { ...state.slots, ...own } }),
      before,
    );
  }

  /** The mean gradient that is due when the sum is full. */
  protected direction({ grad, slots }: RuleInputs): Direction {
    const gradientSum = tf.add(slots.gradientSum!, grad);
    const gradientCount = tf.add(slots.gradientCount!, 1);
    return { direction: tf.div(gradientSum, this.hp.numSubBatches), slots: { gradientSum, gradientCount } };
  }

  /** Finished steps of `optimizer`. */
  private stepOf(step: number): number {
    return Math.floor(step / this.hp.numSubBatches);
  }
}
