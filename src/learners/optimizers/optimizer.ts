/** @file BaseOptimizer: learning rate, clipping, regularisation, weight decay and the average of parameters. */
import { z } from 'zod';
import { type Tensor, tf } from '../../compiler/index.js';
import { Configurable, defineTag, instance, tagged } from '../../hparams/index.js';
import { check } from '../checkFields.js';
import { mapValues } from '../mapValues.js';
import { isPattern, wholePath } from '../pathPattern.js';
import { BaseSchedule, Constant } from '../schedules/schedules.js';
import {
  clipByGlobalNorm,
  clipBySingleNorm,
  type Gradients,
  type GradientTransform,
} from '../transforms/clipping.js';
import { applyRule, type Direction, type NamedTensors, type RuleInputs } from './rule.js';
import { compressed, compressedSpecs, decompressed, SLOT_DTYPES } from './slotCompression.js';
import { oneOf, PRETRAINED, type SlotSpecs, type SlotVariable, specsOf } from './slots.js';
import type { VariableGroup } from './variableGroup.js';

/** State of a group of variables that a step changes, flat and as it is stored. */
export interface GroupState<T> {
  readonly param: T;
  readonly slots: Readonly<Record<string, T>>;
}

/** One state or the other, unchanged to the bit. @param condition [], or of each element */
export function choose(
  condition: Tensor,
  yes: GroupState<Tensor>,
  no: GroupState<Tensor>,
): GroupState<Tensor> {
  return {
    param: tf.where(condition, yes.param, no.param),
    slots: mapValues(yes.slots, (slot, name) => tf.where(condition, slot, no.slots[name]!) as Tensor),
  };
}

/** A direction where it has the sign of the gradient, over the part of the variable where it has, which counts as 0.001 at least. */
function withGradient(direction: Tensor, grad: Tensor, variables: VariableGroup): Tensor {
  const agrees = tf.greater(tf.mul(direction, grad), 0);
  const kept = tf.where(agrees, direction, tf.zerosLike(direction));
  return variables.scaleEach(kept, (one, size) => {
    const isKept = tf.cast(tf.notEqual(one, 0), 'float32');
    const count = variables.total(one.rank === 2 ? tf.sum(isKept, -1, true) : tf.sum(isKept));
    return tf.reciprocal(tf.maximum(tf.div(count, Math.max(1, size)), 1e-3));
  });
}

/** Tag of an optimizer's `learningRate`. */
export const LearningRate = defineTag<number>('LearningRate', 'Learning rates of optimizers.');

const weight = z.number().nonnegative().default(0);

