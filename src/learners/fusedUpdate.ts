/** @file The update as a function that follows the gradients in one executable: norms, clipping, the check, the rule. */
import {
  type FlatEntry,
  type FlatGroup,
  type FlatLayout,
  type Following,
  type Tensor,
  type TensorSpec,
  type Tree,
  tf,
  withScope,
} from '../compiler/index.js';
import { entryNorms, globalNorm } from './norms.js';
import type { NamedTensors, StepContext, UpdateGroup } from './optimizer.js';
import { ANY_STEP, slotBuffers, type UpdaterBuffers } from './passes.js';
import {
  checkBuffers,
  type UpdateReport,
  type UpdateRules,
  updatedEntries,
  updatedGroups,
} from './updater.js';

/** The variables of one group, side by side: tensors or arrays of all of them. */
interface Members<T> {
  readonly param: T;
  readonly grad: T;
  readonly slots: Readonly<Record<string, T>>;
  readonly scalars: Readonly<Record<string, T>>;
}

/** What the function is given. */
interface Given<T> {
  readonly groups: Readonly<Record<string, Members<T>>>;
  /** The largest root mean square of a variable's direction; only where the optimizer bounds it. */
  readonly bound?: T;
}

/** What each run of a call tells. */
interface Told {
  readonly rawGradNorm: Float32Array;
  readonly clippedGradNorm: Float32Array;
  readonly gradScale: Float32Array;
  readonly isValid: Uint8Array;
}

type Changed = Pick<Members<Tensor>, 'param' | 'slots'>;

const sumOfSquares = (x: Tensor): Tensor => tf.sum(tf.square(x));

const addAll = (terms: readonly Tensor[]): Tensor =>
  terms.length === 0 ? tf.scalar(0) : terms.reduce((sum, term) => tf.add(sum, term));

/** The factor that brings a norm down to `most`; 1 where it is not above, zero, or not a number. */
function factorTo(most: Tensor | number, norm: Tensor): Tensor {
  const factor = tf.div(most, norm);
  return tf.where(tf.less(factor, 1), factor, tf.onesLike(factor));
}

/** Updates parameters and slots in place, within the run that gives the gradients. Made by `Learner.fuseUpdate`. */
export class FusedUpdate {
  /** What to compile behind the gradients. */
  readonly following: Following;
  /** What to bind it to. */
  readonly inputs: Given<Float32Array>;
  readonly outputs: Tree<Float32Array | Uint8Array>;
  private readonly entries: readonly FlatEntry[];
  private readonly groups: readonly FlatGroup[];
  private readonly told: Told;
  private readonly learningRates: number[] = [];

  constructor(
    private readonly rules: UpdateRules,
    layout: FlatLayout,
    private readonly buffers: UpdaterBuffers,
    /** Runs of a call: what differs from one to the next has a part for each. */
    private readonly runs: number,
  ) {
    checkBuffers('fuseUpdate', rules.optimizer, layout, buffers);
    this.entries = updatedEntries(layout);
    this.groups = updatedGroups(layout);
    this.told = {
      rawGradNorm: this.perRun(),
      clippedGradNorm: this.perRun(),
      gradScale: this.perRun(),
      isValid: new Uint8Array(runs),
    };
    this.inputs = this.arrays();
    this.outputs = { ...this.told, groups: this.changed() };
    this.following = {
      f: (given: Given<Tensor>) => withScope('update', () => this.update(given)),
      inputs: this.specs(),
    };
  }

  /** Sets what a call's run number `run` needs, which takes this step: the host works schedules out in double precision. */
  prepare(step: number, run = 0): void {
    const { optimizer } = this.rules;
    const learningRate = optimizer.learningRateAt(step);
    this.learningRates[run] = learningRate;
    // Gradients are scaled within the program, so that scalars need not wait for their norm.
    const context: StepContext = { step, learningRate, gradScale: 1 };
    for (const [group, { scalars }] of Object.entries(this.inputs.groups)) {
      const values = optimizer.hostScalars(context, group as UpdateGroup);
      for (const [name, value] of Object.entries(values)) scalars[name]![run] = value;
    }
    if (this.inputs.bound) this.inputs.bound[run] = optimizer.directionRmsBound(context);
  }

