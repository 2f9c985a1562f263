/** @file The update of flat buffers in place: its memory, its inputs of each step, its outcome. */
import type { FlatArray, FlatEntry, FlatLayout, Following, Tree } from '../compiler/index.js';
import { mapValues } from './mapValues.js';
import { changingPart, groupParts, type VariableGroup } from './optimizers/variableGroup.js';
import { sumOfSquares } from './transforms/norms.js';
import { OutlierBound } from './transforms/outlierBound.js';
import {
  groupsOf,
  inputsOf,
  mainOf,
  scalarsAt,
  slotLayoutsOf,
  type UpdateInputs,
  type UpdateRules,
  updateOf,
} from './update.js';

/** The flat buffers of a training state: the layout's parameters, gradients of those that are not frozen, slots. */
export interface UpdaterBuffers {
  readonly params: Float32Array;
  /** Gradients of the loss; for variables that the forward pass replaces, their new values. */
  readonly grads: Float32Array;
  /** Placed by `Learner.slotLayouts`. */
  readonly slots: Readonly<Record<string, FlatArray>>;
  /** Gradients that are rows and indices, by the path of their table, coalesced; `grads` does not have these. */
  readonly rowGrads?: Readonly<Record<string, RowBuffers>>;
}

/** Sums of squares by the path of a variable: of its elements, and of those of its gradient. */
export type SquaresByPath = ReadonlyMap<string, Readonly<Record<'params' | 'grads', number>>>;

/** A gradient that is rows and indices. */
export type RowBuffers = Readonly<{
  indices: Int32Array;
  /** [indices, depth] */
  rows: Float32Array;
}>;

/** Report of an update. */
export interface UpdateReport {
  readonly learningRate: number;
  /** Learning rates of auxiliary optimizers, by name; absent where there are none. */
  readonly auxiliary?: Readonly<Record<string, number>>;
  /** Norm of all gradients together, before clipping. */
  readonly rawGradNorm: number;
  /** Norm of all gradients together, after clipping. */
  readonly clippedGradNorm: number;
  /** Factor of global-norm clipping, 1 where it did not clip. */
  readonly gradScale: number;
  /** The bound of `rawGradNorm`, where the norms before set one. */
  readonly gradNormBound?: number;
  /** 1, or 0 where the gradients were not finite or too large, or a replaced variable was not finite. */
  readonly isValidStep: 0 | 1;
}

/** Updates parameters and slots in place. Made by `Learner.createUpdater`. */
export class FlatUpdater {
  /** The function to compile behind the gradients. */
  readonly following: Following;
  /** Arrays to bind it to; scalars are stacked over the runs of a call. */
  readonly inputs: UpdateInputs<FlatArray | Int32Array>;
  readonly outputs: Tree<FlatArray | Int32Array>;
  private readonly entries: readonly FlatEntry[];
  private readonly groups: readonly VariableGroup[];
  private readonly told: { rawGradNorm: Float32Array; clippedGradNorm: Float32Array; isValid: Uint8Array };
  /** The norms of the steps before, where they set a bound. */
  readonly norms: OutlierBound | undefined;
  /** By the optimizer's name, for each run. */
  private readonly learningRates: ReadonlyMap<string, number[]>;

  /**
   * @param runs most runs of a call; arrays that differ between runs are stacked.
   * @throws RangeError for a buffer that is missing or not as long as the layout.
   */
  constructor(
    private readonly rules: UpdateRules,
    layout: FlatLayout,
    private readonly buffers: UpdaterBuffers,
    runs: number,
  ) {
    checkBuffers(rules, layout, buffers);
    this.entries = layout.entries.filter(({ group }) => groupParts(group) !== undefined);
    this.groups = groupsOf(rules, layout);
    this.learningRates = new Map([...rules.optimizers.keys()].map((name) => [name, []]));
    const perRun = () => new Float32Array(runs);
    const { normOutliers } = rules;
    if (normOutliers !== null) this.norms = new OutlierBound(normOutliers.sigma, normOutliers.window);
    this.inputs = inputsOf<FlatArray | Int32Array>(
      rules,
      layout,
      (name, { offset, size }) => {
        if (typeof name !== 'string' && 'table' in name) return buffers.rowGrads![name.table]![name.part];
        const buffer = typeof name === 'string' ? buffers[name] : buffers.slots[name.slot]!;
        return buffer.subarray(offset, offset + size);
      },
      perRun,
    );
    this.told = { rawGradNorm: perRun(), clippedGradNorm: perRun(), isValid: new Uint8Array(runs) };
    this.outputs = {
      ...this.told,
      groups: mapValues(this.inputs.groups, ({ param, slots }) => ({ param, slots })),
    };
    this.following = updateOf(rules, layout);
  }

