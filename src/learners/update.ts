/** @file The update of parameters and slots by their gradients, as a function that follows the gradients in the same run. */
import {
  type FlatGroup,
  type FlatLayout,
  type Following,
  type Tensor,
  type TensorSpec,
  type Tree,
  tf,
  withScope,
} from '../compiler/index.js';
import { withNorm } from './clipping.js';
import { type BaseOptimizer, EMA, type GroupState } from './optimizer.js';
import { NON_TRAINABLE, VariableGroup } from './variableGroup.js';

/** The learner's rules. */
export interface UpdateRules {
  readonly optimizer: BaseOptimizer;
  /** Whether a step that is not valid leaves everything as it was. */
  readonly skipsInvalidSteps: boolean;
  /**
   * A step is valid where the norm of all gradients is below this and what the forward pass replaced is finite; null where
   * all steps are.
   */
  readonly normBound: number | null;
}

/** One group's tensors, their specs, or the arrays that they are bound to. */
export interface Members<T> extends GroupState<T> {
  readonly grad: T;
  readonly scalars: Readonly<Record<string, T>>;
}

/** A buffer of a training state. */
export type BufferName = 'params' | 'grads' | { readonly slot: string };

export const mapValues = <T, U>(record: Readonly<Record<string, T>>, f: (value: T) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, f(value)]));

const SCALAR: TensorSpec = { shape: [], dtype: 'float32' };

/**
 * What an update takes of each group of a layout.
 *
 * @param piece the part of a buffer that is a group's.
 * @param scalar one of the numbers that depend on the step.
 */
export function membersOf<T>(
  { optimizer }: UpdateRules,
  layout: FlatLayout,
  piece: (buffer: BufferName, group: Pick<FlatGroup, 'offset' | 'size'>) => T,
  scalar: () => T,
): Record<string, Members<T>> {
  const members = (
    group: Pick<FlatGroup, 'offset' | 'size'>,
    slots: readonly string[],
    scalars: readonly string[],
  ): Members<T> => ({
    param: piece('params', group),
    grad: piece('grads', group),
    slots: Object.fromEntries(slots.map((slot) => [slot, piece({ slot }, group)])),
    scalars: Object.fromEntries(scalars.map((name) => [name, scalar()])),
  });
  const updated = VariableGroup.listOf(layout).map(
    ({ name, place }) =>
      [name, members(place, optimizer.stateNames, Object.keys(optimizer.hostScalars(0, name)))] as const,
  );
  const replaced = layout.groups
    .filter(({ name }) => name === NON_TRAINABLE)
    .map((group) => [NON_TRAINABLE, members(group, optimizer.averages ? [EMA] : [], [])] as const);
  return Object.fromEntries([...updated, ...replaced]);
}

/** The update of the groups of a layout, to be compiled behind the gradients. */
export function updateOf(rules: UpdateRules, layout: FlatLayout): Following {
  const groups = VariableGroup.listOf(layout);
  return {
    name: 'update',
    f: (given: Record<string, Members<Tensor>>) => withScope('update', () => update(rules, groups, given)),
    inputs: membersOf<TensorSpec>(
      rules,
      layout,
      (_, { size }) => ({ shape: [size], dtype: 'float32' }),
      () => SCALAR,
    ) as unknown as Tree<TensorSpec>,
  };
}

function update(
  { optimizer, normBound, skipsInvalidSteps }: UpdateRules,
  groups: readonly VariableGroup[],
  given: Record<string, Members<Tensor>>,
): Tree<Tensor> {
  const raw = withNorm(groups.map((variables) => ({ variables, grad: () => given[variables.name]!.grad })));
  const clipped = optimizer.transformGradients(raw);
  const { [NON_TRAINABLE]: replaced } = given;
  const isValid = normBound === null ? tf.scalar(1, 'bool') : valid(raw.norm, normBound, replaced);
  const settled = (after: GroupState<Tensor>, before: GroupState<Tensor>): GroupState<Tensor> =>
    skipsInvalidSteps && normBound !== null ? choose(isValid, after, before) : after;
  const updated = clipped.groups.map(({ variables, grad }) => {
    const { name } = variables;
    const before = given[name]!;
    const changed = withScope(`update/${optimizer.constructor.name}_${name}`, () =>
      settled(optimizer.update(before, grad(), before.scalars, variables), before),
    );
    return [name, changed] as const;
  });
  return {
    ...{ rawGradNorm: raw.norm, clippedGradNorm: clipped.norm, isValid },
    groups: {
      ...Object.fromEntries(updated),
      ...(replaced && { [NON_TRAINABLE]: settled(replacement(replaced), replaced) }),
    } as unknown as Tree<Tensor>,
  };
}

/** Whether the norm of the gradients is below its bound, and all that the forward pass replaced is finite. */
function valid(norm: Tensor, bound: number, replaced: Members<Tensor> | undefined): Tensor {
  const isBelow = tf.less(norm, bound);
  return replaced ? tf.logicalAnd(isBelow, tf.all(tf.isFinite(replaced.grad))) : isBelow;
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
