/** @file The update of flat buffers in place: norms on the host, the optimizer's rule on compiled chunks. */
import type { FlatEntry, FlatGroup, FlatLayout } from '../compiler/index.js';
import { entrySumsOfSquares, globalNorm, scaleInPlace, sumOfSquares } from './norms.js';
import { type BaseOptimizer, FROZEN, type StepContext } from './optimizer.js';
import {
  applyPass,
  directionPass,
  type GroupPass,
  runPasses,
  type UpdaterBuffers,
  type UpdaterOptions,
  updatePass,
} from './passes.js';

/** What an updater asks its learner. */
export interface UpdateRules {
  readonly optimizer: BaseOptimizer;
  /** Whether a step that is not valid leaves everything as it was. */
  readonly skipsInvalidSteps: boolean;
  /** A step is valid where the norm of all gradients is below this; null where all steps are. */
  readonly normBound: number | null;
}

/** What an update did. */
export interface UpdateReport {
  learningRate: number;
  /** Norm of all gradients together, as they came. */
  rawGradNorm: number;
  /** The same after clipping. */
  clippedGradNorm: number;
  /** Factor of global-norm clipping, 1 where it did not clip. */
  gradScale: number;
  /** 1, or 0 where the gradients were not finite or too large. */
  isValidStep: 0 | 1;
}

/** The entries that take part in updates. */
export const updatedEntries = ({ entries }: FlatLayout): FlatEntry[] =>
  entries.filter(({ group }) => group !== FROZEN);

/** The groups that have any. */
export const updatedGroups = ({ groups }: FlatLayout): FlatGroup[] =>
  groups.filter(({ name, size }) => name !== FROZEN && size > 0);

/** Updates parameters and slots in place, where gradients come from another program. Made by `Learner.createUpdater`. */
export class FlatUpdater {
  private readonly entries: readonly FlatEntry[];
  private sums: Float64Array;

  private constructor(
    private readonly rules: UpdateRules,
    private readonly buffers: UpdaterBuffers,
    layout: FlatLayout,
    private readonly passes: readonly GroupPass[],
    /** The second pass of an optimizer that bounds its directions, and where the first one leaves them. */
    private readonly bounded: { directions: Float32Array; passes: readonly GroupPass[] } | null,
  ) {
    this.entries = updatedEntries(layout);
    this.sums = new Float64Array(this.entries.length);
  }

  static async create(
    rules: UpdateRules,
    layout: FlatLayout,
    buffers: UpdaterBuffers,
    options: UpdaterOptions,
  ): Promise<FlatUpdater> {
    checkBuffers('createUpdater', rules.optimizer, layout, buffers);
    const groups = updatedGroups(layout);
    const { optimizer } = rules;
    if (!optimizer.boundsDirection) {
      const passes = await Promise.all(groups.map((group) => updatePass(optimizer, group, buffers, options)));
      return new FlatUpdater(rules, buffers, layout, passes, null);
    }
    const directions = new Float32Array(layout.size);
    const first = await Promise.all(
      groups.map((g) => directionPass(optimizer, g, buffers, directions, options)),
    );
    const second = await Promise.all(
      groups.map((g) => applyPass(optimizer, g, buffers, directions, options)),
    );
    return new FlatUpdater(rules, buffers, layout, first, { directions, passes: second });
  }

  /**
   * Takes the step that the gradients in the buffer ask for, or leaves every bit of parameters and slots as it was.
   *
   * @param step finished train steps, 0 for the first update.
   */
  async run(step: number): Promise<UpdateReport> {
    const { rules, bounded } = this;
    const { optimizer } = rules;
    this.sums = entrySumsOfSquares(this.entries, this.buffers.grads);
    const rawGradNorm = Math.sqrt(this.sums.reduce((total, sum) => total + sum, 0));
    const valid = rules.normBound === null || rawGradNorm < rules.normBound;
    const skip = !valid && rules.skipsInvalidSteps;
    const { gradScale, clippedGradNorm } = this.clip(rawGradNorm, skip);
    const learningRate = optimizer.learningRateAt(step);
    const context: StepContext = { step, learningRate, gradScale };
    if (!skip) {
      await runPasses(this.passes, (group) =>
        bounded ? optimizer.directionInputs(context, group) : optimizer.hostScalars(context, group),
      );
      if (bounded) {
        this.boundDirections(bounded.directions, optimizer.directionRmsBound(context));
        await runPasses(bounded.passes, (group) => optimizer.applyInputs(context, group));
      }
    }
    return { learningRate, rawGradNorm, clippedGradNorm, gradScale, isValidStep: valid ? 1 : 0 };
  }

  /** Norm of each variable's gradient at the last step, before clipping, by path. */
  gradNorms(): Record<string, number> {
    return Object.fromEntries(this.entries.map((entry, i) => [entry.name, Math.sqrt(this.sums[i]!)]));
  }

  /** Norm of all variables that are updated, together. */
  varNorm(): number {
    return globalNorm(this.entries, this.buffers.params);
  }

  private clip(norm: number, skip: boolean): { gradScale: number; clippedGradNorm: number } {
    const { clipGradientNormToValue: global, clipGradientSingleNormToValue: single } =
      this.rules.optimizer.hp;
    if (single === 0) {
      // A norm of zero gives an infinite quotient: gradients of zero stay zero.
      const gradScale = global > 0 ? Math.min(1, global / norm) : 1;
      return { gradScale, clippedGradNorm: norm * gradScale };
    }
    let clipped = 0;
    for (const [i, { offset, size }] of this.entries.entries()) {
      const scale = Math.min(1, single / Math.sqrt(this.sums[i]!));
      if (scale < 1 && !skip) scaleInPlace(this.buffers.grads, offset, size, scale);
      clipped += this.sums[i]! * scale * scale;
    }
    return { gradScale: 1, clippedGradNorm: Math.sqrt(clipped) };
  }

  private boundDirections(directions: Float32Array, bound: number): void {
    for (const { offset, size } of this.entries) {
      const rms = Math.sqrt(sumOfSquares(directions, offset, size) / size);
      if (rms > bound && Number.isFinite(rms)) scaleInPlace(directions, offset, size, bound / rms);
    }
  }
}

/** @throws RangeError, which names `caller`, for a buffer that is missing or not as long as the layout. */
export function checkBuffers(
  caller: string,
  optimizer: BaseOptimizer,
  layout: FlatLayout,
  buffers: UpdaterBuffers,
): void {
  const named: Record<string, Float32Array | undefined> = { params: buffers.params, grads: buffers.grads };
  for (const name of optimizer.stateNames) named[`slots.${name}`] = buffers.slots[name];
  for (const [name, buffer] of Object.entries(named)) {
    if (buffer?.length === layout.size) continue;
    const found = buffer === undefined ? 'is missing' : `has ${buffer.length} elements`;
    throw new RangeError(`${caller}: the layout has ${layout.size} elements, buffer '${name}' ${found}.`);
  }
}