  /**
   * Sets the scalars of run number `run` of a call; the host computes schedules in double precision.
   *
   * @param step finished train steps, 0 for the first update.
   */
  prepare(step: number, run = 0): void {
    for (const [name, rates] of this.learningRates)
      rates[run] = this.rules.optimizers.get(name)!.learningRateAt(step);
    if (this.norms !== undefined)
      this.inputs.normBound![run] = Math.min(this.rules.normBound!, this.norms.bound);
    const prepared = new Set<string>();
    for (const variables of this.groups) {
      const { group } = variables;
      if (prepared.has(group)) continue;
      prepared.add(group);
      const scalars = this.inputs.scalars[group]!;
      for (const [scalar, value] of Object.entries(scalarsAt(this.rules, variables, step)))
        scalars[scalar]![run] = value;
    }
  }

  /** The report of run number `run` of a call, once for each step: norms count for the bound of those that follow. */
  report(run = 0): UpdateReport {
    this.norms?.add(this.told.rawGradNorm[run]!);
    const [rawGradNorm, clippedGradNorm] = [this.told.rawGradNorm[run]!, this.told.clippedGradNorm[run]!];
    const { separateScaling } = this.rules;
    const clips = !separateScaling && mainOf(this.rules).hp.clipGradientNormToValue > 0;
    const scaled = clips && clippedGradNorm < rawGradNorm;
    const [main, ...auxiliary] = [...this.learningRates].map(([name, rates]) => [name, rates[run]!] as const);
    return {
      learningRate: main![1],
      ...(auxiliary.length > 0 && { auxiliary: Object.fromEntries(auxiliary) }),
      rawGradNorm,
      clippedGradNorm,
      ...(this.norms && { gradNormBound: this.inputs.normBound![run]! }),
      gradScale: scaled ? clippedGradNorm / rawGradNorm : 1,
      isValidStep: this.told.isValid[run] === 1 ? 1 : 0,
    };
  }

  /**
   * Norm of each variable's gradient at the last step, before clipping, by path.
   *
   * @param squares of whole variables, where the buffers hold parts.
   */
  gradNorms(squares?: SquaresByPath): Record<string, number> {
    const { rowGrads = {} } = this.buffers;
    return this.normsOf('grads', squares, ({ name }) => {
      const rows = rowGrads[name]?.rows;
      return rows && sumOfSquares(rows, 0, rows.length);
    });
  }

  /** Norm of each variable that is updated, by path. @param squares as of `gradNorms` */
  varNorms(squares?: SquaresByPath): Record<string, number> {
    return this.normsOf('params', squares);
  }

  /** Norm of all variables that are updated, together. @param squares as of `gradNorms` */
  varNorm(squares?: SquaresByPath): number {
    let sum = 0;
    for (const entry of this.entries) sum += this.squaresOf('params', entry, squares);
    return Math.sqrt(sum);
  }

  private normsOf(
    kind: 'params' | 'grads',
    squares: SquaresByPath | undefined,
    own: (entry: FlatEntry) => number | undefined = () => undefined,
  ): Record<string, number> {
    return Object.fromEntries(
      this.entries.map((entry) => [
        entry.name,
        Math.sqrt(own(entry) ?? this.squaresOf(kind, entry, squares)),
      ]),
    );
  }

  private squaresOf(kind: 'params' | 'grads', { name, offset, size }: FlatEntry, squares?: SquaresByPath) {
    return squares?.get(name)?.[kind] ?? sumOfSquares(this.buffers[kind], offset, size);
  }
}

function checkBuffers(rules: UpdateRules, layout: FlatLayout, buffers: UpdaterBuffers): void {
  const check = (name: string, buffer: FlatArray | undefined, size: number, what: string): void => {
    if (buffer?.length === size) return;
    const found = buffer === undefined ? 'is missing' : `has ${buffer.length} elements`;
    throw new RangeError(`createUpdater: ${what} ${size} elements, buffer '${name}' ${found}.`);
  };
  const changing = changingPart(layout).size;
  check('params', buffers.params, layout.size, 'the layout has');
  check('grads', buffers.grads, changing, 'variables that are not frozen have');
  for (const [name, { size }] of Object.entries(slotLayoutsOf(rules, layout)))
    check(`slots.${name}`, buffers.slots[name], size, 'variables have slots of');
}
