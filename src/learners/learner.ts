/** @file Learner: an optimizer with its loss, its trainable variables, and the check of gradients. */
import { z } from 'zod';
import { type FlatLayout, type Following, flatLayout, type Tensor } from '../compiler/index.js';
import { Configurable, instance } from '../hparams/index.js';
import { check } from './checkFields.js';
import { type LearnableVariable, updateScaleOf, wholeOf } from './learnableVariable.js';
import { Adam } from './optimizers/adam.js';
import { BaseOptimizer } from './optimizers/optimizer.js';
import type { SlotLayouts } from './optimizers/slots.js';
import {
  FROZEN,
  groupName,
  groupOfParts,
  groupParts,
  isTable,
  NON_TRAINABLE,
} from './optimizers/variableGroup.js';
import { checkPatterns, compilePattern } from './pathPattern.js';
import { BaseStochasticGradient } from './privacy/stochasticGradients.js';
import { clipEachByGlobalNorm } from './transforms/clipping.js';
import { slotLayoutsOf, type UpdateRules, updateOf } from './update.js';
import { FlatUpdater, type UpdaterBuffers } from './updater.js';

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
  skipStepGradientNormSigma: z
    .number()
    .nonnegative()
    .default(0)
    .describe(
      'A step whose gradient norm is above the mean of the last ones by this many of their standard deviations is not valid; ' +
        '6 say. 0 sets no such bound. Steps are then taken one a call.',
    ),
  skipStepGradientNormWindow: z
    .int()
    .min(2)
    .default(128)
    .describe('Number of gradient norms in that mean; there is no bound before half of them.'),
  bpropVariableExclusion: patterns.describe(
    'Variables whose whole path matches one of these stay as they are.',
  ),
  bpropVariableInclusion: patterns.describe(
    'If any: only variables whose whole path matches one of these move.',
  ),
  clipSubBatchGradientNormToValue: z
    .number()
    .nonnegative()
    .default(0)
    .describe(
      'Largest norm of the gradient of one sub-batch (task.train.numSubBatches), before they are averaged; with as many ' +
        'sub-batches as examples, of the gradient of one example. 0 does not clip.',
    ),
  keepOptimizerStateForExcludedVars: z
    .boolean()
    .default(false)
    .describe(
      "Keeps optimizer's state for variables that the patterns above let stay, so that checkpoints have it when they move again.",
    ),
  scaleUpdateByVarNorm: z
    .boolean()
    .default(false)
    .describe(
      'Multiplies the steps of variables, but for scalars and vectors, by the scale of their initial values.',
    ),
  stochasticGradient: instance(BaseStochasticGradient, null)
    .nullable()
    .default(null)
    .describe(
      'How the gradient of a step is made of those of its sub-batches, for privacy; null: their mean by weights.',
    ),
  gradNormIndividualVars: z.boolean().default(false).describe('Writes the gradient norm of each variable.'),
  varNormIndividualVars: z.boolean().default(false).describe('Writes the norm of each variable.'),
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
    check(
      this,
      this.hp.skipStepGradientNormSigma === 0 || this.hp.checkValidStep,
      'skipStepGradientNormSigma needs checkValidStep, which looks for the steps that it means.',
    );
    check(
      this,
      this.hp.stochasticGradient === null || this.hp.clipSubBatchGradientNormToValue === 0,
      'stochasticGradient clips the gradients of sub-batches itself: leave clipSubBatchGradientNormToValue 0.',
    );
    this.exclusion = bpropVariableExclusion.map((pattern) => compilePattern(this, pattern));
    this.inclusion = bpropVariableInclusion.map((pattern) => compilePattern(this, pattern));
  }

  /**
   * Places of the optimizer's slots, by name, each in a flat buffer of its own: of the variables that have it.
   *
   * @throws ConfigError for slots that the rules cannot have.
   */
  slotLayouts(layout: FlatLayout): SlotLayouts {
    return slotLayoutsOf(this.updateRules, layout);
  }

  /** Whether the learner keeps an average of the parameters, the slot `ema`. */
  get averages(): boolean {
    return this.hp.optimizer.averages;
  }

  /** Whether evaluations, decodes and exports take that average, whatever `evalUseEmaStates` says. */
  get evaluatesAverage(): boolean {
    return this.hp.optimizer.evaluatesAverage;
  }

  /** Whether a step depends on the report of the one before, so that none begins before it. */
  get needsReports(): boolean {
    return this.hp.skipStepGradientNormSigma > 0;
  }

  /** The learning rate at a step (0 for the first update). */
  learningRateAt(step: number): number {
    return this.hp.optimizer.learningRateAt(step);
  }

  /**
   * What is done to the gradients of each sub-batch, by path, before their mean by weights is taken; null for nothing.
   */
  get subBatchTransform(): ((grads: Readonly<Record<string, Tensor>>) => Record<string, Tensor>) | null {
    const { clipSubBatchGradientNormToValue: most } = this.hp;
    return most > 0 ? clipEachByGlobalNorm(most) : null;
  }

  /** Whether something is done to the gradients of each sub-batch, which are then those of its mean loss. */
  get transformsSubBatches(): boolean {
    return this.subBatchTransform !== null || this.hp.stochasticGradient !== null;
  }

  /** Whether gradients of a variable are wanted. */
  isTrainable({ path, collections = [] }: LearnableVariable): boolean {
    if (['NON_TRAINABLE', 'FROZEN'].some((name) => collections.includes(name))) return false;
    return !this.isExcluded(path);
  }

  /** Whether the patterns let a variable stay as it is. */
  private isExcluded(path: string): boolean {
    const matches = (pattern: RegExp) => pattern.test(path);
    return this.exclusion.some(matches) || (this.inclusion.length > 0 && !this.inclusion.some(matches));
  }

  /**
   * The layout group of a variable: its optimizer's, with weight decay or without; of those that the forward pass replaces;
   * or of those that do not move at all.
   */
  groupOf(variable: LearnableVariable): string {
    if (variable.collections?.includes('FROZEN')) return FROZEN;
    if (variable.collections?.includes('NON_TRAINABLE')) return NON_TRAINABLE;
    if (!this.isTrainable(variable)) return FROZEN;
    const skipLpRegularization = variable.collections?.includes('SKIP_LP_REGULARIZATION') ?? false;
    const shape = variable.shape.slice(variable.repeatPrefix?.length ?? 0);
    const optimizer = this.optimizerOf(variable.path);
    const decays = this.optimizers.get(optimizer)!.decays({ shape, skipLpRegularization });
    return groupName({ optimizer, decays });
  }

  /** Whether the gradient of a variable may be rows and indices: a step moves the rows alone that have a gradient. */
  takesRows(variable: LearnableVariable): boolean {
    const parts = groupParts(this.groupOf(variable));
    // An average of parameters moves where these do not.
    if (!isTable(variable) || variable.part || parts === undefined || this.averages) return false;
    // Noise is on all rows.
    if (this.hp.stochasticGradient !== null) return false;
    return this.optimizers.get(parts.optimizer)!.movesRowsAlone(parts.decays);
  }

  /** Groups of trained variables that a layout may have. */
  get updateGroups(): string[] {
    return [...this.optimizers.keys()].flatMap((optimizer) =>
      [true, false].map((decays) => groupName({ optimizer, decays })),
    );
  }

  /** The optimizers by name: the learner's own, '', first. */
  protected get optimizers(): ReadonlyMap<string, BaseOptimizer> {
    return new Map([['', this.hp.optimizer]]);
  }

  /** Name of the optimizer that updates the variable at a path. */
  protected optimizerOf(_path: string): string {
    return '';
  }

  /** Whether each optimizer clips the gradients of its own variables alone. */
  protected get separateScaling(): boolean {
    return false;
  }

  /**
   * Places the variables of a model in flat buffers, grouped as this learner updates them, frozen ones last.
   *
   * @throws ConfigError for a pattern that matches none of them.
   */
  layout(variables: readonly LearnableVariable[]): FlatLayout {
    const { bpropVariableExclusion, bpropVariableInclusion } = this.hp;
    checkPatterns(this, [...bpropVariableExclusion, ...bpropVariableInclusion], variables);
    for (const { hp } of this.optimizers.values())
      checkPatterns(this, Object.keys(hp.ewcWeightPerVar), variables);
    const wholes = new Map(
      variables.some(({ part }) => part)
        ? this.layout(variables.map(wholeOf)).entries.map((entry) => [entry.name, entry])
        : [],
    );
    const placed = variables.map((v) => {
      const { path: name, shape, repeatPrefix = [], storage, part } = v;
      const group = this.groupOf(v);
      if (part !== undefined) this.checkPart(v, group);
      check(
        this,
        storage === undefined || group === FROZEN,
        `variable '${name}' is ${storage}, and training changes it: a step is smaller than the bits that ${storage} has. ` +
          "Give its layer dtype 'float32', or freeze it by bpropVariableExclusion; fpropDtype 'bfloat16' computes in bfloat16 " +
          'with variables in float32.',
      );
      return {
        name,
        shape,
        group: part === undefined || groupParts(group) === undefined ? group : groupOfParts(group, part),
        ...(part && { ranks: part.ranks }),
        ...(part?.sliceRanks && { sliceRanks: part.sliceRanks }),
        ...(part &&
          this.optimizers.get(this.optimizerOf(name))!.updatesEach && {
            whole: { shape: part.whole, axes: part.axes, offset: wholes.get(name)!.offset },
          }),
        ...(storage && { storage }),
        ...(repeatPrefix.length > 0 && { repeatPrefix }),
        ...(this.hp.scaleUpdateByVarNorm && group !== FROZEN && updateScaleOf(this, v)),
      };
    });
    const isFrozen = ({ group }: { group: string }) => group === FROZEN;
    return flatLayout([...placed.filter((each) => !isFrozen(each)), ...placed.filter(isFrozen)]);
  }

  /** @throws ConfigError for a part of a variable that cannot be updated alone */
  private checkPart({ path }: LearnableVariable, group: string): void {
    const { optimizer } = groupParts(group) ?? {};
    const reason = optimizer === undefined ? undefined : this.optimizers.get(optimizer)!.refusesParts;
    check(
      this,
      reason === undefined,
      `ranks hold parts of '${path}', and ${reason}: leave it whole in task.mesh.weightSplitDimsMapping, or take an optimizer ` +
        'of elements, such as AdamW.',
    );
    check(
      this,
      this.hp.stochasticGradient?.hasNoise !== true,
      `ranks hold parts of '${path}', and the noise of stochasticGradient is that of whole variables: leave them whole in ` +
        'task.mesh.weightSplitDimsMapping.',
    );
  }

  /**
   * The update of buffers that follow `layout` as a function; no memory is taken.
   *
   * @param rows how many rows the gradient of a table has, by path, where it is rows and indices.
   */
  update(layout: FlatLayout, rows: UpdateRules['rows'] = new Map()): Following {
    return updateOf({ ...this.updateRules, rows }, layout);
  }

  /**
   * The update of flat buffers that follow `layout`, to be compiled behind the gradients; gradients are those of
   * `changingPart(layout)`, slots of `slotLayouts(layout)`.
   *
   * @param runs most steps of a call.
   * @throws RangeError where a buffer is missing or its length is not the layout's.
   */
  createUpdater(layout: FlatLayout, buffers: UpdaterBuffers, runs = 1): FlatUpdater {
    const { rowGrads = {} } = buffers;
    const rows = new Map(Object.entries(rowGrads).map(([path, { indices }]) => [path, indices.length]));
    return new FlatUpdater({ ...this.updateRules, rows }, layout, buffers, runs);
  }

  private get updateRules(): UpdateRules {
    const { optimizers, separateScaling } = this;
    const {
      checkValidStep,
      enableSkipStepOnGradientAnomalies: skipsInvalidSteps,
      skipStepGradientNormValue: bound,
      skipStepGradientNormSigma: sigma,
      skipStepGradientNormWindow: window,
    } = this.hp;
    // A norm that is not finite is below no bound.
    const normBound = checkValidStep ? bound || Number.POSITIVE_INFINITY : null;
    const keptFor = (path: string) =>
      this.hp.keepOptimizerStateForExcludedVars && this.isExcluded(path) ? this.optimizerOf(path) : undefined;
    const normOutliers = sigma > 0 ? { sigma, window } : null;
    return {
      optimizers,
      separateScaling,
      skipsInvalidSteps,
      normBound,
      normOutliers,
      keptFor,
      rows: new Map(),
    };
  }
}
