/** @file The update of parameters and slots by their gradients, as a function that follows the gradients in the same run. */
import {
  type FlatDtype,
  type FlatEntry,
  type FlatGroup,
  type FlatLayout,
  type Following,
  type Group,
  ops,
  type Tensor,
  type TensorSpec,
  type Tree,
  tf,
  withScope,
} from '../compiler/index.js';
import { mapValues } from './mapValues.js';
import { type BaseOptimizer, choose, type GroupState } from './optimizers/optimizer.js';
import { stored, storedSpec } from './optimizers/slotStorage.js';
import { EMA, type SlotLayouts, slotLayouts } from './optimizers/slots.js';
import { NON_TRAINABLE, VariableGroup } from './optimizers/variableGroup.js';
import { onWhole } from './optimizers/wholeVariable.js';
import { type Gradients, withNorm } from './transforms/clipping.js';

/** The learner's rules. */
export interface UpdateRules {
  /** By name; the learner's own, whose average and clipping are those of all, is ''. */
  readonly optimizers: ReadonlyMap<string, BaseOptimizer>;
  /** Whether each optimizer clips the gradients of its own variables, by their own norm. */
  readonly separateScaling: boolean;
  /** Whether a step that is not valid leaves everything as it was. */
  readonly skipsInvalidSteps: boolean;
  /**
   * A step is valid where the norm of all gradients is below this and what the forward pass replaced is finite; null where
   * all steps are.
   */
  readonly normBound: number | null;
  /** The further bound that the last norms of all gradients set; null for none. */
  readonly normOutliers: { readonly sigma: number; readonly window: number } | null;
  /** Name of the optimizer whose slots are kept for a variable that does not move; undefined for none. */
  readonly keptFor: (path: string) => string | undefined;
  /** How many rows the gradient of a table has, by path, where it is rows and indices. */
  readonly rows: ReadonlyMap<string, number>;
}

/** The learner's own optimizer. */
export const mainOf = ({ optimizers }: UpdateRules): BaseOptimizer => optimizers.get('')!;

/** Places of the slots of a layout's variables. */
export const slotLayoutsOf = (rules: UpdateRules, layout: FlatLayout): SlotLayouts =>
  slotLayouts(rules.optimizers, layout, mainOf(rules).averages, rules.keptFor);

/** The variables of a layout that one call of a rule updates, in their order. */
export const groupsOf = ({ optimizers, rows }: UpdateRules, layout: FlatLayout): VariableGroup[] =>
  VariableGroup.listOf(layout, (name) => optimizers.get(name)!.updatesEach, rows);

/** One group's tensors, their specs, or the arrays that they are bound to. */
interface Members<T> extends GroupState<T> {
  /** Of a table whose gradient is rows and indices, the rows [n, depth]. */
  readonly grad: T;
  /** int32 [n], of such a table alone: those of the rows, coalesced. */
  readonly indices?: T;
}

/** Arguments of an update. */
export interface UpdateInputs<T> {
  /** The bound of norms, where it is another at each step. */
  readonly normBound?: T;
  /** Numbers that depend on the step, by the layout's group. */
  readonly scalars: Readonly<Record<string, Readonly<Record<string, T>>>>;
  readonly groups: Readonly<Record<string, Members<T>>>;
}

/** A buffer of a training state, or one of those of a table's gradient. */
export type BufferName =
  | 'params'
  | 'grads'
  | { readonly slot: string }
  | { readonly table: string; readonly part: 'indices' | 'rows' };

type Place = Pick<FlatGroup, 'offset' | 'size'>;

/** All numbers of a step for a group, by name. */
export function scalarsAt(
  rules: UpdateRules,
  { optimizer, decays }: Pick<VariableGroup, 'optimizer' | 'decays'>,
  step: number,
): Record<string, number> {
  const main = mainOf(rules);
  return {
    ...rules.optimizers.get(optimizer)!.hostScalars(step, decays),
    ...(main.averages ? { toEma: 1 - main.emaDecayAt(step) } : {}),
  };
}

/**
 * Arguments of an update by a layout.
 *
 * @param piece the part of a buffer that is a group's.
 * @param scalar one of the numbers that depend on the step.
 */
