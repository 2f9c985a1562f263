/** @file Learner: an optimizer with its loss, its trainable variables, and the check of gradients. */
import { z } from 'zod';
import { type FlatLayout, type Following, flatLayout, sizeOf } from '../compiler/index.js';
import { Configurable, didYouMean, instance } from '../hparams/index.js';
import { Adam } from './adam.js';
import { check } from './checkFields.js';
import { BaseOptimizer, beginAverage } from './optimizer.js';
import { wholePath } from './pathPattern.js';
import { type UpdateRules, updateOf } from './update.js';
import { FlatUpdater, type UpdaterBuffers } from './updater.js';
import { FROZEN, NON_TRAINABLE, type UpdateGroup } from './variableGroup.js';

/** A variable, as far as learners need it; those of layers are such. */
export interface LearnableVariable {
  /** Path in the model: `lm/softmax/w`. */
  readonly path: string;
  readonly shape: readonly number[];
  /** The first axes of its shape, along which it stacks variables that are updated each for itself. */
  readonly repeatPrefix?: readonly number[];
  /** Collections of the variable: `NON_TRAINABLE`, `SKIP_LP_REGULARIZATION`. */
  readonly collections?: readonly string[];
}

const patterns = z.array(z.string()).default(() => []);

/** Moves the variables of a task along the gradient of its loss (praxis/learners.py). */
export class Learner extends Configurable.with({
  lossName: z.string().min(1).default('total_loss').describe('The metric of the model that is minimised.'),
  optimizer: instance(BaseOptimizer, () => Adam.config()).describe('The update rule.'),
  checkValidStep: z
    .boolean()
    .default(true)
    .describe(
      'Looks for gradients that are not finite or too large, and for replaced variables, such as moving averages, that are ' +
        'not finite; isValidStep is 0 for such a step.',
    ),
  enableSkipStepOnGradientAnomalies: z
    .boolean()
    .default(true)
    .describe('Leaves parameters and optimizer state as they were at a step that is not valid.'),
  skipStepGradientNormValue: z
    .number()
    .nonnegative()
    .default(0)
    .describe('A step whose gradient norm is not below this is not valid; 0 sets no bound.'),
  bpropVariableExclusion: patterns.describe(
    'Variables whose whole path matches one of these stay as they are.',
  ),
  bpropVariableInclusion: patterns.describe(
    'If any: only variables whose whole path matches one of these move.',
  ),
  gradNormIndividualVars: z.boolean().default(false).describe('Writes the gradient norm of each variable.'),
  varNormSummary: z.boolean().default(true).describe('Writes the norm of all variables together.'),
}) {
  private exclusion: RegExp[] = [];
  private inclusion: RegExp[] = [];

  override setup(): void {
    const { bpropVariableExclusion, bpropVariableInclusion } = this.hp;
    check(
      this,
      bpropVariableExclusion.length === 0 || bpropVariableInclusion.length === 0,
      'bpropVariableExclusion and bpropVariableInclusion are exclusive; set one of them.',
    );
    this.exclusion = bpropVariableExclusion.map((pattern) => this.compilePattern(pattern));
    this.inclusion = bpropVariableInclusion.map((pattern) => this.compilePattern(pattern));
  }

  /** Names of the optimizer's slots, each a flat buffer of the variables that are not frozen. */
  get slotNames(): readonly string[] {
    return this.hp.optimizer.stateNames;
  }

  /** Whether the learner keeps an average of the parameters, the slot `ema`. */
  get averages(): boolean {
    return this.hp.optimizer.averages;
  }

  /**
   * Fills slots, which hold zeros, for the first step: with the optimizer's values, the average with the parameters in
   * front of the frozen ones.
   */
  initializeSlots({ params, slots }: Pick<UpdaterBuffers, 'params' | 'slots'>): void {
    for (const [name, value] of Object.entries(this.hp.optimizer.initialSlots()))
      if (value !== 0) slots[name]!.fill(value);
    beginAverage({ params, slots });
  }

  /** The learning rate at a step (0 for the first update). */
  learningRateAt(step: number): number {
    return this.hp.optimizer.learningRateAt(step);
  }

  /** Whether gradients of a variable are wanted. */
  isTrainable({ path, collections = [] }: LearnableVariable): boolean {
    const matches = (pattern: RegExp) => pattern.test(path);
    if (collections.includes('NON_TRAINABLE') || this.exclusion.some(matches)) return false;
    return this.inclusion.length === 0 || this.inclusion.some(matches);
  }

  /** The layout group of a variable: with weight decay, without, replaced by the forward pass, or not moved at all. */
  groupOf(variable: LearnableVariable): UpdateGroup | typeof NON_TRAINABLE | typeof FROZEN {
    if (variable.collections?.includes('NON_TRAINABLE')) return NON_TRAINABLE;
    if (!this.isTrainable(variable)) return FROZEN;
    const skipLpRegularization = variable.collections?.includes('SKIP_LP_REGULARIZATION') ?? false;
    const shape = variable.shape.slice(variable.repeatPrefix?.length ?? 0);
    return this.hp.optimizer.groupOf({ shape, skipLpRegularization });
  }

  /**
   * Places the variables of a model in flat buffers, grouped as this learner updates them, frozen ones last.
   *
   * @throws ConfigError for a pattern of frozen or moving variables that matches none.
   */
  layout(variables: readonly LearnableVariable[]): FlatLayout {
    const { bpropVariableExclusion, bpropVariableInclusion } = this.hp;
    const paths = variables.map(({ path }) => path);
    const compiled = [...this.exclusion, ...this.inclusion];
    for (const [i, pattern] of [...bpropVariableExclusion, ...bpropVariableInclusion].entries()) {
      check(
        this,
        paths.some((path) => compiled[i]!.test(path)),
        `the pattern '${pattern}' matches no variable of the model.${didYouMean(pattern, paths)} ` +
          'It is compared with the whole path; model_params.txt and luthier analyze list the paths.',
      );
    }
    const placed = variables.map((v) => {
      const { path: name, shape, repeatPrefix = [] } = v;
      return {
        name,
        shape,
        group: this.groupOf(v),
        ...(repeatPrefix.length > 0 && { slices: sizeOf(repeatPrefix) }),
      };
    });
    const isFrozen = ({ group }: { group: string }) => group === FROZEN;
    return flatLayout([...placed.filter((each) => !isFrozen(each)), ...placed.filter(isFrozen)]);
  }

  /** The update of buffers that follow `layout` as a function; no memory is taken. */
  update(layout: FlatLayout): Following {
    return updateOf(this.updateRules, layout);
  }

  /**
   * The update of flat buffers that follow `layout`, to be compiled behind the gradients; gradients and slots are those of
   * `changingPart(layout)`.
   *
   * @param runs most steps of a call.
   * @throws RangeError where a buffer is missing or its length is not the layout's.
   */
  createUpdater(layout: FlatLayout, buffers: UpdaterBuffers, runs = 1): FlatUpdater {
    return new FlatUpdater(this.updateRules, layout, buffers, runs);
  }

  private get updateRules(): UpdateRules {
    const {
      optimizer,
      checkValidStep,
      enableSkipStepOnGradientAnomalies: skipsInvalidSteps,
      skipStepGradientNormValue: bound,
    } = this.hp;
    // A norm that is not finite is below no bound.
    const normBound = checkValidStep ? bound || Number.POSITIVE_INFINITY : null;
    return { optimizer, skipsInvalidSteps, normBound };
  }

  private compilePattern(pattern: string): RegExp {
    try {
      return wholePath(pattern);
    } catch (error) {
      check(this, false, `'${pattern}' is not a regular expression: ${(error as Error).message}`);
      throw error;
    }
  }
}