  /** What a call's run number `run` did. */
  report(run = 0): UpdateReport {
    const { rawGradNorm, clippedGradNorm, gradScale, isValid } = this.told;
    return {
      learningRate: this.learningRates[run]!,
      rawGradNorm: rawGradNorm[run]!,
      clippedGradNorm: clippedGradNorm[run]!,
      gradScale: gradScale[run]!,
      isValidStep: isValid[run] === 1 ? 1 : 0,
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

  private perRun(): Float32Array {
    return new Float32Array(this.runs);
  }

  private piece(buffer: Float32Array, { offset, size }: FlatGroup): Float32Array {
    return buffer.subarray(offset, offset + size);
  }

  private slotPieces(group: FlatGroup): Record<string, Float32Array> {
    const slots = slotBuffers(this.rules.optimizer.stateNames, this.buffers);
    return Object.fromEntries(Object.entries(slots).map(([name, slot]) => [name, this.piece(slot, group)]));
  }

  private arrays(): Given<Float32Array> {
    const { optimizer } = this.rules;
    const { params, grads } = this.buffers;
    const groups = this.groups.map((group): [string, Members<Float32Array>] => {
      const names = Object.keys(optimizer.hostScalars(ANY_STEP, group.name as UpdateGroup));
      return [
        group.name,
        {
          param: this.piece(params, group),
          grad: this.piece(grads, group),
          slots: this.slotPieces(group),
          scalars: Object.fromEntries(names.map((name) => [name, this.perRun()])),
        },
      ];
    });
    const bound = optimizer.boundsDirection ? { bound: this.perRun() } : {};
    return { groups: Object.fromEntries(groups), ...bound };
  }

  private changed(): Tree<Float32Array> {
    const groups = Object.entries(this.inputs.groups);
    return Object.fromEntries(groups.map(([name, { param, slots }]) => [name, { param, slots }]));
  }

  private specs(): Tree<TensorSpec> {
    const whole = ({ length }: Float32Array): TensorSpec => ({ shape: [length], dtype: 'float32' });
    const scalar: TensorSpec = { shape: [], dtype: 'float32' };
    const all = <T>(arrays: Readonly<Record<string, T>>, spec: (array: T) => TensorSpec) =>
      Object.fromEntries(Object.entries(arrays).map(([name, array]) => [name, spec(array)]));
    const groups = Object.entries(this.inputs.groups).map(([name, { param, grad, slots, scalars }]) => {
      const flat = { param: whole(param), grad: whole(grad), slots: all(slots, whole) };
      return [name, { ...flat, scalars: all(scalars, () => scalar) }] as const;
    });
    return { groups: Object.fromEntries(groups), ...(this.inputs.bound && { bound: scalar }) };
  }

  private update({ groups, bound }: Given<Tensor>): Tree<Tensor> {
    const { normBound, skipsInvalidSteps } = this.rules;
    const raw = this.groups.map(({ name }) => groups[name]!.grad);
    const rawGradNorm = tf.sqrt(addAll(raw.map(sumOfSquares)));
    const isValid = normBound === null ? tf.scalar(1, 'bool') : tf.less(rawGradNorm, normBound);
    const keeps = skipsInvalidSteps && normBound !== null;
    const { clipped, gradScale, clippedGradNorm } = this.clip(raw, rawGradNorm);
    const changed = this.groups.map((group, i): [string, Changed] => {
      const { optimizer } = this.rules;
      const before = groups[group.name]!;
      return withScope(`update/${optimizer.constructor.name}_${group.name}`, () => {
        const after = this.step(group, { ...before, grad: clipped(i) }, bound);
        return [group.name, keeps ? kept(isValid, after, before) : after];
      });
    });
    return { rawGradNorm, clippedGradNorm, gradScale, isValid, groups: Object.fromEntries(changed) };
  }

  /** The gradients as the optimizer sees them, by the number of the group. */
  private clip(raw: readonly Tensor[], rawGradNorm: Tensor) {
    const { clipGradientNormToValue: global, clipGradientSingleNormToValue: single } =
      this.rules.optimizer.hp;
    const unscaled = tf.onesLike(rawGradNorm);
    if (single > 0) {
      const grads = raw.map((grad, i) =>
        this.scaleEach(grad, this.groups[i]!, (part) => factorTo(single, tf.sqrt(sumOfSquares(part)))),
      );
      const clippedGradNorm = tf.sqrt(addAll(grads.map(sumOfSquares)));
      return { clipped: (i: number) => grads[i]!, gradScale: unscaled, clippedGradNorm };
    }
    if (global === 0)
      return { clipped: (i: number) => raw[i]!, gradScale: unscaled, clippedGradNorm: rawGradNorm };
    const gradScale = factorTo(global, rawGradNorm);
    return {
      // Recorded among the optimizer's operations, to be in one loop with them.
      clipped: (i: number) => tf.mul(raw[i]!, gradScale),
      gradScale,
      clippedGradNorm: tf.mul(rawGradNorm, gradScale),
    };
  }

  /** One group's parameters and slots after the step. */
  private step(group: FlatGroup, before: Members<Tensor>, bound: Tensor | undefined): Changed {
    const { optimizer } = this.rules;
    const { param, grad, slots, scalars } = before as Members<Tensor> & { slots: NamedTensors };
    const kind = group.name as UpdateGroup;
    const after = optimizer.directionOf(param, grad, slots, scalars as NamedTensors, kind);
    const direction =
      bound === undefined
        ? after.direction
        : this.scaleEach(after.direction, group, (part, { size }) =>
            factorTo(bound, tf.sqrt(tf.div(sumOfSquares(part), Math.max(1, size)))),
          );
    const applied = optimizer.apply(param, direction, slots, scalars as NamedTensors);
    return { param: applied.param, slots: { ...after.slots, ...applied.slots } };
  }

  /** Every variable of a group times a factor of its own; the padding behind it, which is zero, goes with it. */
  private scaleEach(
    flat: Tensor,
    group: FlatGroup,
    factorOf: (part: Tensor, entry: FlatEntry) => Tensor,
  ): Tensor {
    const members = this.entries.filter((entry) => entry.group === group.name);
    const parts = members.map((entry, i) => {
      const end = members[i + 1]?.offset ?? group.offset + group.size;
      const part = tf.slice(flat, [entry.offset - group.offset], [end - entry.offset]);
      return tf.mul(part, factorOf(part, entry));
    });
    return parts.length === 1 ? parts[0]! : tf.concat(parts);
  }
}

/** What it becomes where the step is taken, else what it was. */
function kept(isTaken: Tensor, after: Changed, before: Changed): Changed {
  const choose = (next: Tensor, last: Tensor): Tensor => tf.where(isTaken, next, last);
  return {
    param: choose(after.param, before.param),
    slots: Object.fromEntries(
      Object.entries(after.slots).map(([name, slot]) => [name, choose(slot, before.slots[name]!)]),
    ),
  };
}