export function inputsOf<T>(
  rules: UpdateRules,
  layout: FlatLayout,
  piece: (buffer: BufferName, place: Place, dtype: FlatDtype | 'int32') => T,
  scalar: () => T,
): UpdateInputs<T> {
  const groups = groupsOf(rules, layout);
  const slots = Object.entries(slotLayoutsOf(rules, layout)).map(([slot, { dtype, groups, entries }]) => ({
    ...{ slot, dtype },
    groups: new Map<string, Place>(groups.map((each) => [each.name, each])),
    entries: new Map<string, Place>(entries.map((each) => [each.name, each])),
  }));
  const slotsAt = (placeIn: (slot: (typeof slots)[number]) => Place | undefined): Record<string, T> =>
    Object.fromEntries(
      slots.flatMap((each) => {
        const place = placeIn(each);
        return place === undefined ? [] : [[each.slot, piece({ slot: each.slot }, place, each.dtype)]];
      }),
    );
  const members = ({ place, entries, optimizer, rows }: VariableGroup): Members<T> => {
    const [first] = entries as [FlatEntry];
    const gradient = (part: 'indices' | 'rows', size: number) =>
      piece({ table: first.name, part }, { offset: 0, size }, part === 'rows' ? 'float32' : 'int32');
    return {
      param: piece('params', place, 'float32'),
      ...(rows === undefined
        ? { grad: piece('grads', place, 'float32') }
        : { grad: gradient('rows', rows * first.shape[1]!), indices: gradient('indices', rows) }),
      slots: slotsAt((slot) => {
        const found = slot.entries.get(first.name);
        if (found === undefined || rules.optimizers.get(optimizer)!.updatesEach) return found;
        // Slots of an elementwise rule lie as the variables do.
        return { offset: found.offset, size: place.size };
      }),
    };
  };
  const replaced = layout.groups.filter(({ name }) => name === NON_TRAINABLE);
  return {
    ...(rules.normOutliers !== null && { normBound: scalar() }),
    scalars: Object.fromEntries(
      groups.map((each) => [each.group, mapValues(scalarsAt(rules, each, 0), scalar)]),
    ),
    groups: Object.fromEntries([
      ...groups.map((group) => [group.name, members(group)]),
      ...replaced.map((group) => [
        group.name,
        {
          param: piece('params', group, 'float32'),
          grad: piece('grads', group, 'float32'),
          slots: slotsAt((slot) => slot.groups.get(group.name)),
        },
      ]),
    ]),
  };
}

/** The update of the groups of a layout, to be compiled behind the gradients. */
export function updateOf(rules: UpdateRules, layout: FlatLayout): Following {
  const groups = groupsOf(rules, layout);
  const dtypes = mapValues(slotLayoutsOf(rules, layout), ({ dtype }) => dtype);
  const mesh = layout.entries.find(({ group, ranks }) => group === NON_TRAINABLE && ranks)?.ranks?.mesh;
  const allRanks = mesh && { mesh, axes: [...mesh.keys()] };
  const held = ({ param, slots }: GroupState<Tensor>) => ({
    param,
    slots: mapValues(slots, (slot, name) => stored(slot, dtypes[name]!)),
  });
  return {
    name: 'update',
    f: (given: UpdateInputs<Tensor>) =>
      withScope('update', () => {
        const { groups: updated, ...told } = update(rules, groups, given, allRanks);
        return { ...told, groups: mapValues(updated, held) };
      }),
    inputs: inputsOf<TensorSpec>(
      rules,
      layout,
      (_, { size }, dtype) => (dtype === 'int32' ? { shape: [size], dtype } : storedSpec(dtype, size)),
      () => ({ shape: [], dtype: 'float32' }),
    ) as unknown as Tree<TensorSpec>,
  };
}

