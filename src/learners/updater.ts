/** @file The update of flat buffers in place: what it is bound to, what each step hands it, and what it did. */
import type { FlatEntry, FlatLayout, Following, Tree } from '../compiler/index.js';
import { entryNorms, globalNorm } from './norms.js';
import { type BufferName, type Members, mapValues, membersOf, type UpdateRules, updateOf } from './update.js';
import { changingPart, isUpdateGroup, VariableGroup } from './variableGroup.js';

/** The flat buffers of a training state: the layout's parameters; gradients and slots of those that are not frozen. */
export interface UpdaterBuffers {
  readonly params: Float32Array;
  /** Gradients of the loss; for variables that the forward pass replaces, their new values. */
  readonly grads: Float32Array;
  readonly slots: Readonly<Record<string, Float32Array>>;
}

/** Report of an update. */
export interface UpdateReport {
  readonly learningRate: number;
  /** Norm of all gradients together, before clipping. */
  readonly rawGradNorm: number;
  /** Norm of all gradients together, after clipping. */
  readonly clippedGradNorm: number;
  /** Factor of global-norm clipping, 1 where it did not clip. */
  readonly gradScale: number;
  /** 1, or 0 where the gradients were not finite or too large, or a replaced variable was not finite. */
  readonly isValidStep: 0 | 1;
}

/** Updates parameters and slots in place. Made by `Learner.createUpdater`. */
export class FlatUpdater {
  /** The function to compile behind the gradients. */
  readonly following: Following;
  /** Arrays of each group, to bind it to; scalars are stacked over the runs of a call. */
  readonly inputs: Readonly<Record<string, Members<Float32Array>>>;
  readonly outputs: Tree<Float32Array | Uint8Array>;
  private readonly entries: readonly FlatEntry[];
  private readonly groups: readonly VariableGroup[];
  private readonly told: { rawGradNorm: Float32Array; clippedGradNorm: Float32Array; isValid: Uint8Array };
  private readonly learningRates: number[] = [];

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
    this.entries = layout.entries.filter(({ group }) => isUpdateGroup(group));
    this.groups = VariableGroup.listOf(layout);
    const bufferOf = (buffer: BufferName): Float32Array =>
      typeof buffer === 'string' ? buffers[buffer] : buffers.slots[buffer.slot]!;
    const perRun = () => new Float32Array(runs);
    this.inputs = membersOf(
      rules,
      layout,
      (buffer, { offset, size }) => bufferOf(buffer).subarray(offset, offset + size),
      perRun,
    );
    this.told = { rawGradNorm: perRun(), clippedGradNorm: perRun(), isValid: new Uint8Array(runs) };
    this.outputs = { ...this.told, groups: mapValues(this.inputs, ({ param, slots }) => ({ param, slots })) };
    this.following = updateOf(rules, layout);
  }

  /**
   * Sets the scalars of run number `run` of a call; the host computes schedules in double precision.
   *
   * @param step finished train steps, 0 for the first update.
   */
  prepare(step: number, run = 0): void {
    const { optimizer } = this.rules;
    this.learningRates[run] = optimizer.learningRateAt(step);
    for (const { name } of this.groups) {
      const { scalars } = this.inputs[name]!;
      for (const [scalar, value] of Object.entries(optimizer.hostScalars(step, name)))
        scalars[scalar]![run] = value;
    }
  }

  /** The report of run number `run` of a call. */
  report(run = 0): UpdateReport {
    const [rawGradNorm, clippedGradNorm] = [this.told.rawGradNorm[run]!, this.told.clippedGradNorm[run]!];
    const scaled = this.rules.optimizer.hp.clipGradientNormToValue > 0 && clippedGradNorm < rawGradNorm;
    return {
      learningRate: this.learningRates[run]!,
      rawGradNorm,
      clippedGradNorm,
      gradScale: scaled ? clippedGradNorm / rawGradNorm : 1,
      isValidStep: this.told.isValid[run] === 1 ? 1 : 0,
    };
  }

  /** Norm of each variable's gradient at the last step, before clipping, by path. */
  gradNorms(): Record<string, number> {
    return entryNorms(this.entries, this.buffers.grads);
  }

  /** Norm of all variables that are updated, together. */
  varNorm(): number {
    return globalNorm(this.entries, this.buffers.params);
  }
}

function checkBuffers({ optimizer }: UpdateRules, layout: FlatLayout, buffers: UpdaterBuffers): void {
  const check = (name: string, buffer: Float32Array | undefined, size: number, what: string): void => {
    if (buffer?.length === size) return;
    const found = buffer === undefined ? 'is missing' : `has ${buffer.length} elements`;
    throw new RangeError(`createUpdater: ${what} ${size} elements, buffer '${name}' ${found}.`);
  };
  const changing = changingPart(layout).size;
  check('params', buffers.params, layout.size, 'the layout has');
  check('grads', buffers.grads, changing, 'variables that are not frozen have');
  for (const name of optimizer.stateNames)
    check(`slots.${name}`, buffers.slots[name], changing, 'variables that are not frozen have');
}