/**
 * Base of all optimizers (praxis/optimizers.py). A subclass gives the rule: `slotSpecs`, `direction`, and in `scalarsAt`
 * what depends on the step alone.
 *
 * A rule is elementwise unless `isPerVariable` says otherwise: it sees flat tensors, in which the variables of a group lie
 * side by side, in one pass over memory. What differs from variable to variable goes through `VariableGroup`.
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
  fixedWeightDecay: z
    .boolean()
    .default(false)
    .describe('Shrinks variables by decoupledWeightDecay itself, not times the learning rate, as Trax does.'),
  skipLp1dVectors: z
    .boolean()
    .default(false)
    .describe('Leaves scalars and vectors (biases, norm scales) out of regularisation and weight decay.'),
  clipGradientNormToValue: weight.describe('Largest norm of all gradients together; 0 does not clip.'),
  clipGradientSingleNormToValue: weight.describe("Largest norm of one variable's gradient; 0 does not clip."),
  cautious: z
    .boolean()
    .default(false)
    .describe(
      'Leaves elements whose step would go against their gradient, and enlarges the other steps of the variable as much ' +
        '(Liang et al., Cautious Optimizers, 2024).',
    ),
  slotDtype: z
    .enum(SLOT_DTYPES)
    .default('float32')
    .describe(
      'Storage of slots with a number for each element: bfloat16 takes half the memory of float32, int8, in blocks of 256 with ' +
        'a scale each (Dettmers et al., 2022), a quarter.',
    ),
  slotRounding: z
    .enum(['nearest', 'stochastic'])
    .default('stochastic')
    .describe(
      'How slots are rounded to bfloat16 and int8. To the nearest, a mean stands still where it moves by less than half the ' +
        'distance of two numbers.',
    ),
  ewcRegularizerWeight: weight.describe(
    'Draws variables back to their values of before the first step by learning rate times half of this (elastic weight ' +
      'consolidation, Kirkpatrick et al., 2017); 0 does not.',
  ),
  ewcWeightPerVar: z
    .record(z.string(), z.number().nonnegative())
    .default({})
    .describe(
      'Factors of ewcRegularizerWeight by patterns of whole paths, the first that matches; 1 for other variables.',
    ),
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
    const wrong = Object.keys(hp.ewcWeightPerVar).find((pattern) => !isPattern(pattern));
    check(this, wrong === undefined, `ewcWeightPerVar: '${wrong}' is not a regular expression.`);
    check(
      this,
      hp.clipGradientNormToValue === 0 || hp.clipGradientSingleNormToValue === 0,
      'clipGradientNormToValue and clipGradientSingleNormToValue are exclusive: ' +
        `got ${hp.clipGradientNormToValue} and ${hp.clipGradientSingleNormToValue}.`,
    );
    check(
      this,
      !(this.isLazy && hp.slotDtype === 'int8'),
      "slotDtype 'int8' has scales of many elements, and a lazy rule leaves some of these as they are: set slotDtype to 'bfloat16'.",
    );
  }

  /** Whether the rule sees one variable at a time, in its own shape, so that slots may have any shape. */
  get isPerVariable(): boolean {
    return false;
  }

  /**
   * Whether an elementwise rule leaves what has a gradient of 0 as it is, parameters and slots. Where the gradient of a table
   * is rows and indices, it then sees these rows alone; rules that move the others get a gradient of all rows.
   */
  get skipsZeroGradients(): boolean {
    return false;
  }

  /**
   * Whether rows of matrices whose gradient is 0 stay as they are, parameters and slots, though the rule, regularisation or
   * weight decay would move them. A gradient of all rows has the same steps as one that is rows and indices.
   */
  get isLazy(): boolean {
    return false;
  }

  /**
   * The slots that the rule keeps of a variable. Those of an elementwise rule have the variable's shape, `slotLike`, and are
   * the same for all variables.
   *
   * @param variable of stacked variables, one.
   */
  abstract slotSpecs(variable: SlotVariable): SlotSpecs;

  /** Whether an update takes one variable at a time: blocks of elements with a scale are those of one. */
  get updatesEach(): boolean {
    return this.isPerVariable || this.hp.slotDtype === 'int8';
  }

  /** Why it can't update variables that ranks hold in parts; undefined where it can. */
  get refusesParts(): string | undefined {
    const { name } = this.constructor;
    if (this.isLazy) return `${name} looks at whole rows, as it is lazy`;
    if (this.isAnchored && this.updatesEach)
      return `${name} updates variables as wholes, and ewcRegularizerWeight draws parts back`;
    return undefined;
  }

  storedSpecs(variable: SlotVariable): SlotSpecs {
    const own = compressedSpecs(specsOf(this, variable), this.hp);
    return this.isAnchored ? { ...own, [PRETRAINED]: { shape: variable.shape, fill: 'parameters' } } : own;
  }

  /** The rule: the step before the learning rate, and the state after it. */
  protected abstract direction(inputs: RuleInputs): Direction;

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

  /** Whether evaluations, decodes and exports take the average, whatever a task's `evalUseEmaStates` says. */
  get evaluatesAverage(): boolean {
    return false;
  }

  /**
   * The average of a group's parameters after a step.
   *
   * @param before the average before it. @param toEma 1 - decay, []
   */
  averaged({ param }: GroupState<Tensor>, before: Tensor, toEma: Tensor): Tensor {
    return tf.add(before, tf.mul(tf.sub(param, before), toEma));
  }

  /** Whether the parameters of before the first step are kept, the slot `pretrained`. */
  get isAnchored(): boolean {
    return this.hp.ewcRegularizerWeight > 0;
  }

  /** The learning rate at a step (0 for the first update). */
  learningRateAt(step: number): number {
    return this.hp.learningRate * this.hp.lrSchedule.valueAt(step);
  }

  /** Whether regularisation and weight decay reach a variable. */
  decays(variable: { shape: readonly number[]; skipLpRegularization: boolean }): boolean {
    const isVector = variable.shape.length <= 1;
    return !(variable.skipLpRegularization || (this.hp.skipLp1dVectors && isVector));
  }

  /** Whether a step moves the rows of a table alone that have a gradient. @param decays whether the table's group decays */
  movesRowsAlone(decays: boolean): boolean {
    const { l1RegularizerWeight, l2RegularizerWeight, decoupledWeightDecay } = this.hp;
    const shrinks =
      decays && (l1RegularizerWeight > 0 || l2RegularizerWeight > 0 || decoupledWeightDecay > 0);
    return !this.updatesEach && !this.isAnchored && (this.isLazy || (this.skipsZeroGradients && !shrinks));
  }

  /** All scalars of a step, by name: those that `update` reads. @param decays whether the group decays */
  hostScalars(step: number, decays: boolean): Record<string, number> {
    const learningRate = this.learningRateAt(step);
    const { decoupledWeightDecay, fixedWeightDecay } = this.hp;
    const decay = decays ? decoupledWeightDecay : 0;
    const isNoisy = this.hp.slotDtype !== 'float32' && this.hp.slotRounding === 'stochastic';
    return {
      ...this.scalarsAt(step),
      learningRate,
      ...(isNoisy && { noiseStep: step }),
      ...(decay > 0 ? { keep: 1 - (fixedWeightDecay ? 1 : learningRate) * decay } : {}),
    };
  }

  /** The average follows quickly while there is little to average (praxis/optimizers.py, apply_ema). */
  emaDecayAt(step: number): number {
    return Math.min(this.hp.emaDecay, (1 + step) / (10 + step));
  }

  /** Gradients after the transforms, before regularisation. */
  transformGradients(gradients: Gradients): Gradients {
    return this.gradientTransforms().reduce((changed, transform) => transform(changed), gradients);
  }

  /**
   * One step of a group: parameters shrink by weight decay and move by -learningRate times `direction`.
   *
   * @param before flat tensors, slots as they are stored.
   * @param grad gradient after the transforms, [size].
   * @param scalars those of `hostScalars`, each [].
   */
  update(
    { param, slots: all }: GroupState<Tensor>,
    grad: Tensor,
    scalars: NamedTensors,
    variables: VariableGroup,
  ): GroupState<Tensor> {
    const { [PRETRAINED]: pretrained, ...slots } = all;
    const regularized = variables.decays ? this.regularize(grad, param) : grad;
    const touched = this.isLazy ? variables.touched(grad) : undefined;
    const specs = specsOf(this, oneOf(variables.entries[0]!));
    const floats = decompressed(slots, specs, this.hp);
    const inputs = { grad: regularized, param, slots: floats, scalars, variables, touched };
    const next = applyRule(this, (each) => this.direction(each), inputs);
    const key = (): Tensor => {
      const step = tf.mul(tf.cast(scalars.noiseStep!, 'int32'), tf.tensor1d([1, 0], 'int32'));
      return tf.add(step, tf.tensor1d([0, variables.place.offset], 'int32'));
    };
    const kept = compressed(next.slots, specs, this.hp, key);
    const shrunk = scalars.keep === undefined ? param : tf.mul(param, scalars.keep);
    const direction = this.hp.cautious ? withGradient(next.direction, grad, variables) : next.direction;
    const moved = tf.sub(shrunk, this.stepAlong(direction, scalars)) as Tensor;
    const after =
      pretrained === undefined
        ? { param: moved, slots: kept }
        : {
            param: tf.sub(moved, this.drawBack(tf.sub(param, pretrained), scalars, variables)) as Tensor,
            slots: { ...kept, [PRETRAINED]: pretrained },
          };
    return touched === undefined ? after : choose(touched, after, { param, slots: all });
  }

  /** Step of elastic weight consolidation, beside that of the rule. @param way from the values of before the first step */
  private drawBack(way: Tensor, { learningRate }: NamedTensors, variables: VariableGroup): Tensor {
    const { ewcRegularizerWeight, ewcWeightPerVar } = this.hp;
    const patterns = Object.entries(ewcWeightPerVar).map(
      ([text, factor]) => [wholePath(text), factor] as const,
    );
    const weights = variables.scaleBy(way, ({ name }) => {
      const [, factor = 1] = patterns.find(([pattern]) => pattern.test(name)) ?? [];
      return (ewcRegularizerWeight / 2) * factor;
    });
    return tf.mul(weights, learningRate!);
  }

  /** How far parameters move: learningRate times the direction. */
  protected stepAlong(direction: Tensor, scalars: NamedTensors): Tensor {
    return tf.mul(direction, scalars.learningRate!);
  }

  /** grad + l2 param + l1 sign(param) */
  private regularize(grad: Tensor, param: Tensor): Tensor {
    const { l1RegularizerWeight: l1, l2RegularizerWeight: l2 } = this.hp;
    const withL2 = l2 > 0 ? tf.add(grad, tf.mul(param, l2)) : grad;
    return l1 > 0 ? tf.add(withL2, tf.mul(tf.sign(param), l1)) : withL2;
  }
}