function update(
  rules: UpdateRules,
  groups: readonly VariableGroup[],
  { groups: given, scalars, normBound: movingBound }: UpdateInputs<Tensor>,
  replacingRanks: Group | undefined,
): Record<'rawGradNorm' | 'clippedGradNorm' | 'isValid', Tensor> & {
  readonly groups: Readonly<Record<string, GroupState<Tensor>>>;
} {
  const { normBound, skipsInvalidSteps, optimizers } = rules;
  const raw = withNorm(groups.map((variables) => ({ variables, grad: () => given[variables.name]!.grad })));
  const clipped = clip(rules, raw);
  const { [NON_TRAINABLE]: replaced } = given;
  const isValid =
    normBound === null
      ? tf.scalar(1, 'bool')
      : valid(raw.norm, movingBound ?? normBound, replaced, replacingRanks);
  const settled = (after: GroupState<Tensor>, before: GroupState<Tensor>): GroupState<Tensor> =>
    skipsInvalidSteps && normBound !== null ? choose(isValid, after, before) : after;
  const updated = clipped.groups.map(({ variables, grad }) => {
    const { name, group } = variables;
    const optimizer = optimizers.get(variables.optimizer)!;
    const { param, slots } = given[name]!;
    const { [EMA]: ema, ...own } = slots;
    const numbers = scalars[group]!;
    const changed = withScope(`update/${optimizer.constructor.name}_${name}`, () => {
      const { indices } = given[name]!;
      if (indices !== undefined)
        return onRows({ param, slots }, indices, variables, (rows) =>
          settled(scaled(optimizer.update(rows, grad(), numbers, variables), rows, variables), rows),
        );
      const before = { param, slots: own };
      const moved = onWhole(before, grad(), variables, (state, gradient, held) =>
        optimizer.update(state, gradient, numbers, held),
      );
      const after = scaled(moved, before, variables);
      if (ema === undefined) return settled(after, given[name]!);
      const average = optimizer.averaged(after, ema, numbers.toEma!);
      return settled({ param: after.param, slots: { ...after.slots, [EMA]: average } }, given[name]!);
    });
    return [name, changed] as const;
  });
  return {
    ...{ rawGradNorm: raw.norm, clippedGradNorm: clipped.norm, isValid },
    groups: {
      ...Object.fromEntries(updated),
      ...(replaced && { [NON_TRAINABLE]: settled(replacement(replaced), replaced) }),
    },
  };
}

/** A step with each variable's way multiplied by its scale, where variables have one. */
function scaled(
  after: GroupState<Tensor>,
  { param }: GroupState<Tensor>,
  variables: VariableGroup,
): GroupState<Tensor> {
  if (variables.entries.every(({ updateScale }) => updateScale === undefined)) return after;
  const way = variables.scaleBy(tf.sub(after.param, param), ({ updateScale = 1 }) => updateScale);
  return { param: tf.add(param, way), slots: after.slots };
}

/**
 * A table's state after a step of its rows at `indices` alone: flat tensors of all rows, and of these.
 *
 * @param step of each index, the last row counts; those in front of it have a gradient of 0.
 */
function onRows(
  state: GroupState<Tensor>,
  indices: Tensor,
  { entries }: VariableGroup,
  step: (rows: GroupState<Tensor>) => GroupState<Tensor>,
): GroupState<Tensor> {
  const { shape } = entries[0]!;
  const table = (flat: Tensor): Tensor => tf.reshape(flat, [...shape]);
  const flat = (tensor: Tensor): Tensor => tf.reshape(tensor, [tensor.size]);
  const rows = (all: Tensor): Tensor => flat(tf.gather(table(all), indices as never));
  const replaced = (all: Tensor, changed: Tensor): Tensor =>
    flat(ops.updateRows(table(all), tf.reshape(changed, [indices.size, shape[1]!]), indices));
  const after = step({ param: rows(state.param), slots: mapValues(state.slots, rows) });
  return {
    param: replaced(state.param, after.param),
    slots: mapValues(state.slots, (slot, name) => replaced(slot, after.slots[name]!)),
  };
}

/** Gradients after the transforms of the learner's own optimizer, or each optimizer's on its own variables. */
function clip(rules: UpdateRules, raw: Gradients): Gradients {
  if (!rules.separateScaling) return mainOf(rules).transformGradients(raw);
  const parts = [...rules.optimizers].flatMap(([name, optimizer]) => {
    const own = raw.groups.filter(({ variables }) => variables.optimizer === name);
    return own.length === 0 ? [] : [optimizer.transformGradients(withNorm(own))];
  });
  const norms = parts.map(({ norm }) => norm);
  return {
    groups: parts.flatMap(({ groups }) => groups),
    norm: norms.length === 0 ? raw.norm : tf.norm(tf.stack(norms)),
  };
}

/**
 * Whether the norm of the gradients is below its bound, and all that the forward pass replaced is finite.
 *
 * @param ranks that hold parts of it.
 */
function valid(
  norm: Tensor,
  bound: Tensor | number,
  replaced: Members<Tensor> | undefined,
  ranks: Group | undefined,
): Tensor {
  const isBelow = tf.less(norm, bound);
  if (replaced === undefined) return isBelow;
  const areFinite = tf.all(tf.isFinite(replaced.grad));
  if (ranks === undefined) return tf.logicalAnd(isBelow, areFinite);
  const everywhere = ops.allReduce(tf.cast(areFinite, 'float32'), ranks, 'min');
  return tf.logicalAnd(isBelow, tf.greater(everywhere, 0));
}

/** The value from the forward pass, which is its own average. */
const replacement = ({ grad, slots }: Members<Tensor>): GroupState<Tensor> => ({
  param: grad,
  slots: mapValues(slots, () => grad),
});
