/** @file The update of flat buffers in place, as a function that follows the gradients in the same run. */
import {
  type FlatEntry,
  type FlatLayout,
  type Following,
  type Tensor,
  type TensorSpec,
  type Tree,
  tf,
  withScope,
} from '../compiler/index.js';
import { withNorm } from './clipping.js';
import { entryNorms, globalNorm } from './norms.js';
import { type BaseOptimizer, EMA, type GroupState } from './optimizer.js';
import { isUpdateGroup, NON_TRAINABLE, VariableGroup } from './variableGroup.js';

/** The flat buffers of a training state; all have the layout's size. */
export interface UpdaterBuffers {
  readonly params: Float32Array;
  /** Gradients of the loss; for variables that the forward pass replaces, their new values. */
  readonly grads: Float32Array;
  readonly slots: Readonly<Record<string, Float32Array>>;
}

/** The learner's rules. */
export interface UpdateRules {
  readonly optimizer: BaseOptimizer;
  /** Whether a step that is not valid leaves everything as it was. */
  readonly skipsInvalidSteps: boolean;
  /** A step is valid where the norm of all gradients is below this; null where all steps are. */
  readonly normBound: number | null;
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
  /** 1, or 0 where the gradients were not finite or too large. */
  readonly isValidStep: 0 | 1;
}

/** One group's tensors, or the arrays that they are bound to. Scalars have a part for each run of a call. */
interface Members<T> extends GroupState<T> {
  readonly grad: T;
  readonly scalars: Readonly<Record<string, T>>;
}

const mapValues = <T, U>(record: Readonly<Record<string, T>>, f: (value: T) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, f(value)]));

const SCALAR: TensorSpec = { shape: [], dtype: 'float32' };
const specOf = ({ length }: Float32Array): TensorSpec => ({ shape: [length], dtype: 'float32' });

/** Updates parameters and slots in place. Made by `Learner.createUpdater`. */
export class FlatUpdater {
  /** The function to compile behind the gradients. */
  readonly following: Following;
  /** Arrays of each group, to bind it to. */
  readonly inputs: Readonly<Record<string, Members<Float32Array>>>;
  readonly outputs: Tree<Float32Array | Uint8Array>;
  private readonly entries: readonly FlatEntry[];
  private readonly groups: readonly VariableGroup[];
  private readonly told: { rawGradNorm: Float32Array; clippedGradNorm: Float32Array; isValid: Uint8Array };
  private readonly learningRates: number[] = [];

  /**
   * @param runs most runs of a call; arrays that differ between runs have a part for each.
   * @throws RangeError for a buffer that is missing or not as long as the layout.
   */
  constructor(
    private readonly rules: UpdateRules,
    layout: FlatLayout,
    private readonly buffers: UpdaterBuffers,
    runs: number,
  ) {
    const { optimizer } = rules;
    checkBuffers(optimizer, layout, buffers);
    this.entries = layout.entries.filter(({ group }) => isUpdateGroup(group));
    this.groups = VariableGroup.listOf(layout);
    const perRun = () => new Float32Array(runs);
    const membersAt = (
      { offset, size }: VariableGroup['place'],
      slots: readonly string[],
      scalars: Readonly<Record<string, number>>,
    ): Members<Float32Array> => {
      const piece = (buffer: Float32Array) => buffer.subarray(offset, offset + size);
      return {
        param: piece(buffers.params),
        grad: piece(buffers.grads),
        slots: Object.fromEntries(slots.map((slot) => [slot, piece(buffers.slots[slot]!)])),
        scalars: mapValues(scalars, perRun),
      };
    };
    const updated = this.groups.map(
      ({ name, place }) =>
        [name, membersAt(place, optimizer.stateNames, optimizer.hostScalars(0, name))] as const,
    );
    const replaced = layout.groups
      .filter(({ name }) => name === NON_TRAINABLE)
      .map((place) => [NON_TRAINABLE, membersAt(place, optimizer.averages ? [EMA] : [], {})] as const);
    this.inputs = Object.fromEntries([...updated, ...replaced]);
    this.told = { rawGradNorm: perRun(), clippedGradNorm: perRun(), isValid: new Uint8Array(runs) };
    this.outputs = { ...this.told, groups: mapValues(this.inputs, ({ param, slots }) => ({ param, slots })) };
    this.following = {
      name: 'update',
      f: (given: Record<string, Members<Tensor>>) => withScope('update', () => this.update(given)),
      inputs: mapValues(this.inputs, ({ param, grad, slots, scalars }) => ({
        ...{ param: specOf(param), grad: specOf(grad), slots: mapValues(slots, specOf) },
        scalars: mapValues(scalars, () => SCALAR),
      })),
    };
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

  private update(given: Record<string, Members<Tensor>>): Tree<Tensor> {
    const { optimizer, normBound, skipsInvalidSteps } = this.rules;
    const raw = withNorm(
      this.groups.map((variables) => ({ variables, grad: () => given[variables.name]!.grad })),
    );
    const clipped = optimizer.transformGradients(raw);
    const isValid = normBound === null ? tf.scalar(1, 'bool') : tf.less(raw.norm, normBound);
    const settled = (after: GroupState<Tensor>, before: GroupState<Tensor>): GroupState<Tensor> =>
      skipsInvalidSteps && normBound !== null ? choose(isValid, after, before) : after;
    const groups = clipped.groups.map(({ variables, grad }) => {
      const { name } = variables;
      const before = given[name]!;
      const changed = withScope(`update/${optimizer.constructor.name}_${name}`, () =>
        settled(optimizer.update(before, grad(), before.scalars, variables), before),
      );
      return [name, changed] as const;
    });
    const { [NON_TRAINABLE]: replaced } = given;
    return {
      ...{ rawGradNorm: raw.norm, clippedGradNorm: clipped.norm, isValid },
      groups: {
        ...Object.fromEntries(groups),
        ...(replaced && { [NON_TRAINABLE]: settled(replacement(replaced), replaced) }),
      } as unknown as Tree<Tensor>,
    };
  }
}

/** The value from the forward pass, which is its own average. */
const replacement = ({ grad, slots }: Members<Tensor>): GroupState<Tensor> => ({
  param: grad,
  slots: mapValues(slots, () => grad),
});

/** One state or the other, unchanged to the bit. */
function choose(condition: Tensor, yes: GroupState<Tensor>, no: GroupState<Tensor>): GroupState<Tensor> {
  const slots = Object.entries(yes.slots).map(([name, slot]) => [
    name,
    tf.where(condition, slot, no.slots[name]!),
  ]);
  return { param: tf.where(condition, yes.param, no.param), slots: Object.fromEntries(slots) };
}

function checkBuffers(optimizer: BaseOptimizer, layout: FlatLayout, buffers: UpdaterBuffers): void {
  const named: Record<string, Float32Array | undefined> = { params: buffers.params, grads: buffers.grads };
  for (const name of optimizer.stateNames) named[`slots.${name}`] = buffers.slots[name];
  for (const [name, buffer] of Object.entries(named)) {
    if (buffer?.length === layout.size) continue;
    const found = buffer === undefined ? 'is missing' : `has ${buffer.length} elements`;
    throw new RangeError(`createUpdater: the layout has ${layout.size} elements, buffer '${name}' ${found}.`);
  }
}
